"""Loops: each kind of them, each class of false alarm, and what must hold for any stream of calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.stuck.loops import Loop, Step, loop_at_end, loop_in, step_from_digests, step_of, steps
from tests.stuck.samples import NOT_FOUND, quiet, session, tool
from tests.support.transcripts import bash, edit, read


def loop(*parts: ToolCall | str | Message, ask: str = "fix the parser") -> Loop:
    got = loop_in(session(*parts, ask=ask))
    assert got is not None
    return got


A, B = read("a.h", "1"), read("a.cc", "2")
THERE, BACK = edit("a.py", "1", "2"), edit("a.py", "2", "1")
RED, OTHER = bash("pytest -q", "FAILED a", 1), bash("pytest -q", "FAILED b", 1)
ORDER = Message("o", "user", text="Task incomplete", order="ord")
TRIES = [edit("a.py", f"old {i}", "new", NOT_FOUND) for i in range(4)]
FLAGS = ("", " --force", " --legacy-peer-deps", " --verbose")
MISSING = "sh: 1: jest: not found"
RESTORE = [bash("pg_restore x", "error: end of file", 1)] * 5
PERSON = Message("u2", "user", text="try again", human=True)
SUMMARY = Message("s", "assistant", text="Summary", summary=True, finish="stop")
FILES = [read(f"{i}.py", str(i)) for i in range(5)]
NEXT = [tool("slides_next", output="ok")] * 8
# durations, times, colours, temporary names and the call's description make no difference
NOISE = "\x1b[3{0}mFAIL\x1b[0m a\n{0}.{0}s at 2025-11-22T05:1{0}:11Z, /tmp/tmpab{0}cd{0}ef, pid 4{0}"
NOISY = [bash("npm test", NOISE.format(i), 1, description=f"Try {i}") for i in range(4)]


def many(make: Callable[[int], tuple[ToolCall | Message, ...]]) -> list[ToolCall | Message]:
    """Nine rounds."""
    return [part for i in range(9) for part in make(i)]


LOOPS = {
    "the same call": ([read("a.py")] * 4, "same_call", 4),
    "the same call, on and on": ([read("a.py")] * 9, "same_call", 9),
    "failing alike": (NOISY, "same_call", 4),
    "edits that never match": (TRIES, "same_call", 4),
    "lookups don't hide it": ([part for t in TRIES for part in (t, read("a.py"))], "same_call", 4),
    "other flags": ([bash(f"npm install x{f}", "npm ERR! ERESOLVE", 1) for f in FLAGS], "same_call", 4),
    "other flags in one folder": (
        [bash(f"cd a && npm test {f}", MISSING, 127) for f in FLAGS],
        "same_call",
        4,
    ),
    "two calls in turns": ([A, B] * 3, "cycle", 3),
    "a round of three": (FILES[:3] * 3, "cycle", 3),
    "a round of four": (FILES[:4] * 3, "cycle", 3),
    "a round of five": (FILES * 3, "cycle", 3),
    "made and undone": ([THERE, BACK] * 3, "cycle", 3),
    "made and undone, with tests": ([THERE, RED, BACK, OTHER] * 3, "cycle", 3),
    "waiting for a very long time": ([bash("gh pr checks 4", "pending")] * 40, "same_call", None),
    "a tool that may move on": (NEXT, "same_call", 8),
}


@pytest.mark.parametrize(("parts", "kind", "count"), LOOPS.values(), ids=LOOPS)
def test_loops(parts: list[ToolCall | str | Message], kind: str, count: int | None) -> None:
    """Each kind of loop, as often as it must come to be one."""
    got = loop(*parts)
    assert (got.kind, got.count) == (kind, count or got.count)


QUIET = {
    "three times": [read("a.py")] * 3,
    "two rounds of two": [A, B, A, B, A],
    "two rounds of three": FILES[:3] * 2 + FILES[:2],
    "two rounds of five": FILES * 2 + FILES[:4],
    "sleep and look": [bash("sleep 5"), bash("curl -s localhost:3000", "refused", 7)] * 15,
    "a debugger's keys": [bash("tmux send-keys -t gdb next Enter")] * 25,
    "one change in many files": [edit(f"{i}.py", "a", "b") for i in range(30)],
    "one that fails in some": [edit(f"{i}.py", "a", "b", NOT_FOUND if i % 3 else "") for i in range(30)],
    "searches without a match": [bash(f"rg -n name{i} src", "", 1) for i in range(30)],
    "files that are not there": [tool("read", "File not found", filePath=f"{i}.yml") for i in range(12)],
    "a command in many folders": [bash(f"cd packages/{i} && npm test", MISSING, 127) for i in range(9)],
    "a command in many work folders": [bash("npm test", MISSING, 127, workdir=f"/p{i}") for i in range(9)],
    "fewer failures": many(
        lambda i: (edit("a.py", f"{i}", f"{i + 1}"), bash("pytest", f"{9 - i} failed", 1))
    ),
    "the same failure": many(lambda i: (edit("a.py", f"{i}", f"{i + 1}"), bash("pytest", "1 failed", 1))),
    "checks": many(lambda i: (edit(f"{i}.py", "a", "b"), bash("ruff check .", "ok"), bash("git status"))),
    "a big file in pieces": [tool("read", filePath="a.log", offset=i * 400, output="x") for i in range(30)],
    "many files": [read(f"{i}.py") for i in range(60)],
    "a tool that moves on seven times": NEXT[1:],
    "a flaky download": [*[bash("npm ci", "ECONNRESET", 1)] * 3, bash("npm ci", "added 9")],
    "a flaky test": [bash("pytest -q", f"1 passed in 0.{i}s") for i in range(7)],
    "a failing test between new reads": many(lambda i: (RED, read(f"{i}.py", str(i)))),
    "what the person sends again": many(lambda _: (bash("./deploy", "sealed", 1), PERSON)),
    "read again after a compaction": [*FILES * 2, SUMMARY, *FILES * 2],
}


@pytest.mark.parametrize("parts", QUIET.values(), ids=QUIET)
def test_no_loops(parts: list[ToolCall | str | Message]) -> None:
    """Each class of false alarm: few tries, batches, test-fix cycles, reading on, waiting, quotes."""
    assert quiet(*parts)


def test_names_are_for_people() -> None:
    """What comes again, in a person's words."""
    assert loop(*[read("a.py")] * 4).what == "read `a.py`"
    assert loop(*NOISY).what == "bash `npm test`"
    assert [name for name in ("a.h", "a.cc") if name not in loop(*[A, B] * 3).what] == []


def test_a_round_with_one_more_look_is_still_the_round() -> None:
    """Looking again at what is known hides no loop and makes no other one of it."""
    clean, make = bash("make clean", "rm"), bash("make", "make: *** No rule. Stop.", 2)
    head = [read("Makefile"), clean, make]
    got = loop(*head, clean, make, read("Makefile"), clean, make, clean, read("Makefile"), make)
    assert got.key == loop(*head, clean, make, clean, make, clean, make).key


WAITING = (
    "sleep 30 && gh run view 1", "gh pr checks 4", "kubectl get pods", "curl -s localhost:8080/health",
    "docker compose ps", "tail -n 3 train.log", "npm run build -- --watch",
)  # fmt: skip


@pytest.mark.shows("I29")
def test_waiting_is_no_loop() -> None:
    """Polling with the same answer for a while, also by tools; a very long time is one after all."""
    for command in WAITING:
        assert quiet(*[bash(command, "pending")] * 11), command
        assert quiet(*[bash(command, f"step {i}") for i in range(40)]), command
    for name in ("BashOutput", "playwright_browser_press_key", "ci_get_build_status"):
        assert quiet(*[tool(name, output="running")] * 11), name


def test_a_command_that_works_may_be_wanted_many_times() -> None:
    """A benchmark or a stress test is no loop for long; a refused edit and the same write are one soon."""
    runs = [bash("go test ./queue -count=1", f"ok 0.{i}s") for i in range(30)]
    assert quiet(*runs[:29])
    assert loop(*runs).count == 30
    for call in (edit("a.py", "a", "b", NOT_FOUND), bash("echo x > a.txt")):
        assert loop(*[call] * 4)


@pytest.mark.parametrize(
    "end",
    [
        bash("file x", "gzip compressed data"),
        "The backup is damaged: it ends too early.",
        "It ends too early. Should I take the one from Monday?",
    ],
)
def test_a_loop_that_was_left(end: ToolCall | str) -> None:
    """News ends it, an account or a question ends it."""
    assert loop_in(session(*RESTORE, end)) is None


@pytest.mark.shows("I8")
def test_our_own_feedback_does_not_begin_anew() -> None:
    """The same failing call after each feedback goes on being the same loop."""
    assert loop(RED, RED, ORDER, RED, RED).count == 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["bash", "read", "edit", "todowrite", "think", "task", "BashOutput", "x_get_status"])
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
    lambda c, r, tool, failed: step_from_digests(tool, f"c{c}", f"r{r}", failed=failed),
    st.integers(0, 4),
    st.integers(0, 1),
    names,
    st.booleans(),
)


@pytest.mark.shows("I36")
@given(st.lists(messages, max_size=12))
def test_it_never_raises(found_messages: list[Message]) -> None:
    """Any transcript is read, whatever a host or a model put into it."""
    transcript = Transcript("ses", tuple(found_messages))
    loop_in(transcript)
    assert all("\n" not in step.what and len(step.what) <= 120 for step in steps(transcript))


@given(st.lists(symbols, max_size=8), st.integers(1, 5), st.integers(0, 12))
def test_the_same_loop_keeps_its_key(before: list[Step], period: int, more: int) -> None:
    """However long it goes on, and wherever in the round it is looked at."""
    round_ = [step_from_digests("bash", f"l{i}", "r", failed=False) for i in range(period)]
    first = loop_at_end([*before, *round_ * 4])
    again = loop_at_end([*before, *round_ * 4, *(round_ * 3)[:more]])
    assert first is not None
    assert again is not None
    assert (again.key, again.kind) == (first.key, first.kind)
    assert again.count >= first.count


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
    assert len(steps(session(*parts, ask=text))) == 4
    loop_in(session(*parts, ask=text))


def test_names_are_short_single_lines_without_secrets() -> None:
    """A name goes into prompts, toasts and files."""
    header = "curl -H 'Authorization: Bearer sk-ant-api03-" + "a" * 40
    step = step_of(bash(header + "' \\\n https://x.y\n" * 30))
    assert len(step.what) <= 120
    assert "\n" not in step.what
    assert "aaaaaaaa" not in step.what
    assert step_of(bash("npm   test\n")).what == "bash `npm test`"


def test_which_calls_are_the_same() -> None:
    """Other spaces make no difference; another folder, place in a file or length of the output does."""
    assert step_of(bash("make  all")).symbol == step_of(bash("make all")).symbol
    there = replace(bash("make all"), input={"command": "make all", "workdir": "/b"})
    assert step_of(there).symbol != step_of(bash("make all")).symbol
    assert step_of(bash("make", "a.c:3: error", 2)).symbol != step_of(bash("make", "a.c:9: error", 2)).symbol
    assert step_of(bash("x", "1")).symbol != step_of(replace(bash("x", "1"), cut=9)).symbol


@pytest.mark.shows("I29")
def test_calls_that_still_run_are_no_steps() -> None:
    """A pending or running tool says nothing yet."""
    running = [replace(read("a.py"), status=status) for status in ("pending", "running")]
    assert steps(session(*running)) == ()
    assert quiet(*running * 9)
