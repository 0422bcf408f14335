"""The memory's questions: what is looked at, asked, read, and what follows (AC-2.6.1, AC-2.6.2, AC-2.6.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.core.cuts import tokens
from daemon.core.errors import BadReply, Unavailable
from daemon.core.evidence import Act, Evidence, FileChange, Row
from daemon.core.llm import Reply
from daemon.core.question import Answer, Question, ask
from daemon.core.transcript import Model
from daemon.core.verdict import Missing, Severity, Verdict
from daemon.judge.case import Case
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.questions import (
    LESSON_CHARS,
    SHOWN,
    TASK_CHARS,
    Failure,
    context_of,
    failure,
    how_good,
    identity,
    named_by,
    or_whole,
    reflection,
    should_reflect,
    what_went_wrong,
    which_lessons,
)
from daemon.paths import shipped

TEXTS = {p.stem: p.read_text("utf-8") for p in shipped("prompts").glob("*.txt")}
OPEN = Row("E1", "check", "pytest tests/parser: 1 failed", "failed", open=True, command="pytest tests/parser")
EVIDENCE = Evidence(
    rows=(OPEN, Row("E2", "write", "a.py")),
    log=(Act("A1", "ls", rank=3), Act("A2", "pytest", ("1 failed",), rank=0)),
    files=(FileChange("a.py", "edited", ("A1",), 3, 1),),
)
SECRET = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
LESSONS = [
    Episode(f"id{n}", "/p", f"Task {n}", -1.0, "", f"Do {n} first.", "", "confirmed") for n in range(1, 60)
]
WRONG = what_went_wrong("q", ("c",), "a", -0.6, "why")
GOOD = how_good("q", ("c",), "a")


def ended(question: Question[Any], answer: Exception | str) -> Answer[Any]:
    """What the question ends with after its one call."""
    flow = ask(replace(question, nonce="n1"), TEXTS)
    next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.throw(answer) if isinstance(answer, Exception) else flow.send(Reply(answer, "p", "m"))
    found: Answer[Any] = stop.value.value
    return found


@pytest.mark.parametrize("question", [WRONG, GOOD, which_lessons("t", LESSONS)], ids=["why", "good", "which"])
def test_no_answer(question: Question[Any]) -> None:
    """A model that is not there leaves a reason and nothing bad; a reply of another form is kept, and not
    asked for again.
    """
    found = ended(question, Unavailable("down"))
    assert ("down" in found.why, found.reply, found.bad) == (True, None, ())
    assert [b.raw for b in ended(question, BadReply("cut off", "half")).bad] == ["half"]
    assert len(ended(question, "  ").bad) == 1


# --- which lessons belong to a task ----------------------------------------------------------------


def test_what_is_asked_about_a_task() -> None:
    """Rules apart from data, the data between marks of the call; so many lessons, cut, without secrets."""
    many = [replace(LESSONS[0], lesson=f"Never use {SECRET}. {'long ' * 900}"), *LESSONS]
    question = which_lessons(f"Use {SECRET}. {'y' * 90_000}", many, Model("p", "m"))
    prompt = replace(question, nonce="n1").prompt(TEXTS)
    assert (prompt.purpose, prompt.tier, prompt.model) == ("lessons", "fast", Model("p", "m"))
    assert "{" in prompt.system
    assert "n1" not in prompt.system
    rows = [json.loads(line) for line in prompt.text.splitlines() if line.startswith('{"n":')]
    assert [row["n"] for row in rows] == list(range(1, SHOWN + 1))
    assert rows[1] == {"n": 2, "task": "Task 1", "lesson": "Do 1 first."}
    assert len(rows[0]["lesson"]) <= LESSON_CHARS + 100
    assert len(prompt.text) < TASK_CHARS + SHOWN * 200 + 2_000
    assert SECRET not in prompt.text


@pytest.mark.parametrize(
    ("numbers", "ids"),
    [([], []), ([2], ["id2"]), ([3, 1, 3], ["id3", "id1"]), ([4, 3, 2, 1], ["id4", "id3", "id2"])],
)
def test_at_most_three_or_none(numbers: list[int], ids: list[str]) -> None:
    """In the model's order, each once."""
    found = ended(which_lessons("t", LESSONS), f"So: {json.dumps({'nonce': 'n1', 'lessons': numbers})}")
    assert [e.id for e in named_by(found.reply, LESSONS)] == ids


@pytest.mark.shows("I27")
@pytest.mark.parametrize(
    "said",
    [
        '{"nonce": "other", "lessons": [1]}',
        '{"nonce": "n1", "lessons": "1"}',
        '{"nonce": "n1", "lessons": [1.5]}',
        '{"nonce": "n1", "lessons": [41]}',
        '{"nonce": "n1", "lessons": [0]}',
        "number 1",
    ],
)
def test_an_answer_of_another_form_is_no_lesson(said: str) -> None:
    """It is kept as a dead letter. A lesson that was not shown is none, and neither is an echo."""
    found = ended(which_lessons("t", LESSONS), said)
    assert named_by(found.reply, LESSONS) == []
    assert [b.purpose for b in found.bad] == ["lessons"]


# --- how good an answer is --------------------------------------------------------------------------


def test_an_evaluation() -> None:
    """The reward with its reasons."""
    found = ended(GOOD, 'So: {"nonce": "n1", "reasoning": "Why.", "reward": -0.25}')
    assert (found.reply.reward, found.reply.reasoning, found.model) == (-0.25, "Why.", "m")


@pytest.mark.shows("I27")
@pytest.mark.parametrize("said", ['"high"', "true", "null", "NaN", "[1]", '0.5, "nonce": "other"'])
def test_an_evaluation_without_a_number(said: str) -> None:
    """No reward is made up, and an object that the answer itself holds does not count: it lacks the nonce."""
    found = ended(GOOD, f'{{"nonce": "n1", "reasoning": "Why.", "reward": {said}}}')
    assert (found.reply, len(found.bad)) == (None, 1)


# --- what went wrong --------------------------------------------------------------------------------


def verdict(severity: Severity = Severity.HIGH, **more: Any) -> Verdict:
    missing = (Missing("The tests fail.", "E1"),)
    return Verdict("s1", "t1", "u1", "incomplete", 7, severity, "Run them.", missing, **more)


def judged(requests: tuple[str, ...], final: str, evidence: Evidence, **more: Any) -> Case:
    return Case("s1", "t1", "u1", 7, "n", requests, (), final, evidence, {}, **more)


def failed(evidence: Evidence = EVIDENCE, **more: Any) -> Failure:
    found = failure(verdict(), judged(("Fix the parser",), "All done.", evidence, **more), "/w", "h")
    assert found is not None
    return found


@pytest.mark.shows("AC-2.6.1")
def test_a_failure_holds_the_four_inputs() -> None:
    """Query, context, answer, reasoning; the row that proves it, and the command that failed. Without an open
    row nothing is proven.
    """
    found = failed(rounds=("round 1: Run the tests.",))
    e = found.episode
    assert (e.query, found.answer, e.reward) == ("Fix the parser", "All done.", -0.6)
    assert found.context == (
        "E1 [check failed] pytest tests/parser: 1 failed",
        "E2 [write] a.py",
        "A2 pytest → 1 failed",
        "a.py (edited, +3 -1)",
    )
    for part in ("incomplete, severity HIGH", "open: The tests fail.", "round 1", "Run them."):
        assert part in found.reasoning
    assert e.proof == "E1 [check] pytest tests/parser: 1 failed"
    assert (e.files, e.triggers) == (("a.py",), ("pytest tests/parser",))
    assert failed(replace(EVIDENCE, rows=(replace(OPEN, open=False),))).episode.proof == ""


@pytest.mark.shows("AC-2.6.1")
@pytest.mark.parametrize(
    ("more", "proves"),
    [({}, True), ({"id": "E9"}, False), ({"settled": True}, False), ({"outcome": "passed"}, False)],
    ids=["cited", "not cited", "older than the work", "passed"],
)
def test_a_failed_check_that_the_verdict_cites_is_proof(more: dict[str, Any], *, proves: bool) -> None:
    """Where only text was written no row is open by itself; the judge says that this one counts."""
    row = replace(OPEN, open=False, outcome="failed", position="after_last_write")
    e = failed(replace(EVIDENCE, rows=(replace(row, **more),))).episode
    assert bool(e.proof) is bool(e.triggers) is proves


def test_the_most_decisive_lines_are_kept() -> None:
    """A budget drops what is routine first."""
    log = tuple(Act(f"A{i}", f"step {i} " + "x" * 200, rank=1) for i in range(200))
    found = context_of(replace(EVIDENCE, log=log), 500)
    assert sum(map(tokens, found)) <= 500
    assert found[0].startswith("E1 ")
    assert "A199" in found[-1] or "a.py" in found[-1]


def test_the_last_failure_stands_as_it_was_printed() -> None:
    """The line that says why is not always one that is picked; of earlier failures the picked ones do."""
    printed = ("| test_whisper ... FAIL: CHANGELOG.md does not name whisper()", "| FAILED (failures=1)")
    log = tuple(Act(f"A{n}", "make test", ("FAILED (failures=1)",), printed, rank=0) for n in (1, 2))
    found = context_of(replace(EVIDENCE, log=log))
    assert [line for line in found if line.startswith("A")] == [
        "A1 make test → FAILED (failures=1)",
        "A2 make test → " + "\n".join(printed),
    ]


@pytest.mark.parametrize(("severity", "requests"), [(Severity.NONE, ("Fix it",)), (Severity.HIGH, ("  ",))])
def test_nothing_is_kept_without_words_of_the_person(severity: Severity, requests: tuple[str, ...]) -> None:
    """No words, no task; a verdict of no severity has a reward of its own."""
    found = failure(verdict(severity), judged(requests, "", Evidence()), "/w", "h")
    assert (found is None) is not bool(requests[0].strip())


@pytest.mark.shows("AC-2.6.1")
def test_the_question_of_the_daemon() -> None:
    """The requirements' text as it is, with the rules for lessons before it."""
    found = failed().question.prompt(TEXTS)
    assert found.system == TEXTS["reflexion_rules"]
    head, tail = TEXTS["reflexion"].split("{reward_score}")[0], TEXTS["reflexion"].split("reasoning}")[1]
    assert found.text.startswith(head)
    assert found.text.endswith(tail)
    assert (found.purpose, found.tier) == ("haiku_reflexion", "fast")
    wanted = (0.7, 1_000, "claude-3-5-haiku-20241022")
    assert (found.temperature, found.max_tokens, found.wanted) == wanted


@pytest.mark.shows("AC-2.6.2", "SUBTASK-1.3")
@pytest.mark.parametrize(
    "text",
    [
        "Problem: It broke\nin two.\n\nLesson: Look first,\nthen cut.",
        "Here it is.\n**Problem:** It broke\n  in two.\n**Lesson:** Look first,\n  then cut.",
        "problem: It broke in two.\nLESSON:\nLook first,\nthen cut.",
        "## Problem: It broke in two.\n## Lesson: Look first, then cut.",
    ],
)
def test_problem_and_lesson_over_several_lines(text: str) -> None:
    """Each section goes to the next, its lines joined by spaces."""
    found = reflection(ended(WRONG, text).reply)
    assert found == or_whole(text)
    assert found is not None
    assert (found.problem, found.lesson) == ("It broke in two.", "Look first, then cut.")
    assert found.full == text


@pytest.mark.shows("AC-2.6.2", "SUBTASK-1.3")
@pytest.mark.parametrize(
    "text",
    ["Look first.", "Problem: It broke.", "Lesson learned the hard way", "Lesson:", '{"complete": true}'],
)
def test_without_a_lesson_the_whole_reply_is_one_for_the_library_only(text: str) -> None:
    """The fallback, also where only the problem was named. The daemon takes it for no lesson."""
    found = ended(what_went_wrong("q", ("c",), "a", -0.6, "why", whole=True), text)
    assert (or_whole(found.reply).problem, or_whole(found.reply).lesson) == ("", text)
    assert (ended(WRONG, text).reply, len(ended(WRONG, text).bad)) == (None, 1)


@pytest.mark.shows("SUBTASK-2.1")
@pytest.mark.parametrize(("reward", "says"), [(0.29, True), (0.3, False), (None, False), (-1.0, True)])
def test_the_trigger(reward: float | None, *, says: bool) -> None:
    """Below 0.3; what was not judged triggers nothing."""
    assert should_reflect(reward) is says


def test_one_episode_for_a_task() -> None:
    """Its id follows from session and task, so a second try stores nothing."""
    assert identity("s1", "t1") != identity("s1", "t2")
    assert identity("a", "bc") != identity("ab", "c")
