"""Verbs that set things up: setup (connect a coding agent), config, trust, completion."""
