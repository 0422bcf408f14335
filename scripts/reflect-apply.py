"""Adds a rule to CLAUDE.md or AGENTS.md, after asking: ``python scripts/reflect-apply.py TEXT [--soft]``.

A thin caller of `reflectd reflect learn`, with its flags, questions and exit codes. It asks on a terminal,
and nothing answers in a person's place.
"""

from __future__ import annotations

import sys

from reflectd.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["reflect", "learn", *sys.argv[1:]]))
