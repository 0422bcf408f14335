"""The playbook by its size: load, format, save; points that say the same; ids cited in a long transcript."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.stand import REPO, Table, median
from daemon.api.playbook import extract_cited_ids
from daemon.core.question import fill
from daemon.learning.playbook.points import Playbook, copy, deduplicate, empty, lines_of
from daemon.learning.playbook.project_playbook import load, save

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (10, 1_000, 100_000)
ALIKE = (1_000, 10_000)
CHARACTERS = 100_000_000
VOCABULARY = 4_000


def playbook(points: int) -> Playbook:
    """Points of fifteen words each; every tenth is one of before in other letters."""
    random, made = Random(5), empty()
    words = [f"word{i:04d}" for i in range(VOCABULARY)]
    texts: list[str] = []
    for i in range(points):
        text = texts[random.randrange(i)].upper() if i % 10 == 9 else " ".join(random.choices(words, k=15))
        texts.append(text)
        made["sections"]["OTHERS"].append(
            {"name": f"oth-{i + 1:03d}", "text": text, "helpful": i % 7, "harmful": i % 3}
        )
    return made


def run(*, quick: bool) -> Table:
    """Medians over runs, in ms."""
    runs = 1 if quick else 5
    table = Table(f"Playbook ({runs} runs)", ("what", "load", "format", "save", "ms"))
    template = Path(REPO, "prompts", "playbook.txt").read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="rd-bench-") as name:
        path = Path(name, "playbook.json")
        for size in SIZES:
            book = playbook(size)
            saved = timed(lambda b=book: save(path, b, 0), runs)  # type: ignore[misc]
            loaded = timed(lambda: load(path), runs)
            shown = timed(lambda b=book: fill(template, {"key_points": lines_of(b)}), runs)  # type: ignore[misc]
            add(table, f"{size:,} points", {"load": loaded, "format": shown, "save": saved})
    for size in ALIKE:
        book = playbook(size)
        add(table, f"equal texts, {size:,} points", {"ms": timed(lambda b=book: deduplicate(copy(b)), runs)})  # type: ignore[misc]
    said = "I follow [pat-001] here, see [the docs](x) and a[0] = b[kpt_1]. "
    messages = [{"role": "assistant", "content": said * 1_000}] * (CHARACTERS // (len(said) * 1_000))
    add(
        table,
        f"cited ids in {CHARACTERS // 1_000_000} MB",
        {"ms": timed(lambda: extract_cited_ids(messages), runs)},
    )
    table.notes.append("save writes the whole file and syncs it, after reading what was there")
    return table


def timed(work: Callable[[], object], runs: int) -> float:
    """The median in ms."""
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


def add(table: Table, name: str, ms: dict[str, float]) -> None:
    """A row with what was measured in its columns."""
    table.rows.append((name, *(f"{ms[c]:.1f}" if c in ms else "" for c in ("load", "format", "save", "ms"))))
    table.values[name] = ms
