"""Keeps the results of a back-test in a file of its own, which needs no daemon: a line of JSON for each fact.

Facts: a model gave an opinion on a stop; a person labelled a feedback. The last line of a kind counts. So a
killed command loses nothing that was paid for, and counts nothing twice.
Results of another version or other prompts (``by``) do not count. The file can be deleted at any time.
``Unavailable`` when it can't be used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from ..core.errors import Unavailable, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = "backtest.jsonl"


class Paid(Struct, frozen=True, tag="stop"):
    """The outcome of one stop with the model ``judge``; ``opinion`` is empty where none was asked for."""

    judge: str
    by: str
    mark: str
    result: Raw
    opinion: str = ""


class Label(Struct, frozen=True, tag="label"):
    """A person's label on one feedback of this judge."""

    judge: str
    mark: str
    answer: str


Fact: TypeAlias = Paid | Label
_DECODER: Final = msgspec.json.Decoder(Fact)
_encode = msgspec.json.Encoder().encode


def answers(state_dir: Path) -> list[tuple[str, str]]:
    """All labels of a person: judge and answer of each."""
    return [(judge, answer) for (judge, _), answer in Backtests(state_dir).labels.items()]


class Backtests:
    """All facts that count. One command at a time may use it; the caller holds a lock."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE
        self.paid: dict[tuple[str, str, str], Paid] = {}  # by judge, version and mark
        self.labels: dict[tuple[str, str], str] = {}  # by judge and mark
        for fact in self._facts():
            self._take(fact)

    def add(self, fact: Fact) -> None:
        """Keep a fact."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "r+b") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 1))
                whole = file.read() in {b"", b"\n"}  # or a command was killed in the middle of a line
                file.write((b"" if whole else b"\n") + _encode(fact) + b"\n")
        except OSError as e:
            raise Unavailable(f"can't write {self.path}: {words(e)}") from e
        self._take(fact)

    def _take(self, fact: Fact) -> None:
        match fact:
            case Paid():
                self.paid[fact.judge, fact.by, fact.mark] = fact
            case Label():
                self.labels[fact.judge, fact.mark] = fact.answer

    def _facts(self) -> Iterator[Fact]:
        """The lines that can be read; one that was cut off by a kill can't."""
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    try:
                        yield _DECODER.decode(line)
                    except msgspec.MsgspecError:
                        continue
        except FileNotFoundError:
            return
        except OSError as e:
            raise Unavailable(f"can't read {self.path}: {words(e)}") from e
