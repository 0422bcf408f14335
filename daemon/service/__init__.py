"""The daemon as a service of the person's own: systemd user units, a launchd agent, and talking to both."""
