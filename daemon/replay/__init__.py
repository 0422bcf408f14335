"""Judges saved cases again, outside the daemon: ``reflectd judge``, ``reflectd dispute``, evaluations."""
