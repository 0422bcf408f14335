"""A person's corrections as a library: signals out of a transcript, without a daemon (docs/api.md).

It reads and changes nothing, and asks no model: signals are found by the keywords of the requirements (TR3),
and their content is what the person said. `reflectd reflect` has a model read and word them.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import Unavailable, UserError, words
from ..core.transcript import Said
from ..learning.rules.candidates import KEYWORDS, candidate_of, timestamp
from ..learning.rules.journal import MAX_CONTENT, typed

if TYPE_CHECKING:
    import os

__all__ = ["Said", "extract_signals"]


def extract_signals(jsonl_path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The signals in a transcript, in its order, in the form of the requirements (FR1, TR2).

    ``jsonl_path``: a transcript of Claude Code, or JSONL with ``{"role", "content"}`` on each line. Raises
    ``UserError`` for a file that can't be read.
    """
    path = Path(jsonl_path)
    signals = [signal for said in _said_in(path) if (signal := _by_keyword(said, path.name)) is not None]
    counted: Counter[str] = Counter()
    for signal in signals:
        day = signal["timestamp"][:10].replace("-", "") or "00000000"
        counted[day] += 1
        signal["id"] = f"sig-{day}-{counted[day]:03d}"
    return signals


def _by_keyword(said: Said, file: str) -> dict[str, Any] | None:
    """The signal of a message by the keywords of the requirements alone, in its form (FR1); None for none."""
    candidate = candidate_of(said, file)
    kind = next((k for k in KEYWORDS if k in candidate.why), "") if candidate is not None else ""
    if candidate is None or not kind:
        return None
    return {
        "id": "",
        **typed(kind),  # type: ignore[arg-type] # a key of the table above
        "content": " ".join(candidate.text.split())[:MAX_CONTENT],
        "context": candidate.quote()["context"],
        "severity": {"instruction": "high", "correction": "medium"}.get(kind, "low"),
        "timestamp": timestamp(said.at),
        "source_file": file,
        "line": said.line,
        "session": said.session,
    }


def _said_in(path: Path) -> list[Said]:
    """The messages of a person in a whole transcript. Raises ``UserError``."""
    from ..hosts.claude_code.past import said_in

    said: list[Said] = []
    try:
        if said_in(path, None, said.append) is None:
            raise UserError(f"can't read {path}: there is no such file")
        return said or _plain(path)
    except (Unavailable, OSError) as e:
        raise UserError(f"can't read {path}: {words(e)}") from None


def _plain(path: Path) -> list[Said]:
    """Lines ``{"role": "user", "content": "…"}``, as the requirements have them (TR2)."""
    found, prior = list[Said](), ""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(message, dict) or "uuid" in message:
            continue
        role, content = message.get("role"), message.get("content")
        if role == "assistant" and isinstance(content, str):
            prior = content
        elif role == "user" and isinstance(content, str):
            name = f"{path.name}:{number}"
            found.append(Said(content, prior, message=name, session=path.stem, line=number))
            prior = ""
    return found
