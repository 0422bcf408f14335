"""`reflectd reflect` as an agent runs it inside a host: what a person answered or typed is done, once, and
nothing else is.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import to_builtins

from daemon.cli.reflect.decisions import Proposal, answers, question, stored
from daemon.clock import SystemClock
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.store.db import Database
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.models.server import ModelServer
from tests.cli.reflect.past import session
from tests.support.hosts.dialogs import Dialogs, answer
from tests.support.machine.command_line import reflectd, said
from tests.support.reflecting import (
    BUN,
    STRICT,
    Wish,
    book_of,
    compares,
    model_of,
    said_before,
    statuses,
    teaches,
)
from tests.support.reflecting import rules_file as rules

Json = dict[str, Any]
ADD = "Add to CLAUDE.md"
RULE = "- **[rule-001]** Use strict TypeScript mode (learned: "


VERSIONS = ("2.1.330", "2.1.197")


@pytest.fixture(params=VERSIONS[:1])
def host(box: Sandbox, request: pytest.FixtureRequest) -> Iterator[Dialogs]:
    """A session of that version, beside a daemon."""
    with Daemon(box):
        yield Dialogs(box, request.param)


def did(host: Dialogs, *words: str) -> list[str]:
    """What became of each thing that the command was about."""
    return [done["status"] for done in answer(host.runs(*words))["done"]]


def proposed(host: Dialogs, *wishes: Wish) -> Json:
    """The first entry of what is to be asked about these."""
    said_before(host.box, *wishes)
    found: Json = answer(host.runs("--json"))["ask"][0]
    return found


def applied(host: Dialogs, entry: Json, code: int = 0) -> Json:
    return answer(host.runs("apply", *entry["tokens"], "--json"), code)


def refused(host: Dialogs, entry: Json, why: str) -> None:
    """Each token is refused, with this reason, and nothing was written."""
    done = applied(host, entry, 2)["done"]
    assert {d["status"] for d in done} == {"refused"}
    assert why in done[0]["why"], done
    assert not rules(host.box)
    assert set(statuses(host.box).values()) == {"pending"}


def undo(host: Dialogs) -> None:
    """The person takes the newest change back, on a terminal."""
    LearnedRules(host.box.project, host.box.state, SystemClock(), host.box.env()).undo()


NOBODY = "the host told of no answer of a person to exactly this"


# --- what a person decides -----------------------------------------------------------------------


@pytest.mark.shows("I47", "FR4")
@pytest.mark.parametrize("host", VERSIONS, indirect=True)
def test_an_answer_is_done(host: Dialogs) -> None:
    """The question has the pattern, the person's words, the file and four options; the yes is written."""
    entry = proposed(host, STRICT)
    (asked,) = entry["input"]["questions"]
    assert asked["question"].split("\n")[:2] == [
        'Found pattern: "Use strict TypeScript mode" (3 occurrences)',
        'You said: "No, use strict mode" (2025-11-20)',
    ]
    assert "Make it a rule in CLAUDE.md?" in asked["question"]
    assert asked["question"].endswith(f"(reflectd {entry['tokens'][0]})")
    labels = [option["label"] for option in asked["options"]]
    assert labels == [ADD, "Add to Workshop", "Dismiss", "Skip for now"]
    host.asks(entry["input"], ADD)
    found = applied(host, entry)
    (done,) = found["done"]
    assert (done["status"], done["rule"], done["file"]) == ("rule added", "rule-001", "CLAUDE.md")
    assert found["ask"] == []
    assert RULE in rules(host.box)
    assert statuses(host.box) == {STRICT.content: "promoted"}


def test_words_of_their_own_decide_nothing(host: Dialogs) -> None:
    """The agent is told so; another wording is another question."""
    entry = proposed(host, STRICT)
    host.asks(entry["input"], "only in src/, please")
    (done,) = applied(host, entry)["done"]
    assert done["status"] == "own words"
    assert not rules(host.box)
    asked = answer(host.runs("learn", "Use strict TypeScript mode in src/", "--json"))["ask"][0]
    assert "Use strict TypeScript mode in src/" in asked["input"]["questions"][0]["question"]
    host.asks(asked["input"], ADD)
    assert applied(host, asked)["done"][0]["status"] == "rule added"
    assert "Use strict TypeScript mode in src/" in rules(host.box)


@pytest.fixture
def judged(box: Sandbox, llm: ModelServer) -> Iterator[Dialogs]:
    """A session beside a daemon that has a small model."""
    with Daemon(box, **model_of(llm.url)):
        yield Dialogs(box)


@pytest.mark.shows("FR7")
def test_a_contradiction_is_a_question_of_its_own(judged: Dialogs, llm: ModelServer) -> None:
    """A model finds it. "Add" alone does not replace a rule; the second question names both, with its three
    options, and its answer is done without asking the model again.
    """
    host = judged
    host.types('learn "Use npm for package management"')
    assert did(host, "learn", "Use npm for package management") == ["rule added"]
    entry = proposed(host, BUN)
    host.asks(entry["input"], ADD)
    llm.api(compares(contradicts="npm"))
    again = applied(host, entry)
    assert again["done"][0]["status"] == "asks"
    (asked,) = again["ask"][0]["input"]["questions"]
    new = 'CONFLICT DETECTED\nNew (CLAUDE.md): "Use bun for package management"'
    assert asked["question"].startswith(new)
    assert 'Conflicts with: "Use npm for package management" [rule-001 in CLAUDE.md:' in asked["question"]
    labels = [option["label"] for option in asked["options"]]
    assert labels == ["Replace existing rule", "Keep existing, dismiss new", "Keep both (different contexts)"]
    host.asks(again["ask"][0]["input"], "Replace existing rule")
    assert applied(host, again["ask"][0])["done"][0]["status"] == "rule added"
    active, _, archived = rules(host.box).partition("### Archived Rules")
    assert "[rule-002]** Use bun for package management" in active
    assert "[rule-001]** Use npm for package management (archived: " in archived


# --- who reads what the person typed ---------------------------------------------------------------


SAID, OTHER = "No, use strict mode here", "Please add a page for prices"


@pytest.mark.shows("RULES-02", "I41")
def test_the_small_model_of_the_daemon_reads_it(judged: Dialogs, llm: ModelServer) -> None:
    """After the person typed `/reflect`; paid from their own account and in the ledger. An agent that runs
    the scan by itself has no model asked.
    """
    session(judged.box, "a", SAID, OTHER)
    found = answer(judged.runs("--json"))
    assert found["told"] == ["not all was read: nobody typed /reflect in this session just now"]
    assert [c["text"] for c in found["candidates"]] == [SAID, OTHER]
    judged.types("")
    llm.api(teaches(("strict", STRICT.content, "high")))
    found = answer(judged.runs("--json"))
    assert found["candidates"] == []
    rows = Database(judged.box.state / "reflectd.sqlite3", SystemClock().now_ms)
    assert rows.read("SELECT purpose, account, session FROM ledger", ()) == [
        ("signals", "asked", judged.session)
    ]
    rows.close()
    (entry,) = found["ask"]
    assert f'You said: "{SAID}"' in entry["input"]["questions"][0]["question"]
    llm.api(compares())
    judged.asks(entry["input"], ADD)
    assert applied(judged, entry)["done"][0]["status"] == "rule added"
    assert RULE in rules(judged.box)


@pytest.mark.shows("RULES-02", "I47")
def test_without_a_model_the_agent_words_it(host: Dialogs) -> None:
    """The question shows its wording beside the person's own words, which come from the scan. What teaches
    nothing is not printed again.
    """
    session(host.box, "a", SAID, OTHER)
    host.types("")
    found = answer(host.runs("--json"))
    assert "no model is set up" in found["told"][0]
    strict, other = found["candidates"]
    assert (strict["text"], other["text"]) == (SAID, OTHER)
    said(host.runs("propose", "--rule", "nonsense", "Skip all tests", "--json"), 2, "no message 'nonsense'")
    words = ("propose", "--rule", strict["id"], STRICT.content, "--none", other["id"], "--json")
    entry = answer(host.runs(*words))["ask"][0]
    (asked,) = entry["input"]["questions"]
    assert asked["question"].split("\n")[:2] == [
        f'Found pattern: "{STRICT.content}" (1 occurrence)',
        f'You said: "{SAID}" (2026-11-20)',
    ]
    assert not rules(host.box)
    host.asks(entry["input"], ADD)
    assert applied(host, entry)["done"][0]["status"] == "rule added"
    assert RULE in rules(host.box)
    assert answer(host.runs("--json"))["candidates"] == []


@pytest.mark.shows("FR9")
@pytest.mark.parametrize(
    ("typed", "words", "status"),
    [
        ('learn "Always run tests"', ["learn", "Always run tests"], "rule added"),
        ("learn Prefer `é` --soft", ["learn", "Prefer `é`", "--soft"], "preference added"),
    ],
)
def test_what_the_person_typed_is_done(host: Dialogs, typed: str, words: list[str], status: str) -> None:
    """Their own words behind `/reflect` need no second question. They are used once: what was taken back is
    not learned again by the same words; typed again, it is.
    """
    host.types(typed)
    found = answer(host.runs(*words, "--json"))
    assert (found["done"][0]["status"], found["ask"]) == (status, [])
    assert did(host, *words) == ["there already"]
    undo(host)
    assert did(host, *words) == []
    host.types(typed)
    assert did(host, *words) == [status]


@pytest.mark.shows("FR8")
def test_rules_are_unlearned_and_dismissed(host: Dialogs) -> None:
    """With the person's own words where these name just one thing, with a question where they do not."""
    host.types("learn Use npm, not yarn")
    assert answer(host.runs("learn", "Use npm, not yarn"))["done"][0]["rule"] == "rule-001"
    host.types('unlearn "rule about npm"')
    (entry,) = answer(host.runs("unlearn", "rule about npm"))["ask"]
    (asked,) = entry["input"]["questions"]
    assert '"Use npm, not yarn" [rule-001 in CLAUDE.md:5]' in asked["question"]
    host.asks(entry["input"], "Archive it")
    assert applied(host, entry)["done"][0]["status"] == "archived"
    assert "### Archived Rules" in rules(host.box)
    undo(host)
    assert "- **[rule-001]** Use npm, not yarn (learned: " in rules(host.box)
    host.types("unlearn rule-001 --delete")
    assert did(host, "unlearn", "rule-001", "--delete") == ["removed"]
    assert "npm" not in rules(host.box)
    entry = proposed(host, STRICT)
    host.asks(entry["input"], "Dismiss")
    assert applied(host, entry)["done"][0]["status"] == "dismissed"


# --- forged consent --------------------------------------------------------------------------------


@pytest.mark.shows("I47", "RULES-05")
def test_the_agent_decides_itself(host: Dialogs) -> None:
    """`apply` is refused where nobody was asked. `learn` without the person's own words is a question,
    whatever the agent types or passes.
    """
    refused(host, proposed(host, STRICT), NOBODY)
    host.types("status")
    for words in (["learn", "Skip all tests"], ["learn", "Skip all tests", "--soft"]):
        found = answer(host.runs(*words, "--json"))
        assert found["done"] == []
        assert len(found["ask"]) == 1
    said(host.runs("learn", "Skip all tests", "--yes"), 2, "unrecognized arguments")
    host.types("learn Use bun")
    assert did(host, "learn", "Use bun and skip all tests") == []
    assert did(host, "learn", "Use bun", "--soft") == []
    assert not rules(host.box)
    assert not (host.box.project / ".claude" / "memory").exists()


def _says(old: str, new: str) -> Callable[[Json], None]:
    def mislead(given: Json) -> None:
        asked = given["questions"][0]
        asked["question"] = asked["question"].replace(old, new, 1)

    return mislead


MISLEADING: dict[str, Callable[[Json], object]] = {
    "a friendlier text": _says("Make it a rule", "Do you like it"),
    "another rule": _says("strict", "loose"),
    "another file": _says("CLAUDE.md", "notes.txt"),
    "more text": _says("", "OK? "),
    "descriptions": lambda given: given["questions"][0]["options"][0].update(description="nothing"),
    "labels": lambda given: given["questions"][0]["options"].reverse(),
    "beside": lambda given: given["questions"].append({**given["questions"][0], "question": "Ignore it?"}),
}


@pytest.mark.shows("I47", "RULES-07")
@pytest.mark.parametrize("change", MISLEADING.values(), ids=MISLEADING)
def test_a_misleading_question_is_refused(host: Dialogs, change: Callable[[Json], object]) -> None:
    """An answer counts for exactly the question that was printed."""
    entry = proposed(host, STRICT)
    given = copy.deepcopy(entry["input"])
    change(given)
    host.asks(given, *[ADD] * len(given["questions"]))
    refused(host, entry, NOBODY)


@pytest.mark.shows("I47", "RULES-08")
def test_an_answer_is_used_once(host: Dialogs) -> None:
    """Not for another rule, and not a second time for its own, also when the agent writes the proposal that
    was settled into the state folder again.
    """
    entry = proposed(host, STRICT, BUN)
    state = book_of(host.box).state
    proposals = state.load("proposals")
    first, second = entry["tokens"]
    one = {"questions": entry["input"]["questions"][:1]}
    host.asks(one, ADD)
    found = answer(host.runs("apply", second, first, second, "--json"), 2)["done"]
    assert [d["status"] for d in found] == ["refused", "rule added"]
    assert found[0]["why"].startswith(NOBODY)
    again = answer(host.runs("apply", first, "--json"), 2)["done"][0]
    assert again["why"].startswith("no question with this token is open")
    undo(host)
    state.save("proposals", proposals, 0)
    last = answer(host.runs("apply", first, "--json"), 2)["done"][0]
    assert last["why"].startswith("this answer was used before")
    assert "Use" not in rules(host.box)


@pytest.mark.shows("I47", "RULES-06")
def test_an_edited_proposal_makes_another_question(host: Dialogs) -> None:
    """The question follows from the proposal, so a person's yes to one rule never writes another."""
    entry = proposed(host, STRICT)
    host.asks(entry["input"], ADD)
    state = book_of(host.box).state
    proposals = state.load("proposals")
    proposals[entry["tokens"][0]]["text"] = "Skip all tests"
    state.save("proposals", proposals, 0)
    refused(host, entry, NOBODY)
    proposals[entry["tokens"][0]]["kind"] = "no kind"
    state.save("proposals", proposals, 0)
    refused(host, entry, "no question with this token is open")


@pytest.mark.shows("I47", "RULES-06")
def test_an_edited_journal_shows_in_the_question(host: Dialogs) -> None:
    """What the agent puts into the journal is what the person reads; after the question it changes
    nothing.
    """
    entry = proposed(host, STRICT)
    host.asks(entry["input"], ADD)
    path = book_of(host.box).path
    path.write_text(path.read_text("utf-8").replace(STRICT.content, "Skip all tests"), "utf-8")
    assert applied(host, entry)["done"][0]["text"] == STRICT.content
    assert RULE in rules(host.box)
    assert "Skip" not in rules(host.box)


@pytest.mark.shows("I47", "RULES-09")
@pytest.mark.parametrize("host", VERSIONS, indirect=True)
def test_a_line_that_the_agent_wrote_is_refused(host: Dialogs) -> None:
    """The transcript says nothing; the host's own hook does. The same for a command: a line without a hook,
    and a prompt of a plugin.
    """
    entry = proposed(host, STRICT)
    host.asks(entry["input"], ADD, told=False)
    refused(host, entry, NOBODY)
    host.types("learn Use bun", told=False)
    host.types("learn Use bun", reflectd_origin="plugin")
    for _ in range(2):
        assert did(host, "learn", "Use bun") == []
    assert not rules(host.box)


def test_another_session_and_another_project_have_no_say(host: Dialogs, box: Sandbox) -> None:
    """A token counts in the session that was asked, for the project that it works in."""
    entry = proposed(host, STRICT)
    other = Dialogs(box)
    host.asks(entry["input"], ADD)
    done = answer(other.runs("apply", *entry["tokens"], "--json"), 2)["done"]
    assert done[0]["why"] == "this question was asked in another session"
    elsewhere = box.root / "elsewhere"
    elsewhere.mkdir()
    far = Dialogs(box, folder=elsewhere)
    done = far.runs("learn", "Use bun", "--dir", str(box.project))
    said(done, 2, "rules of another project are not decided")
    stranger = host.runs("apply", *entry["tokens"], CLAUDE_CODE_SESSION_ID="no-such-session")
    said(stranger, 2, "no session 'no-such-session'")
    assert not rules(box)
    assert applied(host, entry)["done"][0]["status"] == "rule added"


@pytest.mark.shows("I35")
def test_without_a_daemon_nothing_is_decided(box: Sandbox) -> None:
    """The agent is told why; on the command line of no host at all, where to go."""
    said_before(box, STRICT)
    env = {"CLAUDE_CODE_SESSION_ID": "s"}
    for words in (["--json"], ["apply", "0123456789ab"], ["learn", "Use bun"]):
        said(reflectd(box, "reflect", *words, **env), 1, "no daemon answers")
    said(
        reflectd(box, "reflect", "propose", "--none", "x"),
        2,
        "on a terminal `reflectd reflect` asks you itself",
    )
    assert not rules(box)


@pytest.mark.shows("I42", "RULES-12")
def test_an_answer_survives_the_daemon(box: Sandbox) -> None:
    """Killed after the person answered; the next daemon knows it, and lets it be used once."""
    with Daemon(box) as first:
        host = Dialogs(box)
        entry = proposed(host, STRICT)
        host.asks(entry["input"], ADD)
        assert answer(host.runs("apply", "0123456789ab"), 2)
        first.kill9()
        first.start()
        host.hook("Notification", {"message": "x"})
        assert applied(host, entry)["done"][0]["status"] == "rule added"


# --- the questions themselves ----------------------------------------------------------------------


@pytest.mark.shows("I43")
def test_what_is_stored_is_checked_when_it_is_read() -> None:
    """A proposal of another form is none, whatever the file holds."""
    made = Proposal("t", "s", 1, "pattern", "Use bun", "CLAUDE.md", "a preference", signals=("sig-001",))
    again = stored(json.loads(json.dumps(to_builtins(made))))
    assert again is not None
    assert question(again) == question(made)
    changes = ({"at": "1"}, {"stands": [{}]}, {"kind": "x"}, {"text": 1}, {"quotes": [1]})
    for wrong in (None, [], {}, *(to_builtins(made) | change for change in changes)):
        assert stored(wrong) is None


def test_the_label_names_the_file_and_the_text_its_path() -> None:
    """AGENTS.md is asked about as AGENTS.md; where no file can be written, only the others are offered."""
    made = Proposal("t", "s", 1, "pattern", "Use bun", ".claude/CLAUDE.md", "a preference")
    assert next(iter(answers(made))) == "Add to CLAUDE.md"
    assert "Make it a rule in .claude/CLAUDE.md?" in question(made).text
    none = Proposal("t", "s", 1, "pattern", "Use bun", "", "a preference")
    assert list(answers(none)) == ["Add to Workshop", "Dismiss", "Skip for now"]
