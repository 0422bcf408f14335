"""What the tests drive the real programs with: a scripted model, opencode, the daemon."""
