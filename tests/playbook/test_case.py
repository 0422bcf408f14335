"""What reflector and curator see, and that it fits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from daemon.core.cuts import tokens
from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.paths import shipped
from daemon.playbook.case import (
    ALIKE,
    CURATOR_TOKENS,
    REFLECTOR_TOKENS,
    Case,
    Templates,
    curation,
    of_messages,
    of_task,
)
from daemon.playbook.prompts import curator, reflector
from tests.playbook.books import book, point

TEMPLATES = Templates.of({
    name: shipped(f"prompts/{name}.txt").read_text("utf-8")
    for name in ("reflector", "curator", "keypoints", "playbook")
})  # fmt: skip
EVIDENCE = Evidence(
    rows=(
        Row("R1", "requirement", "add a retry"),
        Row("E1", "check", "`pytest -q` failed: 2 failed", "failed", open=True),
    ),
    log=(Act("A1", "edit up.py"), Act("A2", "bash pytest -q", ("2 failed",), 0)),
    files=(FileChange("up.py", "edited", ("A1",), 1, 1, ("-old", "+new")),),
)


def task(**changes: Any) -> Case:
    values: dict[str, Any] = {
        "session": "ses_1",
        "nonce": "n0nce",
        "template": TEMPLATES.reflector,
        "requests": ("Add a retry\nplease", "And test it"),
        "final": "Done.",
        "evidence": EVIDENCE,
        "ended": "incomplete HIGH, reward -0.5: two tests fail",
        "given": [point("pat-001", "use types", 3), point("pat-002", "use hints")],
        "cited": ("pat-001",),
        "quarantined": [point("pat-007", "tests need redis")],
    }
    return of_task(**(values | changes))


def test_a_task_is_shown_with_what_decides() -> None:
    """How it ended, words, facts, log, changes; cited points are marked, waiting ones stand apart."""
    case = task()
    for part in (
        "How it ended:\nincomplete HIGH, reward -0.5: two tests fail",
        "What the person typed:\nM1: Add a retry\n  please\nM2: And test it",
        "The agent's last words:\nDone.",
        "E1 [check failed] `pytest -q` failed: 2 failed",
        "A1 edit up.py\nA2 bash pytest -q\n    2 failed",
        "up.py (edited, +1 -1)\n    -old\n    +new",
    ):
        assert part in case.transcript
    assert case.points == (
        "(cited) [pat-001] helpful=3 harmful=0 :: use types\n[pat-002] helpful=0 harmful=0 :: use hints"
    )
    assert case.quarantined == ("[pat-007] helpful=0 harmful=0 :: tests need redis",)
    assert case.waiting == {"pat-007"}
    assert case.ids == {"R1", "E1", "A1", "A2"}


@pytest.mark.shows("REQ-REFL-003")
@pytest.mark.parametrize("letter", ["x", "ж", "\N{PILE OF POO}"])
def test_the_reflectors_prompt_never_has_more_than_its_tokens(letter: str) -> None:
    """However long everything is, in any script, the prompt fits, and says that something was left out."""
    long = " ".join([letter * 9] * 3_000)
    big = Evidence(
        rows=tuple(Row(f"E{i}", "check", long, "failed", open=True) for i in range(60)),
        log=tuple(Act(f"A{i}", f"bash {letter * 90}", (letter * 200,) * 3, i % 4) for i in range(2_000)),
        files=tuple(FileChange(f"f{i}.py", "edited", lines=(f"+{letter * 80}",) * 40) for i in range(300)),
    )
    points = [point(f"pat-{i:03d}", letter * 250) for i in range(1, 200)]
    words = {"requests": (long,) * 30, "final": long, "ended": long}
    case = task(**words, evidence=big, given=points, quarantined=points, cited=("pat-003",))
    prompt = reflector(case)
    assert tokens(prompt.system) + tokens(prompt.text) <= REFLECTOR_TOKENS
    assert tokens(prompt.text) > REFLECTOR_TOKENS // 2
    assert "left out: no room)" in case.transcript
    assert "(cited) [pat-003]" in case.points


@pytest.mark.shows("REQ-REFL-003")
def test_nothing_is_cut_for_the_library() -> None:
    """All messages, all points; blocks that are no texts are shown too; the reply needs no nonce."""
    blocks = [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "ls"}]
    messages = [{"role": "assistant", "content": content} for content in (blocks, "")]
    messages = [{"role": "user", "content": "Fix it " * 50_000}, *messages, "damaged"]
    case = of_messages(messages, book(point("pat-001", "a")), ["pat-001"], nonce="n", template="")
    assert case.transcript.startswith("user: Fix it ")
    assert case.transcript.endswith('assistant: I look.\n{"type": "tool_use", "name": "ls"}')
    assert len(case.transcript) > 350_000
    assert case.points == "## PATTERNS & APPROACHES\n[pat-001] helpful=0 harmful=0 :: a"
    assert (case.strict, case.tier) == (False, "reflect")


def test_a_curator_sees_the_points_that_were_tagged_first() -> None:
    """Where not all fit, the tagged ones and those with counts stay; the rest is counted."""
    points = [point(f"pat-{i:03d}", f"{i} " + "word " * 40, int(i == 50)) for i in range(1, 300)]
    found = {"analysis": "long " * 20_000, "bullet_tags": [{"name": "pat-299", "tag": "harmful"}], "more": 1}
    playbook = book(*points, mis=[point("mis-001", "short", 3)])
    case = curation(found, playbook, nonce="n", template=TEMPLATES.curator, largest=CURATOR_TOKENS)
    prompt = curator(case)
    assert tokens(prompt.system) + tokens(prompt.text) <= CURATOR_TOKENS
    for part in ("PATTERNS & APPROACHES\n", "[pat-299]", "[pat-050]", "AVOID\n[mis-001]", "left out"):
        assert part in case.points
    assert "more" not in case.reflection


def test_a_curator_is_shown_pairs_that_may_say_the_same() -> None:
    """Only of points that it sees, at most ten, within its tokens; other ones in another session."""
    points = book(*(point(f"pat-{i:03d}", f"{i} " + "word " * 40) for i in range(1, 300)))
    pairs = [(f"pat-{i:03d}", f"pat-{i + 1:03d}") for i in range(1, 299, 2)]

    def asked(session: str, largest: int = CURATOR_TOKENS) -> str:
        case = curation(
            {}, points, nonce="n", template=TEMPLATES.curator, session=session, largest=largest, alike=pairs
        )
        prompt = curator(case)
        assert not largest or tokens(prompt.system) + tokens(prompt.text) <= largest
        before, _, below = case.points.partition("\n\n## These may say the same\n")
        named = re.findall(r"^\[(pat-\d+)\] and \[(pat-\d+)\]$", below, re.MULTILINE)
        assert len(named) == len(below.splitlines()) <= ALIKE
        assert all(f"[{name}] " in before for pair in named for name in pair)
        return below

    assert asked("ses_1") == asked("ses_1")
    assert len(asked("ses_1", 0).splitlines()) == ALIKE
    assert len({asked(f"ses_{i}", 0) for i in range(5)}) == 5
    alone = curation({}, book(point("pat-001", "a")), nonce="n", template="", alike=[("pat-001", "pat-009")])
    assert alone == curation({}, book(point("pat-001", "a")), nonce="n", template="")
