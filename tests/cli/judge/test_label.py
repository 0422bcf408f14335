"""``reflectd judge --past --label``: a person at a real terminal looks at what would have been sent."""

from __future__ import annotations

import json

import pytest

from harness.machine.sandbox import Sandbox
from tests.cli.judge.corpus import sessions
from tests.cli.reflect.person import ended, typed
from tests.support.machine.command_line import reflectd, said


def labelled(box: Sandbox, keys: str, *, end: str = "") -> tuple[int, str]:
    """Exit code and all that was on the screen. Each letter is typed when its feedback is there."""
    child = typed(box, ["judge", "--past", "--label"], columns=110, NO_COLOR="1")
    screen = ""
    for key in [*keys, *([end] if end else [])]:
        child.expect_exact("Letter (Enter is d): ")
        screen += f"{child.before}{child.after}"
        child.send(key if key == end else f"{key}\r")
    return ended(child, screen)


def cases(box: Sandbox) -> list[tuple[str, str]]:
    """What the kept cases say: the label, and who gave it."""
    found = [json.loads(p.read_text("utf-8")) for p in (box.state / "cases").glob("*.json")]
    return sorted((c["label"]["expect"], c["label"]["by"]) for c in found)


@pytest.mark.full("a pseudo-terminal is driven")
def test_one_letter_for_each_answer(box: Sandbox) -> None:
    """Right, wrong, my turn, don't know: kept as cases, counted with the interval, and nothing is changed."""
    sessions(box, 6)  # four of them are sent back
    code, screen = labelled(box, "rwtd")
    assert code == 0
    for words in ("1 of 4", "4 of 4", "you asked", "Fix the rounding", "Task Incomplete", "HIGH"):
        assert words in screen
    assert "1 of 3 looked at were right: 6–79 %" in " ".join(screen.split())  # noqa: RUF001
    assert 'judge.mode = "observe"' in screen
    assert cases(box) == [("awaiting_user", "person"), ("complete", "person"), ("incomplete", "person")]
    said(reflectd(box, "case", "list"), 0, "not done", "your turn")
    assert "No setting was changed" in screen
    assert not (box.home / ".config" / "reflectd" / "config.toml").exists()
    found = json.loads(reflectd(box, "backtest", "--json").stdout)["labels"]
    assert (found["sent"], found["looked_at"], found["right"], found["unknown"]) == (4, 3, 1, 1)
    said(reflectd(box, "backtest"), 0, "By your answers: of 4 that would have been sent, 1 of 3")
    name = next((box.state / "cases").glob("*.json"))
    said(reflectd(box, "judge", name, "--provider", "offline"), 10, "not done HIGH", "label")


@pytest.mark.full("a pseudo-terminal is driven")
def test_it_goes_on_where_it_was_left(box: Sandbox) -> None:
    """Stopping, Ctrl-C and Ctrl-D keep what was said; the next time shows the rest."""
    sessions(box, 6)
    assert labelled(box, "rq")[0] == 0
    code, screen = labelled(box, "r", end="\x03")
    assert (code, "3 of 4 are left" in screen) == (130, True)
    code, screen = labelled(box, "r", end="\x04")
    assert (code, "2 of 4 are left" in screen) == (0, True)
    code, screen = labelled(box, "d")
    assert (code, "1 of 4 are left" in screen) == (0, True)
    assert cases(box) == [("incomplete", "person")] * 3
    assert "0 of 4 are left" in labelled(box, "")[1]


@pytest.mark.full("a pseudo-terminal is driven")
def test_enough_right_ones_propose_to_act(box: Sandbox) -> None:
    """20 of a larger number are shown; from 70 % at the lower end of the interval acting is proposed."""
    sessions(box, 36)  # 24 are sent back
    code, screen = labelled(box, "r" * 20)
    flat = " ".join(screen.split())
    assert code == 0
    assert "24 feedbacks would have been sent; 20 of 20 are left" in flat
    assert "20 of 20 looked at were right: 84–100 %" in flat  # noqa: RUF001
    assert 'judge.mode = "act"' in flat
    assert "mode = " not in reflectd(box, "config", "--changed").stdout
