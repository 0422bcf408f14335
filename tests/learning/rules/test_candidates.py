"""What a person typed, kept by its text until somebody reads it; keywords say what is looked at first."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.guards import ABORT_ERROR
from daemon.core.transcript import Message, Said, ToolCall, Transcript
from daemon.hosts.opencode.past import parse_export
from daemon.learning.rules.candidates import (
    HEAD,
    KEPT,
    KEYWORDS,
    LONGEST,
    NOTHING,
    PRIOR,
    Candidate,
    candidate_of,
    for_a_model,
    for_a_person,
    merged,
    quotes_of,
    said_in,
    stored,
    timestamp,
)
from daemon.learning.rules.journal import Sighting
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


def take(found: dict[str, Candidate], text: str, **more: Any) -> None:
    """One more message, as a scan keeps it."""
    one = candidate_of(said(text, **more))
    if one is not None:
        found.update(merged({one.key: one}, found))


@pytest.mark.shows("TR3")
@pytest.mark.parametrize(("kind", "word"), [(kind, w) for kind, found in KEYWORDS.items() for w in found])
def test_each_keyword_makes_a_candidate(kind: str, word: str) -> None:
    """Each word of the requirements, in any case and with a curly apostrophe, but not inside of a word."""
    apostrophe = "\N{RIGHT SINGLE QUOTATION MARK}"
    assert kind in kept(f"Hm, {word.upper()} tabs".replace("'", apostrophe)).why
    assert kind not in kept(f"The x{word}x is here").why


def test_what_is_looked_at_first() -> None:
    """A refused call and words after Esc, whatever their words; praise and what has no reason are for a model
    alone; what opens a task is for nobody.
    """
    plain, stopped = kept("nimm pnpm", message="1"), kept("kein npm", message="2", interrupted=True)
    refused, praise = kept("pnpm bitte", message="3", refusal=True), kept("Perfect, thank you")
    assert [c.why for c in (stopped, refused, plain, praise)] == [
        ("interrupted",), ("refused",), (), ("positive",),
    ]  # fmt: skip
    assert for_a_person([plain, stopped, praise, refused]) == [stopped, refused]
    assert for_a_model([plain, stopped, refused]) == [stopped, refused, plain]
    assert for_a_model([praise, kept("Build a shop", prior="")]) == [praise]
    assert [candidate_of(said(text)) for text in ("", " ", "/reflect", "x" * (LONGEST + 1))] == [None] * 4


@pytest.mark.shows("FR1")
def test_the_same_text_in_a_second_session_is_looked_at() -> None:
    """Case and marks do not count; a second time in one session does not, nor a word as "continue"."""
    found: dict[str, Candidate] = {}
    texts = ("Use conventional commits", "use conventional commits.", "continue", "continue")
    for n, text in enumerate(texts):
        take(found, text, session=f"ses_{n % 2}", message=str(n))
    take(found, "Use conventional commits", session="ses_0", message="9")
    commits, go_on = found.values()
    assert (commits.sessions, commits.reasons, len(commits.seen)) == (2, ("repeated",), 3)
    assert (go_on.sessions, go_on.reasons) == (2, ())
    assert for_a_person(found.values()) == [commits]


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


@pytest.mark.shows("I43")
def test_what_is_stored_is_read_as_it_was() -> None:
    """Two scans at once add up, each message once; entries of another form are left out."""
    one = kept(session="a", message="1").with_seen(kept(session="b", message="2").seen)
    two = kept(session="b", message="2").with_seen(kept(session="c", message="3").seen)
    both = merged({one.key: one}, {two.key: two})[one.key]
    assert sorted(s.session for s in both.seen) == ["a", "b", "c"]
    fine = json.loads(json.dumps(one.object()))
    wrong = [None, [], {}, {**fine, "text": 1}, {**fine, "seen": []}, {**fine, "seen": [[1]]}]
    assert stored(dict(zip([*"abcdef", one.key], [*wrong, fine], strict=True))) == {one.key: one}


def test_what_became_of_a_text_is_kept() -> None:
    """Of one that teaches nothing only the key; one whose signal is in no journal any more waits again."""
    read, none = replace(kept(), became="sig-1"), Candidate("n", "", became=NOTHING)
    entries = {c.key: json.loads(json.dumps(c.object())) for c in (read, none)}
    assert entries["n"] == {"became": NOTHING}
    assert stored(entries, {"sig-1"}) == {read.key: read, "n": none}
    assert stored(entries)[read.key] == kept()
    assert merged({"n": replace(kept(), key="n")}, {"n": none}) == {"n": none}


def test_quotes_are_the_newest_of_different_sessions() -> None:
    """Three at most, oldest first, each on one line."""
    said_then = [
        Candidate(str(n), "two\nlines", "his\nwords", (), (Sighting(at[0], "m", f"2026-01-0{at[1]}"),), "s")
        for n, at in enumerate(("b2", "a1", "d4", "c3", "c5"))
    ]
    quotes = quotes_of([*said_then, kept()], "s")
    assert [(q["session"], q["day"][-1]) for q in quotes] == [("b", "2"), ("d", "4"), ("c", "5")]
    assert (quotes[0]["text"], quotes[0]["context"]) == ("two lines", "his words")


@pytest.mark.shows("POISON_PATH-3")
def test_no_machine_learning_is_loaded_for_it() -> None:
    """Candidates and the journal need none."""
    code = (
        "import sys; import daemon.learning.rules.journal, daemon.learning.rules.candidates;"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'numpy', 'onnxruntime', 'tokenizers'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.strip() == "[]"


@given(
    text=st.text(max_size=300), session=st.text(max_size=20), message=st.text(max_size=20),
    at=st.integers(-(1 << 63), 1 << 63),
)  # fmt: skip
def test_any_message_is_taken(text: str, session: str, message: str, at: int) -> None:
    """Nothing is raised, also for half characters and odd times, and all of it can be written as JSON."""
    found: dict[str, Candidate] = {}
    for n in "ab":
        take(found, text, session=session + n, message=message + n, at=at)
    json.dumps({key: c.object() for key, c in found.items()})
    assert len(found) <= 1
    assert len(timestamp(at)) in {20, 0} or at > 253_402_300_799_000


# --- a session that is read as a whole -------------------------------------------------------------------


def answer(name: str, text: str, *calls: ToolCall, error: str = "") -> Message:
    return Message(name, "assistant", 6, text, calls=calls, error=error)


def test_a_message_comes_with_the_agents_words_before_it() -> None:
    """All that the agent said since the last message; nothing that we or the host said. opencode's own words
    for a refusal with feedback; an aborted answer marks the message after it.
    """
    call = ToolCall("c1", "bash", "error", {"command": "npm install x"}, error=REFUSED, ended=7)
    plain = replace(call, id="c2", error=f"{NO}.")
    messages = (
        Message("u1", "user", 5, "Add a list", human=True),
        answer("a1", "I look at the code."),
        Message("n", "user", 6, "## Reflection-3: go on", order="rfl_1"),
        answer("a2", "I install it.", call, plain, error=ABORT_ERROR),
        Message("u2", "user", 8, "only the types", human=True),
        Message("u3", "user", 9, "   ", human=True),
    )
    first, refused, after = said_in(Transcript("ses_1", messages))
    assert (first.text, first.prior, first.message, first.at) == ("Add a list", "", "u1", 5)
    assert (refused.text, refused.refusal, refused.at) == ("use pnpm, not npm", True, 7)
    assert refused.prior == "I look at the code.\n\nI install it.\n\nbash: npm install x"
    assert refused.message == "a2/c1"
    assert (after.text, after.interrupted, after.session) == ("only the types", True, "ses_1")


def test_a_real_export() -> None:
    """opencode 1.18: what the person typed, and not what reflectd told the agent."""
    export = json.loads((REPO / "tests" / "data" / "exports" / "opencode_1.18.json").read_bytes())
    assert [s.text for s in said_in(parse_export(export))] == ["Write hello.py; make test must pass"]
