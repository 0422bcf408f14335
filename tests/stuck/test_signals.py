"""Loop detectors: each kind of loop, each class of false alarm, and what must hold for any stream."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.stuck.signals import (
    IDLE,
    MAX_TEXTS,
    SIZE,
    Loop,
    Step,
    Window,
    asks_to_repeat,
    fold,
    found,
    loop_in,
    step_from_digests,
    step_of,
    steps,
)
from tests.stuck.samples import NOT_FOUND, quiet, session, tool
from tests.support.transcripts import bash, edit, read


def loop(*parts: ToolCall | str | Message, ask: str = "fix the parser") -> Loop:
    got = loop_in(session(*parts, ask=ask))
    assert got is not None
    return got


def test_the_same_call_with_the_same_result() -> None:
    """The fourth time is a loop, the third is not; its name is for people."""
    assert quiet(*[read("a.py")] * 3)
    got = loop(*[read("a.py")] * 4)
    assert (got.kind, got.count, got.what) == ("same_call", 4, "read `a.py`")
    assert loop(*[read("a.py")] * 9).count == 9


def test_the_same_call_failing_alike() -> None:
    """Durations, times, colours, temporary names and the call's description make no difference."""
    outputs = [
        f"\x1b[3{i}mFAIL\x1b[0m a\n{i}.{i}s at 2025-11-22T05:1{i}:11Z, /tmp/tmpab{i}cd{i}ef, pid 4{i}"
        for i in range(4)
    ]
    calls = [bash("npm test", o, 1) for o in outputs]
    got = loop(*[replace(c, input={**c.input, "description": f"Try {i}"}) for i, c in enumerate(calls)])
    assert (got.kind, got.what) == ("failing_call", "bash `npm test`")


def test_one_tool_failing_alike_with_other_arguments() -> None:
    """Edits of one file that never match, a command with other flags; lookups don't hide it."""
    tries = [edit("a.py", f"old {i}", "new", NOT_FOUND) for i in range(4)]
    assert loop(*tries).kind == "failing_call"
    assert loop(*[part for t in tries for part in (t, read("a.py"))]).kind == "failing_call"
    flags = ("", " --force", " --legacy-peer-deps", " --verbose")
    assert loop(*[bash(f"npm install x{f}", "npm ERR! ERESOLVE could not resolve", 1) for f in flags])


def test_two_calls_in_turns() -> None:
    """Three rounds of two calls; two rounds are not enough."""
    a, b = read("a.h", "1"), read("a.cc", "2")
    assert quiet(a, b, a, b, a)
    got = loop(a, b, a, b, a, b)
    assert (got.kind, got.count) == ("alternation", 3)
    assert "a.h" in got.what
    assert "a.cc" in got.what


@pytest.mark.parametrize("period", [3, 4, 5])
def test_rounds_of_three_to_five_calls(period: int) -> None:
    """Three rounds with the same outcomes."""
    round_ = [read(f"{i}.py", str(i)) for i in range(period)]
    assert quiet(*round_ * 2, *round_[:-1])
    assert (loop(*round_ * 3).kind, loop(*round_ * 3).count) == ("cycle", 3)


def test_an_edit_that_is_made_and_undone() -> None:
    """Writes are progress only while they are new: there and back is a loop, with a test in between too."""
    there, back = edit("a.py", "1", "2"), edit("a.py", "2", "1")
    red, other = bash("pytest -q", "FAILED a", 1), bash("pytest -q", "FAILED b", 1)
    assert loop(*[there, back] * 3).kind == "alternation"
    assert loop(*[there, red, back, other] * 3).kind == "cycle"


def test_a_round_with_one_more_look_is_still_the_round() -> None:
    """Looking again at what is known hides no loop and makes no other one of it."""
    clean, make = bash("make clean", "rm"), bash("make", "make: *** No rule. Stop.", 2)
    head = [read("Makefile"), clean, make]
    got = loop(*head, clean, make, read("Makefile"), clean, make, clean, read("Makefile"), make)
    assert got.key == loop(*head, clean, make, clean, make, clean, make).key


def test_the_same_words_without_a_tool() -> None:
    """Three texts in a row that say nearly the same; numbers that move on say something else."""
    text = "The migration is complete and all handlers use the new client."
    order = Message("o", "user", text="Task incomplete", order="ord")
    got = loop(text, order, text, order, text.replace("complete", "now complete"))
    assert (got.kind, got.count) == ("monologue", 3)
    assert text[:20] in got.what
    assert quiet(*[f"Step {i} of 9 of the long migration is complete now." for i in range(6)])
    assert quiet(
        "The handlers use it.", order, "The handlers fail without it.", order, "The tests use the old one."
    )
    assert quiet("It sorts by time.", order, "When none is free it raises.", order, "See pick() and offer().")


def test_one_text_that_repeats_itself() -> None:
    """A degenerate answer, even while it is still written; quoted logs and tables don't count."""
    line = "I will now check the network configuration. "
    assert loop("Let me see. " + line * 9 + "I will n").kind == "monologue"
    assert quiet("It prints:\n\n```\n" + "waiting for the lock of the worker\n" * 12 + "```\n\nFor ever.")
    assert quiet("- Waits for the lock\n" * 4 + "\n```\nx\n```\n" + "- Waits for the lock\n" * 3)
    assert quiet("| shard group eu-west | in sync with the primary |\n" * 12)


def test_planning_without_doing() -> None:
    """Plans in other words and looks at what is known; a list that moves on, or one new file, is news."""

    def todo(words: str, done: int = 0) -> ToolCall:
        states = ["completed"] * done + ["pending"] * (20 - done)
        return tool(
            "todowrite", todos=[{"content": f"{words} {i}", "status": s} for i, s in enumerate(states)]
        )

    words = ["now", "first", "soon", "later", "then", "well", "again", "best", "next"]
    plans = [todo(f"Look at the importer and split it {word}") for word in words]
    known = [read(f"{i}.py", str(i)) for i in range(4)]
    got = loop(*known, *[part for i, p in enumerate(plans) for part in (p, known[i * i % 4])])
    assert (got.kind, got.count >= IDLE) == ("planning", True)
    assert (
        got.key
        == loop(*known, *[part for i, p in enumerate(plans[1:]) for part in (p, known[i * i % 4])]).key
    )
    assert loop(*[todo("Look at it"), todo("Look at it first")] * 4).kind == "planning"
    assert quiet(*[todo("Move the module", i) for i in range(20)])
    assert quiet(*[part for i, p in enumerate(plans) for part in (p, read(f"{i}.py", str(i)))])


@pytest.mark.shows("I29")
@pytest.mark.parametrize(
    "command",
    [
        "sleep 30 && gh run view 1",
        "gh pr checks 4",
        "kubectl get pods",
        "curl -s localhost:8080/health",
        "docker compose ps",
        "tail -n 3 train.log",
        "npm run build -- --watch",
    ],
)
def test_waiting_is_no_loop(command: str) -> None:
    """Polling with the same answer for a while; a very long time is one after all."""
    assert quiet(*[bash(command, "pending")] * 11)
    assert loop(*[bash(command, "pending")] * 40)
    assert quiet(*[bash(command, f"step {i}") for i in range(40)])


@pytest.mark.shows("I29")
def test_waiting_in_two_calls_and_by_tools() -> None:
    """Sleep and look in turns; a background job's output, a browser's keys, an MCP tool's status."""
    assert quiet(*[bash("sleep 5"), bash("curl -s localhost:3000", "refused", 7)] * 15)
    for name in ("BashOutput", "playwright_browser_press_key", "ci_get_build_status"):
        assert quiet(*[tool(name, output="running")] * 11)
    assert quiet(*[bash("tmux send-keys -t gdb next Enter")] * 25)


def test_batches_are_no_loop() -> None:
    """The same change in many files, also where it fails in some, and many searches without a match."""
    assert quiet(*[edit(f"{i}.py", "a", "b") for i in range(30)])
    assert quiet(*[edit(f"{i}.py", "a", "b", NOT_FOUND if i % 3 else "") for i in range(30)])
    assert quiet(*[bash(f"rg -n name{i} src", "", 1) for i in range(30)])
    pages = [
        tool("webfetch", "Request failed with status code: 404", url=f"https://x.y/{i}") for i in range(6)
    ]
    assert quiet(*pages[:5])
    assert loop(*pages).kind == "failing_call"
    assert quiet(*[tool("read", f"File not found: {i}.yml", filePath=f"{i}.yml") for i in range(12)])


def test_one_command_in_many_folders_is_no_loop() -> None:
    """A sweep over packages fails for the same reason in each; in one folder it would be a loop."""
    missing = "sh: 1: jest: not found"
    assert quiet(*[bash(f"cd packages/{i} && npm test", missing, 127) for i in range(9)])
    there = [
        replace(bash("npm test", missing, 127), input={"command": "npm test", "workdir": f"/p{i}"})
        for i in range(9)
    ]
    assert quiet(*there)
    assert loop(
        *[bash(f"cd packages/a && npm test {flag}", missing, 127) for flag in ("-a", "-b", "-c", "-d")]
    )


def test_a_test_fix_cycle_is_no_loop() -> None:
    """Other edits between the runs: whether the failures become fewer or the output stays as it is."""
    assert quiet(
        *[
            p
            for i in range(9)
            for p in (edit("a.py", f"{i}", f"{i + 1}"), bash("pytest", f"{9 - i} failed", 1))
        ]
    )
    assert quiet(
        *[p for i in range(9) for p in (edit("a.py", f"{i}", f"{i + 1}"), bash("pytest", "1 failed", 1))]
    )
    assert quiet(
        *[
            p
            for i in range(9)
            for p in (edit(f"{i}.py", "a", "b"), bash("ruff check .", "ok"), bash("git status"))
        ]
    )


def test_reading_on_is_no_loop() -> None:
    """A big file in pieces, and many files."""
    assert quiet(*[tool("read", filePath="a.log", offset=i * 400, output="same") for i in range(30)])
    assert quiet(*[read(f"{i}.py") for i in range(60)])


def test_a_few_tries_are_no_loop() -> None:
    """A flaky download twice, a flaky test seven times, a tool that we don't know and that may move on."""
    assert quiet(*[tool("slides_next", output="ok")] * 7)
    assert loop(*[tool("slides_next", output="ok")] * 8)
    assert quiet(*[bash("npm ci", "ECONNRESET", 1)] * 3, bash("npm ci", "added 9"))
    assert quiet(*[bash("pytest -q", f"1 passed in 0.{i}s") for i in range(7)])


def test_debugging_with_new_reading_is_no_loop() -> None:
    """A failing test is run again between reads of other files: the agent learns something."""
    assert quiet(*[p for i in range(8) for p in (bash("pytest -x", "FAILED a", 1), read(f"{i}.py", str(i)))])


def test_what_the_person_wants_repeated() -> None:
    """A request for many runs, in several languages; "try three times" in a feature is none."""
    runs = [bash("go test ./queue -count=1", f"ok 0.{i}s") for i in range(30)]
    assert loop(*runs)
    for ask in ("run it 30 times", "stress the queue", "is it flaky?", "lass ihn 30 mal laufen"):
        assert quiet(*runs, ask=ask)
    assert not asks_to_repeat("The client should retry 3 times, then give up. Go on until the tests pass.")
    assert loop(*[edit("a.py", "a", "b", NOT_FOUND)] * 4, ask="why is the test flaky?")
    assert loop(*[bash("echo x > a.txt")] * 4, ask="why is the test flaky?")


def test_a_loop_that_was_left() -> None:
    """News ends it, an account or a question ends it; the announcement of one more try does not."""
    failing = [bash("pg_restore x", "error: end of file", 1)] * 5
    assert loop_in(session(*failing, bash("file x", "gzip compressed data"))) is None
    assert loop_in(session(*failing, "The backup is damaged: it ends too early.")) is None
    assert loop_in(session(*failing, "It ends too early. Should I take the one from Monday?")) is None
    assert loop(*failing, "That failed again. Let me try it once more.").kind == "failing_call"


def test_a_person_or_a_compaction_begins_anew() -> None:
    """What the person sends again is no loop; after a compaction an agent has to read again."""
    again = Message("u2", "user", text="try again", human=True)
    assert quiet(*[p for _ in range(6) for p in (bash("./deploy", "sealed", 1), again)])
    files = [read(f"{i}.py", str(i)) for i in range(5)]
    summary = Message("s", "assistant", text="Summary", summary=True, finish="stop")
    assert quiet(*files * 2, summary, *files * 2)


@pytest.mark.shows("I8")
def test_our_own_feedback_does_not_begin_anew() -> None:
    """The same failing call after each feedback goes on being the same loop."""
    order = Message("o", "user", text="Task incomplete", order="ord")
    fail = bash("npm test", "FAIL a", 1)
    assert loop(fail, fail, order, fail, fail).count == 4


def test_by_digests_alone() -> None:
    """A host's events carry digests only: enough to suspect a loop."""
    window = Window()
    for _ in range(4):
        window = fold(window, step_from_digests("bash", "c1", "r1", failed=True, writes=False))
    got = found(window)
    assert got is not None
    assert (got.kind, got.what) == ("failing_call", "bash")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


names = st.sampled_from(
    ["bash", "read", "edit", "todowrite", "think", "task", "BashOutput", "x_get_status", ""]
)


keys = st.sampled_from(["command", "filePath", "todos", "url", "thought", "workdir", "path"])


calls = st.builds(
    ToolCall,
    id=st.just("c"),
    tool=names | st.text(max_size=8),
    status=st.sampled_from(["pending", "running", "completed", "error"]),
    input=st.dictionaries(keys | st.text(max_size=5), json_values, max_size=3),
    output=st.text(max_size=60),
    error=st.text(max_size=30),
    exit=st.none() | st.integers(-1, 200),
)


messages = st.builds(
    Message,
    id=st.text(max_size=3),
    role=st.sampled_from(["user", "assistant"]),
    text=st.text(max_size=120),
    human=st.booleans(),
    finish=st.sampled_from(["", "stop", "length", "tool-calls"]),
    summary=st.booleans(),
    calls=st.lists(calls, max_size=4).map(tuple),
)


symbols = st.builds(
    lambda c, r, failed, writes, sort: step_from_digests(
        "bash", f"c{c}", f"r{r}", failed=failed, writes=writes, sort=sort
    ),
    st.integers(0, 4),
    st.integers(0, 1),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["act", "check", "look", "probe", "wait", "plan"]),
)


@pytest.mark.shows("I36")
@given(st.lists(messages, max_size=12))
def test_it_never_raises(found_messages: list[Message]) -> None:
    """Any transcript is read, whatever a host or a model put into it."""
    transcript = Transcript("ses", tuple(found_messages))
    loop_in(transcript)
    assert all("\n" not in step.what and len(step.what) <= 120 for step in steps(transcript))


@given(st.lists(st.tuples(st.integers(0, 10**9), names), unique_by=lambda t: t[0], max_size=150))
def test_distinct_calls_never_alarm(found_calls: list[tuple[int, str]]) -> None:
    """Calls that all differ and succeed are no loop, whatever they are."""
    window = Window()
    for i, name in found_calls:
        plan = step_of(tool(name or "x", command=f"run {i}", thought=f"t{i}"))
        window = fold(window, replace(plan, words=frozenset({i, i + 1}), result=f"{i}"))
        assert found(window) is None


@given(st.lists(symbols, max_size=8), st.integers(1, 5), st.integers(0, 12))
def test_the_same_loop_keeps_its_key(before: list[Step], period: int, more: int) -> None:
    """However long it goes on, and wherever in the round it is looked at."""
    round_ = [step_from_digests("bash", f"l{i}", "r", failed=False, writes=False) for i in range(period)]
    window = Window()
    for step in [*before, *round_ * 4]:
        window = fold(window, step)
    first = found(window)
    assert first is not None
    for i in range(more):
        window = fold(window, round_[i % period])
    again = found(window)
    assert again is not None
    assert (again.key, again.kind) == (first.key, first.kind)
    assert again.count >= first.count


@given(st.lists(symbols, max_size=400))
def test_the_window_is_bounded(stream: list[Step]) -> None:
    """Memory stays the same however long a session runs, and its parts stay in step."""
    window = Window()
    for i, step in enumerate(stream):
        window = fold(window, step)
        window = fold(window, replace(step, kind="text")) if i % 50 == 0 else window
        found(window)
    assert len(window.calls) == len(window.symbols) == len(window.known) == min(len(stream), SIZE)
    for _ in range(3 * MAX_TEXTS):
        window = fold(window, Step("text", "", "t", "", sort="text"))
    assert len(window.texts) == MAX_TEXTS


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        *("a" * 1_000_000, "1.1" * 333_333, "tmp_" * 250_000, "$(" * 500_000, "| " * 500_000),
        *("12:00:00 " * 111_111, "I'll " * 200_000, "curl " * 200_000, "error\n" * 166_666),
        *("\x1b[3" * 250_000, "Let me. " * 125_000),
    ],
)
def test_a_megabyte_in_every_field(text: str) -> None:
    """Linear time: a hostile text as command, argument, output, error and answer ends within the limit."""
    parts: list[ToolCall | str] = [bash(text, text, 1), tool("think", text, thought=text), text]
    parts += [bash("make", text), edit("a.py", text, text, text)]
    assert len(steps(session(*parts, ask=text))) >= len(parts)
    loop_in(session(*parts, ask=text))


@pytest.mark.timeout(60)
def test_five_thousand_steps() -> None:
    """A session of a night: every step folded and looked at, in loops that are never quite one."""
    window = Window()
    for i in range(5_000):
        window = fold(window, step_of(bash(f"make {i % 7}", f"out {i * i % 11}", i % 2)))
        found(window)
    assert len(window.calls) == SIZE
