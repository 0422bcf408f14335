"""Damaged transcripts, read and judged by the rules in a process that may be killed. Each is refused or
judged; none ends in a trace, and none hangs.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from attack.outcome import SHOWN, Deadline, Outcome
from daemon import paths
from daemon.core.errors import ReflectdError
from daemon.files.prompts import read_layer
from daemon.hosts.claude_code.transcript import TranscriptReader, with_sub_agents
from daemon.hosts.opencode.messages import parse_transcript
from daemon.llm.offline import OfflineProvider
from daemon.replay.cases import Loaded, load, of_transcript, replay
from harness.machine.sandbox import REPO

HANG_S = 60.0
DATA = REPO / "tests" / "data"
Mutation = Callable[[bytes, random.Random], bytes]
VALUES = (
    b"null", b"true", b"-1", b"1e999", b"9007199254740993", b'""', b"[]", b"{}", b"[[[[]]]]", b'"\\ud800"',
    b'{"type":"shell"}', b'["a","b"]', b'"' + b"a-" * 3_000 + b'"', b'"' + b"\\n" * 2_000 + b'"',
    b'"' + b"/a" * 2_000 + b'"', b"[" * 500 + b"]" * 500,
)  # fmt: skip


def _flip(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randint(1, 30)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def _cut(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[rng.randint(start, len(data)) :]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(rng.randint(1, 5)):
        if len(lines) > 1:
            n = rng.randrange(len(lines))
            lines[n : n + 1] = rng.choice(([], [lines[n]] * rng.randint(2, 40), [rng.choice(lines)]))
    return b"".join(lines)


def _value(data: bytes, rng: random.Random) -> bytes:
    """Put another value behind some keys."""
    for _ in range(rng.randint(1, 8)):
        at = data.find(b'":', rng.randrange(len(data)))
        if at >= 0:
            ends = [e for e in (data.find(c, at + 2) for c in (b",", b"}", b"\n")) if e >= 0]
            end = min(ends, default=len(data))
            data = data[: at + 2] + rng.choice(VALUES) + data[end:]
    return data


def _text(data: bytes, rng: random.Random) -> bytes:
    """Put hostile text into texts."""
    words = ("a-" * 2_000, "\\\\" * 1_000, "😀" * 500, "(" * 1_000, "x=" * 1_500, "\\u0000", "| `a` " * 800)
    for _ in range(rng.randint(1, 4)):
        at = data.find(b'":"', rng.randrange(len(data)))
        if at >= 0:
            data = data[: at + 3] + rng.choice(words).encode() + data[at + 3 :]
    return data


MUTATIONS: tuple[Mutation, ...] = (_flip, _cut, _lines, _value, _value, _text)


def sources() -> list[Path]:
    """Recorded transcripts of both hosts, and cases that hold one."""
    found = [*(DATA / "claude").glob("*.jsonl"), *(DATA / "exports").glob("*.json")]
    return [*found, *(DATA / "sessions").glob("*.json"), *sorted((DATA / "judge").glob("*.json"))[::20]]


def mutated(path: Path, rng: random.Random) -> bytes:
    data = path.read_bytes()
    for _ in range(rng.randint(1, 3)):
        if data:
            data = rng.choice(MUTATIONS)(data, rng)
    return data


def look(seed: int, number: int, folder: Path) -> None:
    """Read and judge one. Raises what is no refusal."""
    rng = random.Random(f"{seed} {number}")
    path = rng.choice(sources())
    data = mutated(path, rng)
    templates = read_layer(paths.shipped("prompts")).texts
    work: list[Callable[[], Loaded]] = []
    if path.suffix == ".jsonl":
        file = folder / f"{number}.jsonl"
        file.write_bytes(data)
        reader = TranscriptReader(file, is_ours=lambda _: False)
        found = with_sub_agents(reader.read("done"), file)
        reader.read("done")
        file.unlink()
        work = [lambda: of_transcript(found, path.name, lambda _: templates)]
    elif path.parent.name == "sessions":
        recorded = json.loads(path.read_bytes())["rounds"][0]["read"]
        body = json.dumps(recorded).encode()
        for _ in range(rng.randint(1, 3)):
            body = rng.choice(MUTATIONS)(body, rng) or b"{}"
        read = parse_transcript(body, is_ours=lambda _: False, session="s")
        work = [lambda: of_transcript(read, path.name, lambda _: templates)]
    work.append(lambda: load(data, path.name, lambda _: templates))
    for each in work:
        try:
            asyncio.run(replay(each().case, OfflineProvider(), timeout_s=HANG_S))
        except ReflectdError:
            continue


def _serve(pipe: Connection, seed: int, name: str) -> None:
    while True:
        number = pipe.recv()
        try:
            look(seed, number, Path(name))
            pipe.send("")
        except ReflectdError:
            pipe.send("")
        except Exception:
            pipe.send(traceback.format_exc())


class Worker:
    """A process that looks at transcripts; a hanging one is killed."""

    def __init__(self, seed: int, folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, seed, folder), daemon=True)
        self._process.start()

    def look(self, number: int) -> str:
        """What went wrong."""
        self._pipe.send(number)
        if not self._pipe.poll(HANG_S + 30):
            return f"no end within {HANG_S + 30:g} s"
        try:
            answer: str = self._pipe.recv()
        except EOFError:
            return "the process died"
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def run(count: int, seed: int, deadline: Deadline) -> Outcome:
    found = Outcome("transcripts", count)
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(seed, folder)
        for number in range(count):
            if deadline.over or len(found.findings) >= SHOWN:
                break
            wrong = worker.look(number)
            found.done = number + 1
            if wrong:
                found.findings.append(f"seed {seed}, number {number}: {wrong}")
            if wrong.startswith(("no end", "the process")):
                worker.kill()
                worker = Worker(seed, folder)
        worker.kill()
    found.figures = f"of {len(sources())} recordings"
    return found
