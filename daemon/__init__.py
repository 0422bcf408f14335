"""reflectd: a local daemon that judges whether your coding agent is really done."""

__version__ = "0.1.0"
