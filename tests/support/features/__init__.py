"""Features that exist for tests only."""
