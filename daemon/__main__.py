"""``python -m daemon``: the same as ``reflectd``."""

from daemon.cli.main import entry

if __name__ == "__main__":
    entry()
