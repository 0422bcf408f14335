"""The real coding agents: found, started, driven."""
