"""``python -m`` with this package's name does the same as the command ``reflectd``."""

from .cli.entry import entry

if __name__ == "__main__":
    entry()
