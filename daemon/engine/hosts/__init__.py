"""The hosts as the engine sees them: one port (``host``), one adapter for each coding agent."""
