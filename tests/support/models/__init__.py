"""What scripted models say in tests."""
