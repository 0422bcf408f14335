"""Texts with telling names everywhere, searched for secrets: none may take many times as long as code.

It climbs: texts that took long are changed a little and tried again. What counts is the processor time of
this process, beside that of ordinary code in the same moment.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Final

from attack.outcome import SHOWN, Deadline, Outcome
from daemon.redact import redact, values
from daemon.redact.names import SHORT_STEMS, STEMS
from daemon.redact.places import LITERALS

SIZE: Final = 60_000
MOST: Final = 10.0  # times as long as code
KEPT: Final = 12
WORDS: Final = [word.decode() for word in (*STEMS, *SHORT_STEMS, *LITERALS)]
GLUE: Final = [
    " ", "\n", "\r\n", "\t", "\\n", "=", ": ", "; ", "|", ",", '"', "'", "-", "/", "(", "{", "<", ">", "@",
    "é", "x", "1", "aB3", " is ", "abc123x", "a:b@", " -u a:b ", "curl", "mysql", "A" * 20 + " ",
    "aB1" * 8 + " ", "AKIA", "eyJ", "sk-", "Zm9vOmJhcg" * 3 + " ",
    "-----BEGIN PRIVATE KEY-----", "[redacted:named]", "\x1b[0m", "\u200b", "\\\n",
]  # fmt: skip


def seconds(text: str) -> float:
    """The lower of two times: a busy machine only ever adds to them."""
    times = []
    for _ in range(2):
        began = time.process_time()
        redact(text)
        times.append(time.process_time() - began)
    return min(times)


def changed(parts: list[str], rng: random.Random) -> list[str]:
    """One part more, less or another one."""
    at = rng.randrange(len(parts))
    new = rng.choice(rng.choice((WORDS, GLUE)))
    return (
        parts[:at] + rng.choice(([new, parts[at]], [new], [] if len(parts) > 1 else [new])) + parts[at + 1 :]
    )


def run(count: int, seed: int, deadline: Deadline) -> Outcome:
    found = Outcome("telling", count)
    rng = random.Random(seed)
    code = (Path(values.__file__).read_text("utf-8") * 9)[:SIZE]
    worst: list[tuple[float, list[str]]] = [(0.0, ["password", " |\n"])]
    while found.done < count and not deadline.over and len(found.findings) < SHOWN:
        new = rng.random() < 0.3
        parts = rng.choices(WORDS + GLUE, k=3) if new else changed(rng.choice(worst)[1], rng)
        unit = "".join(parts)
        took = seconds((unit * (SIZE // len(unit) + 1))[:SIZE]) / seconds(code)
        found.done += 1
        if took > MOST:
            found.findings.append(f"{took:.1f} times as long as code: seed {seed}, {unit!r}")
        worst = sorted([*worst, (took, parts)], key=lambda one: -one[0])[:KEPT]
    found.figures = f"at most {worst[0][0]:.1f} times as long as code ({''.join(worst[0][1])[:60]!r})"
    return found
