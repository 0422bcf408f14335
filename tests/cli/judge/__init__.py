"""``reflectd judge``."""
