"""Judges saved cases again, outside the daemon: ``reflectd judge``, ``reflectd case``, evaluations."""
