"""Verbs that run the daemon: serve, start, stop, status, logs, service, on and off."""
