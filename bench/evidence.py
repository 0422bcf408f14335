"""Evidence: how long ``collect`` takes and how long the judge's prompt is, by size of the transcript."""

from __future__ import annotations

import time
from pathlib import Path

from bench.stand import REPO, Table, median
from daemon.core.collect import collect
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.judge.case import Templates, make_case
from daemon.judge.prompts import first

SIZES = (1_000, 10_000, 100_000, 1_000_000)
CHARS_PER_TOKEN = 4
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
    commit = {"command": "git add -A && git commit -m 'Retry uploads'"}
    calls.append(ToolCall("c", "bash", "completed", commit, "[main 1a2b3c4] Retry uploads\n", exit=0))
    messages = (
        Message("u", "user", 1, ASK, human=True),
        *(Message(f"a{i}", "assistant", 2, calls=(c,), finish="tool-calls") for i, c in enumerate(calls)),
        Message("z", "assistant", 3, FINAL, finish="stop"),
    )
    return Transcript("ses", messages, directory="/repo")


def run(*, quick: bool) -> Table:
    """Median time of ``collect`` and size of the whole call, per size of the transcript."""
    runs = 3 if quick else 11
    prompts = Path(REPO) / "prompts"
    templates = Templates((prompts / "judge.txt").read_text(), (prompts / "judge_case.txt").read_text())
    table = Table(
        f"Evidence and prompt by transcript size ({runs} runs)",
        ("characters", "collect ms", "rows", "tokens"),
    )
    for size in SIZES:
        sample = transcript(size)
        seconds = []
        for _ in range(runs):
            began = time.perf_counter()
            evidence = collect(sample, PROJECT)
            seconds.append(time.perf_counter() - began)
        prompt = first(make_case(sample, at=1, nonce="n" * 12, templates=templates, project=PROJECT))
        tokens = (len(prompt.system) + len(prompt.text)) // CHARS_PER_TOKEN
        ms = median(seconds) * 1000
        table.rows.append((f"{size:,}", f"{ms:.1f}", str(len(evidence.rows)), str(tokens)))
        table.values[str(size)] = {"ms": ms, "rows": len(evidence.rows), "tokens": tokens}
    table.notes.append("aim: < 10 ms for 100,000 characters, < 2,500 tokens (characters / 4)")
    return table
