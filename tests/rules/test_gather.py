"""What sessions hold, gathered: signals, plain instructions that come twice, what a model gets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.transcript import Said
from daemon.rules.gather import (
    ASKED,
    Gathering,
    Held,
    Quote,
    day_of,
    digest,
    finding,
    keep_quotes,
    merge_asked,
    plain_instruction,
    signal_of,
    timestamp,
)
from daemon.rules.signals import Reading, read
from tests.support.secrets import TOKENS

SECRET = TOKENS["anthropic"][0]
AT = 1_764_271_800_000  # 2025-11-27T19:30:00Z
WORK = "I set strict to false in tsconfig.json."


def said(text: str, session: str = "ses_a", message: str = "m1", **more: Any) -> Said:
    return Said(
        text, more.pop("prior", WORK), session=session, message=message, at=more.pop("at", AT), **more
    )


@pytest.mark.shows("FR1")
def test_a_signal_has_the_agreed_form() -> None:
    """Type, content, context, severity, timestamp, source file; where it stands, and how sure it is."""
    words = said("No, use strict mode", line=12)
    assert signal_of(words, read(words), "session-abc123.jsonl") == {
        "type": "correction",
        "content": "Use strict mode",
        "context": WORK,
        "severity": "medium",
        "confidence": 0.85,
        "timestamp": "2025-11-27T19:30:00Z",
        "source_file": "session-abc123.jsonl",
        "line": 12,
        "session": "ses_a",
    }
    praise = said("Perfect, exactly what I wanted", prior="Done.")
    found = signal_of(praise, read(praise), "f")
    assert (found["type"], found["polarity"]) == ("feedback", "positive")


def test_the_journal_gets_digests_and_the_state_folder_words() -> None:
    """Who reads the journal learns no session and no message; the quote has both, and the agent's words."""
    gathering = Gathering()
    gathering.take(said("No, use strict mode", line=3), "a.jsonl")
    (found,) = gathering.taken()
    assert (found.seen.session, found.seen.message) == (digest("ses_a"), digest("m1"))
    assert found.seen.day == "2025-11-27"
    assert found.quote == Quote("No, use strict mode", WORK, "2025-11-27", "ses_a", "a.jsonl", 3)
    assert gathering.taken() == []


@pytest.mark.shows("I46")
def test_nothing_leaves_with_a_secret() -> None:
    """Neither in the content nor in the quote or what the agent had said."""
    words = said(f"No, use the key {SECRET}", prior=f"I use {SECRET}.")
    found = finding(words, read(words))
    assert SECRET not in json.dumps([found.seen.content, found.quote.text, found.quote.context])
    assert "[redacted:" in found.quote.text


@pytest.mark.shows("FR1")
def test_a_plain_instruction_counts_from_the_second_session_on() -> None:
    """The same instruction twice. Once, or twice in one session, it is only a task."""
    gathering = Gathering()
    for n, session in enumerate(["a", "a", "b", "c"]):
        gathering.take(said("Use conventional commits for this.", session, f"m{n}", prior=""))
        gathering.take(said("use conventional commits", session, f"n{n}", prior=""))
    found = gathering.taken()
    kinds = {(f.seen.content, f.seen.type, f.seen.severity) for f in found}
    assert kinds == {("Use conventional commits", "instruction", "low")}
    assert {f.seen.session for f in found} == {digest(s) for s in "abc"}


@pytest.mark.shows("I44")
def test_what_waits_is_bounded_and_survives_damage() -> None:
    """At most so many instructions wait, the newest; what is no entry is replaced."""
    gathering = Gathering({"convention commit": {"seen": "broken"}, **{f"k{n}": {} for n in range(ASKED)}})
    gathering.take(said("Use conventional commits", prior=""))
    assert len(gathering.asked) == ASKED
    assert list(gathering.asked.values())[-1] == {
        "content": "Use conventional commits",
        "seen": [[digest("ses_a"), digest("m1"), "2025-11-27"]],
    }


def test_two_scans_at_once_wait_together() -> None:
    """What another scan stored meanwhile is added, each sighting once."""
    mine = {"k": {"content": "c", "seen": [["a", "1", "d"]]}}
    merge_asked(mine, {"k": {"content": "c", "seen": [["a", "1", "d"], ["b", "2", "d"]]}, "x": {"seen": 1}})
    assert mine == {"k": {"content": "c", "seen": [["a", "1", "d"], ["b", "2", "d"]]}}


def test_which_instructions_may_be_repeated() -> None:
    """How to work, in a few words, and not about something at hand."""
    assert plain_instruction(said("please use conventional commits")) == "Use conventional commits"
    for text in ("use it", "fix the bug", "use tabs?", "keep going", "Use " + "x " * 20):
        assert plain_instruction(said(text)) == ""


def test_quotes_are_of_different_sessions() -> None:
    """Three at most, the newest; a second one of a session takes the place of the first."""
    kept: list[dict[str, Any]] = [{"session": "x", "day": "2020-01-01"}]
    for n, session in enumerate(["a", "b", "b", "c"]):
        kept = keep_quotes(kept, Quote(f"q{n}", "", f"2026-01-0{n + 1}", session))
    assert [q["text"] for q in kept] == ["q0", "q2", "q3"]


def test_what_a_model_gets() -> None:
    """Signals and doubtful messages, each once, none that was decided before, and not too many."""
    held = Held({digest("known")}, most=2)
    gathering = Gathering(held=held)
    gathering.take(said("No, use strict mode", message="1"))
    gathering.take(said("No, use strict mode", message="1"))
    gathering.take(said("Nein, nimm strict für alles", message="2"))
    gathering.take(said("continue", message="3"))
    assert [m[0].message for m in held.messages] == ["1", "2"]
    gathering.take(said("No, use strict mode", message="known"))
    gathering.take(said("No, use strict mode", message="4"))
    assert [f.seen.message for f in gathering.taken()] == [digest("1"), digest("known"), digest("4")]
    gathering.settle(said("x", message="2"), Reading("correction", "Use strict mode", "high", 0.9))
    assert [f.seen.severity for f in gathering.taken()] == ["high"]


@given(at=st.integers(-(1 << 63), 1 << 63))
def test_any_time_is_a_day_or_none(at: int) -> None:
    """What is no time becomes no text."""
    assert (len(day_of(at)), len(timestamp(at))) in {(10, 20), (0, 0)} or at > 253_402_300_799_000


@given(text=st.text(max_size=300), session=st.text(max_size=20), message=st.text(max_size=20))
def test_any_message_is_taken(text: str, session: str, message: str) -> None:
    """Nothing is raised, also for half characters, and everything that is gathered can be written as JSON."""
    gathering = Gathering()
    for n in "ab":
        gathering.take(said(text, session + n, message + n))
    json.dumps([gathering.asked, [f.quote.text for f in gathering.taken()]])
