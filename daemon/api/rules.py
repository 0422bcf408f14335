"""What a person keeps correcting, as a library: signals out of a transcript, without a daemon (docs/api.md).

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
from ..learning.rules.candidates import KEYWORDS, candidate_of, quote_of, timestamp, typed
from ..learning.rules.journal import MAX_CONTENT

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["Said", "extract_signals"]


def extract_signals(jsonl_path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The signals in a transcript, in its order, in the form of the requirements (FR1, TR2).

    ``jsonl_path``: a transcript of Claude Code, or JSONL with ``{"role", "content"}`` on each line. Raises
    ``UserError`` for a file that can't be read.
    """
    path = Path(jsonl_path)
    found: list[dict[str, Any]] = []

    def take(said: Said) -> None:
        if (signal := _by_keyword(said, path.name)) is not None:
            found.append(signal)

    each_said(path, take)
    counted: Counter[str] = Counter()
    for signal in found:
        day = signal["timestamp"][:10].replace("-", "") or "00000000"
        counted[day] += 1
        signal["id"] = f"sig-{day}-{counted[day]:03d}"
    return found


def _by_keyword(said: Said, file: str) -> dict[str, Any] | None:
    """The signal of a message by the keywords of the requirements alone, in its form (FR1); None for none."""
    candidate = candidate_of(said, file)
    kind = next((k for k in KEYWORDS if k in candidate.why), "") if candidate is not None else ""
    if candidate is None or not kind:
        return None
    of, polarity = typed(kind)
    quote = quote_of(candidate, candidate.seen[0])
    return {
        "id": "",
        "type": of,
        **({"polarity": polarity} if polarity else {}),
        "content": " ".join(candidate.text.split())[:MAX_CONTENT],
        "context": quote.context,
        "severity": {"instruction": "high", "correction": "medium"}.get(kind, "low"),
        "timestamp": timestamp(said.at),
        "source_file": file,
        "line": said.line,
        "session": said.session,
    }


def each_said(path: Path, take: Callable[[Said], object]) -> None:
    """Hand over what a person said in a whole transcript. Raises ``UserError``."""
    from ..hosts.claude_code.past import said_in

    told = 0

    def counted(said: Said) -> None:
        nonlocal told
        told += 1
        take(said)

    try:
        if said_in(path, None, counted) is None:
            raise UserError(f"can't read {path}: there is no such file")
        if not told:
            _each_plain(path, take)
    except (Unavailable, OSError) as e:
        raise UserError(f"can't read {path}: {words(e)}") from None


def _each_plain(path: Path, take: Callable[[Said], object]) -> None:
    """Lines ``{"role": "user", "content": "…"}``, as the requirements have them (TR2)."""
    prior = ""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
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
                take(Said(content, prior, message=f"{path.name}:{number}", session=path.stem, line=number))
                prior = ""
