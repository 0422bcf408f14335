"""Claude Code transcripts: all of a file beside plain reading of it, a first look, and one turn more."""

from __future__ import annotations

import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stand import Table, median
from daemon.hosts.claude_code.transcript import Reach, TranscriptReader
from daemon.hosts.jsonl import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MB = 1_000_000
SIZES = (1, 10, 100)
SESSION = "0f6d1f9e-5a7e-4b6e-9f57-3a1c2b4d5e6f"
CALLS = 8  # of a turn


class Corpus:
    """Turns as version 2.1.330 writes them: most bytes are requests, some the host's notes, few are said."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._tip: str | None = None
        self._n = 0

    def grow(self, size: int) -> int:
        """Turns until the file has ``size`` bytes; returns how many it has."""
        while self._file.tell() < size:
            self.turn()
        self._file.flush()
        return self._file.tell()

    def turn(self) -> None:
        """A request, eight calls with their requests to the model, and a final text."""
        self._line(
            "user", promptId=f"p{self._n}", origin={"kind": "human"}, message={"content": f"task {self._n}"}
        )
        for i in range(CALLS):
            self._request()
            use = {
                "type": "tool_use",
                "id": f"t{self._n}",
                "name": "Bash",
                "input": {"command": f"pytest tests/{i}"},
            }
            self._answer(use, "tool_use")
            block = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok", "is_error": False}
            own = {"stdout": "." * 1_500 + "\n12 passed", "stderr": "", "interrupted": False}
            self._line("user", message={"content": [block]}, toolUseResult=own)
        self._request()
        self._answer({"type": "text", "text": "Done. " * 40}, "end_turn")

    def close(self) -> None:
        self._file.close()

    def _request(self) -> None:
        blob = {
            "type": "api-request-blob",
            "sessionId": SESSION,
            "hash": "h",
            "message": {"content": "x " * 30_000},
        }
        self._write(blob)
        self._line("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["be good\n" * 600]})
        self._write(
            {"type": "api-request", "sessionId": SESSION, "params": {"model": "m"}, "tail": ["h"] * 20}
        )

    def _answer(self, block: Mapping[str, object], stop: str) -> None:
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": f"m{self._n}", "model": "claude-opus-5-5", "content": [block], "stop_reason": stop}
        self._line("assistant", message=message | {"usage": usage})

    def _line(self, kind: str, **more: object) -> None:
        self._n += 1
        uuid = f"{self._n:08d}-0000-4000-8000-000000000000"
        known = {"parentUuid": self._tip, "isSidechain": False, **more, "type": kind, "uuid": uuid}
        self._write(known | {"timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/repo", "sessionId": SESSION})
        self._tip = uuid

    def _write(self, line: Mapping[str, object]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def run(*, quick: bool, mb: int = SIZES[-1]) -> Table:
    """GB/s of a whole file; milliseconds of the first look and of one turn more, by the file's size."""
    runs = 3 if quick else 9
    table = Table(
        f"Claude Code transcripts, {mb} MB generated ({runs} runs, one core)",
        ("file", "plain GB/s", "whole GB/s", "first look ms", "one turn more ms"),
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in sorted({*(s for s in SIZES if s < mb), mb}):
            path = Path(folder) / f"{size}.jsonl"
            corpus = Corpus(path)
            length = corpus.grow(size * MB)
            plain = length / _seconds(partial(_plain, path), runs) / 1e9
            whole = length / _seconds(partial(_read, path, Reach(window=1 << 50)), runs) / 1e9
            first = _seconds(partial(_read, path, Reach()), runs) * 1e3
            live = TranscriptReader(path, is_ours=str.isascii)
            live.read()
            more = []
            for _ in range(runs):
                corpus.turn()
                corpus.grow(0)
                began = time.perf_counter()
                found = live.read("Done.")
                more.append((time.perf_counter() - began) * 1e3)
                assert live.found and len(found.calls) == CALLS  # noqa: PT018
            corpus.close()
            turn = median(more)
            table.rows.append((f"{size} MB", f"{plain:.2f}", f"{whole:.2f}", f"{first:.2f}", f"{turn:.2f}"))
            table.values[f"{size}"] = {"plain": plain, "whole": whole, "first_ms": first, "turn_ms": turn}
    table.notes.append("aim: a whole file at 1 GB/s or more; one turn more costs the same for any size")
    return table


def _seconds(job: Callable[[], object], runs: int) -> float:
    job()  # the file is in the cache from here on
    spent = []
    for _ in range(runs):
        began = time.perf_counter()
        job()
        spent.append(time.perf_counter() - began)
    return median(spent)


def _plain(path: Path) -> int:
    """Read every byte into one buffer, and look at none."""
    buffer, total = memoryview(bytearray(BLOCK)), 0
    fd = os.open(path, os.O_RDONLY)
    try:
        while got := os.preadv(fd, [buffer], total):
            total += got
    finally:
        os.close(fd)
    return total


def _read(path: Path, reach: Reach) -> None:
    found = TranscriptReader(path, is_ours=str.isascii, reach=reach).read("Done.")
    assert len(found.calls) == CALLS
