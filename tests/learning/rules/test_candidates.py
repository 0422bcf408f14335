"""What a person typed, kept by its text until somebody reads it; keywords say what is looked at first."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.guards import ABORT_ERROR
from daemon.core.transcript import Message, Said, ToolCall, Transcript
from daemon.hosts.opencode.past import parse_export
from daemon.learning.rules.candidates import (
    HEAD,
    KEPT,
    KEYWORDS,
    LONGEST,
    PRIOR,
    Candidate,
    Gathering,
    Quote,
    Sighting,
    candidate_of,
    day_of,
    digest,
    findings,
    for_a_model,
    for_a_person,
    keep_quotes,
    merged,
    quote_of,
    said_in,
    stored,
    timestamp,
)
from harness.machine.sandbox import REPO
from tests.support.secrets import TOKENS

SECRET = TOKENS["anthropic"][0]
AT = 1_764_271_800_000  # 2025-11-27T19:30:00Z
WORK = "I set strict to false in tsconfig.json."
NO = "The user rejected permission to use this specific tool call"
REFUSED = f"{NO} with the following feedback: use pnpm, not npm"


def said(text: str, session: str = "ses_a", message: str = "m1", **more: Any) -> Said:
    prior = more.pop("prior", WORK)
    return Said(text, prior, session=session, message=message, at=more.pop("at", AT), **more)


def kept(text: str = "No, use strict mode", **more: Any) -> Candidate:
    found = candidate_of(said(text, **more))
    assert found is not None
    return found


# --- which messages ------------------------------------------------------------------------------------


@pytest.mark.shows("TR3")
@pytest.mark.parametrize(("kind", "word"), [(kind, w) for kind, found in KEYWORDS.items() for w in found])
def test_each_keyword_makes_a_candidate(kind: str, word: str) -> None:
    """Each word of the requirements, in any case and with a curly apostrophe, but not inside of a word."""
    apostrophe = "\N{RIGHT SINGLE QUOTATION MARK}"
    assert kind in kept(f"Hm, {word.upper()} tabs".replace("'", apostrophe)).why
    assert kind not in kept(f"The x{word}x is here").why


def test_a_refused_call_and_words_after_esc_are_looked_at_first() -> None:
    """Whatever their words; what has no reason is for a model alone, and after the rest."""
    plain, stopped = kept("nimm pnpm", message="1"), kept("kein npm", message="2", interrupted=True)
    refused = kept("pnpm bitte", message="3", refusal=True)
    assert (stopped.why, refused.why, plain.why) == (("interrupted",), ("refused",), ())
    assert for_a_person([plain, stopped, refused]) == [stopped, refused]
    assert for_a_model([plain, stopped, refused]) == [stopped, refused, plain]
    assert for_a_model([kept("Build a shop", prior="")]) == [], "it opens a task"


def test_praise_and_blame_alone_are_not_shown_to_a_person() -> None:
    """They make no rule; a model reads them."""
    praise = kept("Perfect, thank you")
    assert praise.why == ("positive",)
    assert (for_a_person([praise]), for_a_model([praise])) == ([], [praise])


@pytest.mark.shows("FR1")
def test_the_same_text_in_a_second_session_is_looked_at() -> None:
    """Case and marks do not count; a second time in one session does not, nor a word as "continue"."""
    gathering = Gathering()
    for n, text in enumerate(
        ("Use conventional commits", "use conventional commits.", "continue", "continue")
    ):
        gathering.take(said(text, f"ses_{n % 2}", str(n)))
    gathering.take(said("Use conventional commits", "ses_0", "9"))
    commits, go_on = gathering.kept.values()
    assert (commits.sessions, commits.reasons, len(commits.seen)) == (2, ("repeated",), 3)
    assert (go_on.sessions, go_on.reasons) == (2, ())
    assert for_a_person(gathering.kept.values()) == [commits]


@pytest.mark.parametrize("text", ["", "  ", "/reflect", "x" * (LONGEST + 1)])
def test_what_is_no_candidate(text: str) -> None:
    """Nothing, a command, and a text that is a task or was pasted."""
    assert candidate_of(said(text)) is None


@pytest.mark.shows("I44", "I46")
def test_what_is_kept_is_bounded_and_holds_no_secret() -> None:
    """Neither the text nor the agent's words, which are redacted before they are cut."""
    long = kept("y" * (HEAD - 20) + f" {SECRET}", prior=f"{SECRET} " + "z" * (PRIOR - 20))
    assert (len(long.text) <= HEAD, len(long.prior) <= PRIOR) == (True, True)
    assert SECRET[:12] not in json.dumps(long.object())
    many = {str(n): replace(kept("plain text"), key=str(n), why=()) for n in range(KEPT)}
    asked = kept("Always use tabs")
    found = merged({asked.key: asked}, many)
    assert (len(found), asked.key in found) == (KEPT, True), "one without a reason went"


# --- what is stored ------------------------------------------------------------------------------------


def test_two_scans_at_once_add_up() -> None:
    """The sightings of both, each message once; what is stored is read again as it was."""
    one = kept(session="a", message="1").with_seen(kept(session="b", message="2").seen)
    two = kept(session="b", message="2").with_seen(kept(session="c", message="3").seen)
    both = merged({one.key: one}, {two.key: two})[one.key]
    assert sorted(s.session for s in both.seen) == ["a", "b", "c"]
    assert stored(json.loads(json.dumps({one.key: one.object()}))) == {one.key: one}


@pytest.mark.shows("I43")
def test_what_is_stored_in_another_form_is_left_out() -> None:
    """The file may hold anything."""
    fine = kept().object()
    wrong = [None, [], {}, {**fine, "text": 1}, {**fine, "seen": []}, {**fine, "seen": [[1]]}]
    assert stored(dict(zip("abcdefg", [*wrong, fine], strict=True))).keys() == {"g"}


def test_a_text_that_was_read_is_counted_and_not_asked_about_again() -> None:
    """In the signal that it became; what taught nothing stays away; of another journal it is read anew."""
    key, none = kept().key, kept("Add a page").key
    signal = {"id": "sig-1", "type": "correction", "content": "Use strict mode", "severity": "high"}
    gathering = Gathering({}, {key: "sig-1", none: "none"}, [signal])
    gathering.take(said("No, use strict mode", "ses_b", "2"))
    gathering.take(said("Add a page"))
    (found,) = gathering.found
    assert (found.seen.content, found.seen.severity, found.key) == ("Use strict mode", "high", key)
    assert gathering.kept == {}
    other = Gathering({}, {key: "sig-1"}, [])
    other.take(said("No, use strict mode"))
    assert list(other.kept) == [key]


def test_what_it_was_read_as_is_counted_for_each_sighting() -> None:
    """With its words, and digests of session and message; "none" counts nothing."""
    gathering = Gathering()
    for n in "ab":
        gathering.take(said("No, use strict mode", f"ses_{n}", n))
    (candidate,) = gathering.kept.values()
    gathering.settle(candidate, "correction", "Use strict mode", "high", ("rule-001",))
    first, second = gathering.found
    assert (first.seen.session, first.seen.message) == (digest("ses_a"), digest("a"))
    assert (second.seen.content, second.seen.against) == ("Use strict mode", ("rule-001",))
    assert first.quote == Quote("No, use strict mode", WORK, "2025-11-27", "ses_a")
    assert (gathering.kept, gathering.nothing) == ({}, {})
    gathering.settle(kept("Add a page"), "none")
    assert (len(gathering.found), list(gathering.nothing)) == (2, [kept("Add a page").key])
    assert findings(candidate, "positive", "", "low")[0].seen.polarity == "positive"
    with pytest.raises(ValueError, match="no signal"):
        findings(candidate, "none", "", "low")


def test_quotes_are_the_newest_of_different_sessions() -> None:
    """Three at most, oldest first."""
    quotes: list[dict[str, Any]] = []
    for day, session in (("2026-01-02", "b"), ("2026-01-01", "a"), ("2026-01-04", "d"), ("2026-01-03", "c")):
        quotes = keep_quotes(quotes, Quote("t", "", day, session))
    assert [q["session"] for q in quotes] == ["b", "c", "d"]
    again = keep_quotes(quotes, Quote("new", "", "2026-01-05", "c"))
    assert [(q["session"], q["text"]) for q in again] == [("b", "t"), ("d", "t"), ("c", "new")]
    one = Candidate("k", "two\nlines", "his\nwords", (), (Sighting("s", "m", "d", "f.jsonl", 3),))
    assert quote_of(one, one.seen[0]) == Quote("two lines", "his words", "d", "s", "f.jsonl", 3)


@pytest.mark.shows("POISON_PATH-3")
def test_no_machine_learning_is_loaded_for_it() -> None:
    """Candidates and the journal need nothing but the standard library."""
    code = (
        "import sys; import daemon.learning.rules.journal, daemon.learning.rules.candidates;"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'numpy', 'onnxruntime', 'tokenizers'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.strip() == "[]"


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
    json.dumps({key: c.object() for key, c in gathering.kept.items()})
    assert len(gathering.kept) <= 1


# --- a session that is read as a whole -------------------------------------------------------------------


def human(name: str, text: str) -> Message:
    return Message(name, "user", 5, text, human=True)


def answer(name: str, text: str, *calls: ToolCall, error: str = "") -> Message:
    return Message(name, "assistant", 6, text, calls=calls, error=error)


def test_a_message_comes_with_the_agents_words_before_it() -> None:
    """All that the agent said since the last message; nothing that we or the host said."""
    messages = (
        human("u1", "Add a list"),
        answer("a1", "I look at the code."),
        answer("a2", "I added a list."),
        Message("n", "user", 6, "## Reflection-3: go on", order="rfl_1"),
        answer("a3", "Now it is done."),
        human("u2", "No, use a table"),
        human("u3", "   "),
    )
    first, second = said_in(Transcript("ses_1", messages))
    assert (first.text, first.prior, first.message, first.at) == ("Add a list", "", "u1", 5)
    assert second.prior == "I look at the code.\n\nI added a list.\n\nNow it is done."
    assert (second.session, second.interrupted, second.refusal) == ("ses_1", False, False)


def test_words_at_a_refused_call_and_after_esc() -> None:
    """opencode's own words for a refusal with feedback; an aborted answer marks what comes after it."""
    call = ToolCall("c1", "bash", "error", {"command": "npm install x"}, error=REFUSED, ended=7)
    plain = replace(call, id="c2", error=f"{NO}.")
    messages = (
        human("u1", "Install x"),
        answer("a1", "I install it.", call, plain, error=ABORT_ERROR),
        human("u2", "only the types"),
    )
    _, refused, after = said_in(Transcript("s", messages))
    assert (refused.text, refused.refusal, refused.at) == ("use pnpm, not npm", True, 7)
    assert refused.prior == "I install it.\n\nbash: npm install x"
    assert refused.message == "a1/c1"
    assert after.interrupted


def test_a_real_export() -> None:
    """opencode 1.18: what the person typed, and not what reflectd told the agent."""
    found = json.loads((REPO / "tests" / "data" / "exports" / "opencode_1.18.json").read_bytes())
    told = said_in(parse_export(found))
    assert [s.text for s in told] == ["Write hello.py; make test must pass"]
    assert told[0].session.startswith("ses_")
