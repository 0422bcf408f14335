"""What a person said in past sessions: a first scan beside plain reading of the same files, a second one, one
turn more; and the grouping of signals.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.stand import Table, environment
from daemon.hosts.claude_code.past import named
from daemon.learning.rules.journal import Adding, Reading, Sighting, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MB = 1_000_000
FILE_MB = 4
SIGNALS = 10_000
CALLS = 8  # of a turn
TASKS = (
    "Add pagination to the list of orders and cover it with a test.",
    "Why does the build take so long?",
    "Now do the same for the invoices, with the columns that the customers asked for.",
    "The export fails for large files, here is the log. Please find out why.",
)
CORRECTIONS = (
    "No, use the existing client instead of a new one.",
    "Please don't touch the generated files, change the template.",
    "From now on run the linter before you say that you are done.",
    "That's not what I asked for, I wanted the report as CSV, not JSON.",
)


class Sessions:
    """Sessions as Claude Code 2.1.197 writes them: most bytes are results of tools, few are a person's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._random = Random(7)
        self._n = 0

    def write(self, size: int) -> list[Path]:
        """Files of ``FILE_MB`` until there are ``size`` bytes."""
        paths = []
        for i in range(max(1, size // (FILE_MB * MB))):
            path = self._folder / f"{i:08d}-0000-4000-8000-000000000000.jsonl"
            with path.open("wb") as file:
                while file.tell() < min(size, FILE_MB * MB):
                    file.write(b"".join(self.turn(path.stem)))
            paths.append(path)
        return paths

    def turn(self, session: str) -> list[bytes]:
        """A request, eight calls with their results, and a final text. One request of eight corrects."""
        said = self._random.choice(CORRECTIONS if self._random.random() < 0.125 else TASKS)
        lines = [self._line(session, "user", message={"role": "user", "content": said})]
        for _ in range(CALLS):
            call = f"t{self._n}"
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "pytest -q tests"}}
            lines.append(self._answer(session, use))
            shown = "src/module.py: some text of a file, as a tool shows it\n" * self._random.randrange(
                10, 160
            )
            block = {"tool_use_id": call, "type": "tool_result", "content": shown, "is_error": False}
            own = {"stdout": shown, "stderr": "", "interrupted": False}
            lines.append(
                self._line(session, "user", message={"role": "user", "content": [block]}, toolUseResult=own)
            )
        text = "I changed the client and the generated files, and the linter passes. " * 5
        return [*lines, self._answer(session, {"type": "text", "text": text})]

    def _answer(self, session: str, block: Mapping[str, object]) -> bytes:
        message = {
            "model": "m",
            "id": f"m{self._n}",
            "type": "message",
            "role": "assistant",
            "content": [block],
        }
        return self._line(session, "assistant", message=message)

    def _line(self, session: str, kind: str, **more: object) -> bytes:
        self._n += 1
        line = {"parentUuid": None, "isSidechain": False, "type": kind, **more, "uuid": f"u{self._n}"}
        line |= {"timestamp": "2026-11-20T10:00:00.000Z", "cwd": "/repo", "sessionId": session}
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def run(*, quick: bool, mb: int = 100) -> Table:
    """GB/s of a first scan and of plain reading, ms of the next ones, peak memory by size."""
    sizes = (mb,) if quick else (mb, 10 * mb)
    table = Table(
        "Past sessions (one process each, one core)",
        ("sessions", "plain GB/s", "first GB/s", "start s", "second s", "one turn more s", "peak MB"),
    )
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="rd-bench-") as name:
            table.rows.append(_row(table, Path(name), size))
    grouped = _grouping()
    table.values["group_s"] = grouped
    table.notes.append(f"grouping of {SIGNALS:,} signals: {grouped:.2f} s")
    table.notes.append("each scan is a process of its own; first GB/s is without the start of an empty one")
    return table


def _row(table: Table, folder: Path, mb: int) -> tuple[str, ...]:
    project = folder / "project"
    project.mkdir()
    env = environment(folder / "home")
    place = folder / "home" / ".claude" / "projects" / named(project)
    place.mkdir(parents=True)
    started = _scan(env, project)[0]
    sessions = Sessions(place)
    paths = sessions.write(mb * MB)
    length = sum(p.stat().st_size for p in paths)
    plain(paths)  # both read what the system keeps in memory
    read = length / seconds(lambda: plain(paths)) / 1e9
    first_s, peak = _scan(env, project)
    second_s, _ = _scan(env, project)
    with paths[0].open("ab") as file:
        file.write(b"".join(sessions.turn(paths[0].stem)))
    more_s, _ = _scan(env, project)
    first = length / max(first_s - started, 1e-3) / 1e9
    values = {"plain": read, "first": first, "start_s": started, "second_s": second_s, "more_s": more_s}
    table.values[f"{mb}"] = {**values, "peak_mb": peak}
    cells = (
        f"{read:.2f}",
        f"{first:.2f}",
        f"{started:.2f}",
        f"{second_s:.2f}",
        f"{more_s:.2f}",
        f"{peak:.0f}",
    )
    return (f"{mb:,} MB in {len(paths)}", *cells)


def _scan(env: dict[str, str], project: Path) -> tuple[float, float]:
    """Seconds and peak memory (MB) of one command."""
    began = time.perf_counter()
    code = "import resource,sys;from daemon.cli.main import main;c=main(['reflect','--json']);"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,file=sys.stderr);sys.exit(c)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=project, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, int(done.stderr.split()[-1]) * 1024 / 1e6


def plain(paths: list[Path]) -> None:
    """Read every byte, and look at none."""
    buffer = bytearray(4 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _grouping() -> float:
    """Seconds for signals of eight words each, every third of which says what one before it said."""
    random = Random(3)
    words = [f"word{i:03d}" for i in range(800)]
    texts: list[str] = []
    for i in range(SIGNALS):
        known = texts[random.randrange(i)] if i % 3 == 2 else ""
        texts.append(f"please {known}" if known else " ".join(random.choices(words, k=8)))
    adding = Adding(empty("bench", ""))
    began = time.perf_counter()
    for i, text in enumerate(texts):
        adding.add(Reading("instruction", text, "low"), Sighting(f"s{i % 500}", f"m{i}", "2026-11-20"))
    return time.perf_counter() - began
