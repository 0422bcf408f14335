"""Runs the real programs: coding agents, the daemon, model servers on loopback. For tests, bench, demo."""
