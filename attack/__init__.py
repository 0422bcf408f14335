"""Attacks on the real daemon: `make attack`. See ``attack/__main__.py``."""
