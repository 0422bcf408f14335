"""The judge's prompt by size of the transcript: how long its parts take, its tokens, and the memory."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stand import REPO, Table, median
from daemon.core.cuts import tokens
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.evidence.activity import activity
from daemon.evidence.collect import collect, read
from daemon.evidence.diffs import file_changes
from daemon.files.prompts import read_layer
from daemon.judge.case import Case, make_case
from daemon.judge.prompts import first

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.question import Texts

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
ASK = """Please add a retry to the uploader:
1. retry three times with a growing delay
2. make the number configurable in config.toml
3. add tests and run them
Don't push; commit when the tests pass."""
FINAL = (
    "The uploader retries three times; `retries` in config.toml sets how often. All 12 tests pass. Committed."
)
PROJECT = "Always run `make lint` before committing.\nNever push to main."


def transcript(size: int) -> Transcript:
    """A task of about ``size`` characters: reads, edits, test runs, a commit."""
    calls: list[ToolCall] = []
    n = used = 0
    while used < size:
        source = f"def upload_{n}(path):\n    return send(path, retries={n})\n" * 40
        parts = (
            ToolCall(f"r{n}", "read", "completed", {"filePath": f"src/up_{n}.py"}, source),
            ToolCall(
                f"e{n}",
                "edit",
                "completed",
                {"filePath": f"src/up_{n % 9}.py", "oldString": source[:200], "newString": source[:240]},
            ),
            ToolCall(
                f"t{n}",
                "bash",
                "completed",
                {"command": f"python -m pytest tests/test_up_{n % 6}.py -q 2>&1 | tail -20"},
                "." * 400 + "\n12 passed in 0.42s\n",
                exit=0,
            ),
        )
        calls += parts
        used += sum(len(str(c.input)) + len(c.output) for c in parts)
        n += 1
    commit: dict[str, object] = {"command": "git add -A && git commit -m 'Retry uploads'"}
    calls.append(ToolCall("c", "bash", "completed", commit, "[main 1a2b3c4] Retry uploads\n", exit=0))
    messages = (
        Message("u", "user", 1, ASK, human=True),
        *(Message(f"a{i}", "assistant", 2, calls=(c,), finish="tool-calls") for i, c in enumerate(calls)),
        Message("z", "assistant", 3, FINAL, finish="stop"),
    )
    return Transcript("ses", messages, directory="/repo")


def run(*, quick: bool) -> Table:
    """Medians per size: the log, the changes and the prompt together; ``collect``; the whole case with its
    redaction; then the size of the prompt, and the most memory that the case and the prompt took.
    """
    runs = 3 if quick else 7
    templates = read_layer(Path(REPO) / "prompts").texts
    table = Table(
        f"The judge's prompt by transcript size ({runs} runs)",
        ("characters", "log+changes+prompt ms", "collect ms", "case ms", "rows", "tokens", "peak MB"),
    )
    for size in SIZES[: -1 if quick else None]:
        sample = transcript(size)
        work = read(sample.calls, sample.directory)
        case = _case(sample, templates)
        log = _median(runs, activity, sample, work)
        changes = _median(runs, file_changes, work, sample.directory)
        prompt = _median(runs, first, case)
        collected = _median(runs, collect, sample)
        whole = _median(min(runs, 3), _case, sample, templates)
        tracemalloc.start()
        made = first(_case(sample, templates)).prompt(templates)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        count = tokens(made.system) + tokens(made.text)
        built = log + changes + prompt
        cells = (f"{built:.1f}", f"{collected:.1f}", f"{whole:.1f}", str(len(case.evidence.rows)), str(count))
        table.rows.append((f"{size:,}", *cells, f"{peak:.1f}"))
        table.values[str(size)] = {
            "ms": collected,
            "built_ms": built,
            "case_ms": whole,
            "tokens": count,
            "mb": peak,
        }
    table.notes.append("aims: log+changes+prompt <= 20 ms for 1,000,000 characters; never over 6,000 tokens")
    return table


def _case(sample: Transcript, templates: Texts) -> Case:
    return make_case(sample, at=1, nonce="n" * 12, templates=templates, project=PROJECT)


def _median(runs: int, call: Callable[..., object], *args: object) -> float:
    """In milliseconds."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        call(*args)
        seconds.append(time.perf_counter() - began)
    return median(seconds) * 1000
