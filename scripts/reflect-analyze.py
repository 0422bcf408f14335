"""Prints the signals in transcripts of Claude Code as JSON: ``python scripts/reflect-analyze.py FILE …``.

A thin caller of ``reflectd.api.rules.extract_signals``. It changes nothing; `reflectd reflect` counts
signals in the project's journal. Exit code 2 for a file that can't be read.
"""

from __future__ import annotations

import json
import sys

from reflectd.api.rules import extract_signals
from reflectd.core.errors import UserError


def main(paths: list[str]) -> int:
    """Print them; the exit code."""
    if not paths:
        print("usage: reflect-analyze.py FILE.jsonl …", file=sys.stderr)
        return 2
    try:
        found = [signal for path in paths for signal in extract_signals(path)]
    except UserError as e:
        print(f"reflect-analyze: {e}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
