"""Prompts as files, and replies from files: so any model or person can answer any question of ours offline.

A folder has one folder a case, named by its marker (``nonce_of``): a case's own name may give its label away.
Call number N of a case for a purpose (``judge``,
``judge.again``, ``signals``) is three files there:

- ``N-<purpose>.system.txt`` and ``N-<purpose>.txt``: what a model is told, and the data;
- ``N-<purpose>.reply.txt``: what it answered, as it came. An empty file is no answer yet.

A later call depends on the replies before it, so its prompt is written when those are there. Nothing is
guessed: a call without a reply leaves its case *pending*, and a reply that stands beside another prompt than
the one asked now is *stale*. An ``OSError`` of the file system ends the run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec import Struct

from daemon.clock import SystemClock
from daemon.core.errors import Unavailable, UserError
from daemon.core.llm import Reply, Usage
from daemon.core.ports import drive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator

    from daemon.core.llm import Prompt

T = TypeVar("T")
PROVIDER: Final = "replies"
NO_END_S: Final = 1e9  # a file answers at once


class Replies:
    """A provider (``daemon.core.ports.Provider``) that answers from ``folder``, for one run over ``cases``.

    It knows a case by its nonce (``nonce_of``) and counts its calls. With ``dump`` it uses no reply, so only
    first prompts are written. ``pending``: by case, the prompt that waits. ``stale``: replies to other
    prompts.
    """

    name = PROVIDER

    def __init__(self, folder: Path, cases: Collection[str], *, dump: bool) -> None:
        self.pending: dict[str, Path] = {}
        self.stale: list[Path] = []
        self._folder, self._dump = folder, dump
        self._cases = {nonce_of(case): case for case in cases}
        self._calls: Counter[str] = Counter()

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """Nobody knows who wrote the files."""
        del prompt
        return "", ""

    def most_tokens(self, prompt: Prompt) -> int:
        """What the prompt allows."""
        return prompt.max_tokens

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """The reply in the file. Without one, or with a stale one, ``Unavailable``, which ends the flow."""
        del deadline_s
        return Reply(self._answer(prompt, self._cases[prompt.nonce]), self.name, usage=Usage(cost=None))

    def check(self) -> None:
        """Raises ``UserError`` when a reply stands beside another prompt than the one that was asked."""
        if self.stale:
            raise UserError(
                f"{len(self.stale)} replies answer other prompts than these cases have now: remove them, or "
                f"name another folder. The first is {min(self.stale)}"
            )

    def _answer(self, prompt: Prompt, case: str) -> str:
        self._calls[case] += 1
        folder, call = self._folder / nonce_of(case), f"{self._calls[case]}-{prompt.purpose}"
        data, reply = folder / f"{call}.txt", folder / f"{call}.reply.txt"
        asked = {
            folder / f"{call}.system.txt": prompt.system.encode("utf-8", "replace"),
            data: prompt.text.encode("utf-8", "replace"),
        }
        before = [path.read_bytes() for path in asked if path.exists()]
        said = reply.read_text("utf-8", "replace") if reply.exists() else ""
        if said.strip() and before and before != list(asked.values()):
            self.stale.append(reply)
            raise Unavailable(f"{reply} answers another prompt")
        folder.mkdir(exist_ok=True)
        for path, content in asked.items():
            path.write_bytes(content)
        if self._dump or not said.strip():
            self.pending[case] = data
            raise Unavailable(f"{data} waits for a reply")
        return said


class Answered(Struct, Generic[T], frozen=True):
    """What the flows of the cases came to. ``pending``: by case, the prompt that waits for its reply."""

    results: Mapping[str, T]
    pending: Mapping[str, Path]


def answered(
    folder: Path, flows: Mapping[str, Callable[[str], Generator[Prompt, Reply, T]]], *, dump: bool
) -> Answered[T]:
    """Drive the flow of each case with the replies in ``folder``; with ``dump`` only write first prompts.

    ``flows``: by the case's name, what makes its flow from the nonce. Raises ``UserError`` for a folder that
    holds something else, and for replies to other prompts.
    """
    (make_dump if dump else check_dump)(folder, flows)
    files = Replies(folder, flows, dump=dump)

    async def one(case: str) -> T:
        return await drive(flows[case](nonce_of(case)), files.complete, SystemClock(), NO_END_S)

    async def every() -> dict[str, T]:
        return {case: await one(case) for case in flows}

    found = asyncio.run(every())
    files.check()
    return Answered({case: r for case, r in found.items() if case not in files.pending}, files.pending)


def nonce_of(case: str) -> str:
    """Fences a case's data and names its folder in a dump, by the case's name: a later run must find both."""
    return sha256(case.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def make_dump(folder: Path, cases: Collection[str]) -> None:
    """The folder for the prompts of ``cases``, readable by its owner only: it may hold a person's own work.

    Raises ``UserError`` when it holds anything but a dump of these cases.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    named = {nonce_of(case) for case in cases}
    strange = sorted(p.name for p in folder.iterdir() if p.name not in named or not p.is_dir())
    if strange:
        raise UserError(
            f"{folder} is not empty and holds no dump of these cases ({strange[0]} is none of them): "
            "name a new folder"
        )


def check_dump(folder: Path, cases: Collection[str]) -> None:
    """Raises ``UserError`` when the folder has none of the cases, so that nothing is written to it."""
    if not any((folder / nonce_of(name)).is_dir() for name in cases):
        raise UserError(f"{folder} holds no dump of these cases: make one with --dump (make: DUMP=DIR)")
