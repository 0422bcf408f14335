"""What is cut from a transcript before it is read."""

from __future__ import annotations

import pytest

from daemon.core.cuts import (
    FRESH,
    MARK,
    MAX_CALLS,
    OLD_INPUT,
    OLD_OUTPUT,
    TEXT,
    bounded,
    whole_lines,
)
from daemon.core.transcript import Message, Todo, ToolCall, Transcript
from daemon.judge.case import Case, make_case

HOSTILE = (
    "a-" * 30,
    "fail_",
    "'\\",
    "\t",
    "test ",
    "<content>\n(",
    "/*\r",
    ":publish_",
    "oh    ",
    ".-",
    "key ",
)


def transcript(*calls: ToolCall, ask: str = "Fix it and run the tests", final: str = "Done.") -> Transcript:
    messages = [Message(f"m{i}", "assistant", 2, calls=(c,)) for i, c in enumerate(calls)]
    last = Message("z", "assistant", 3, final, finish="stop")
    return Transcript("ses", (Message("u", "user", 1, ask, human=True), *messages, last), directory="/repo")


def bash(n: int, output: str, command: str = "python -m pytest -q") -> ToolCall:
    return ToolCall(f"c{n}", "bash", "completed", {"command": command}, output, exit=0)


def case_of(sample: Transcript) -> Case:
    return make_case(sample, at=1, nonce="n" * 12, templates={})


def test_an_ordinary_task_stays_as_it_is() -> None:
    """Nothing is cut from what hosts usually send."""
    sample = transcript(*(bash(n, "ok\n" * 500) for n in range(100)))
    assert bounded(sample) == sample


def test_no_text_is_longer_than_the_bound() -> None:
    """Requests, answers, outputs, arguments at any depth, todos: no pattern sees more."""
    long = "word " * 20_000 + "\n" + "x" * 200_000
    deep = {"edits": [{"oldString": long, "more": {"texts": [long]}}], long: "key"}
    call = ToolCall("c", "edit", "completed", deep, long, long, inner=(bash(1, long, long),))
    sample = transcript(call, ask=long, final=long)
    found = bounded(Transcript("s", sample.messages, (Todo(long, "pending"),), title=long))

    def longest(value: object) -> int:
        if isinstance(value, str):
            return len(value)
        if isinstance(value, dict):
            return max(map(longest, [*value.keys(), *value.values()]), default=0)
        if isinstance(value, list | tuple):
            return max(map(longest, value), default=0)
        if isinstance(value, ToolCall):
            return longest([value.input, value.output, value.error, value.inner])
        if isinstance(value, Message):
            return longest([value.text, value.error_message, value.calls])
        return 0

    assert longest([found.title, found.messages, [t.text for t in found.todos]]) <= TEXT + MARK


def test_nested_values_have_an_end() -> None:
    """What is nested without end is dropped, not followed."""
    deep: object = "x" * (TEXT + 1)
    for _ in range(50):
        deep = [deep]
    found = bounded(transcript(ToolCall("c", "edit", "completed", {"a": deep})))
    inner: object = found.calls[0].input["a"]
    depth = 0
    while isinstance(inner, list):
        inner, depth = inner[0], depth + 1
    assert inner is None
    assert depth < 10


def test_old_calls_keep_their_names_and_lose_their_texts() -> None:
    """Of a task of 17 MB the newest calls stay whole; of all others stays what they ran and how it ended."""
    calls = [bash(n, f"line {n}\n" * 400 + "12 passed in 0.1s\n") for n in range(5_000)]
    whole = bounded(transcript(*calls))
    assert bounded(whole) == whole
    found = whole.calls
    assert [c.input for c in found] == [c.input for c in calls]
    assert [c.exit for c in found] == [0] * 5_000
    assert found[-1] == calls[-1]
    assert all(
        len(c.output) < OLD_OUTPUT + MARK and c.output.endswith("12 passed in 0.1s\n") for c in found[:4_000]
    )
    assert all(c.cut > 0 for c in found[:4_000])
    assert sum(len(c.output) for c in found) < FRESH + 5_000 * (OLD_OUTPUT + MARK) + 10_000


def test_calls_that_are_left_out_count_as_work_of_others() -> None:
    """No rule says that something was not done where calls were not read."""
    calls = tuple(bash(n, "") for n in range(MAX_CALLS + 500))
    sample = Transcript(
        "s", (Message("u", "user", human=True, text="Fix it"), Message("a", "assistant", calls=calls))
    )
    found = bounded(sample).calls
    assert len(found) == MAX_CALLS + 1
    assert (found[0].tool, found[0].inner_cut) == ("task", 500)
    assert found[-1] == calls[-1]
    assert bounded(bounded(sample)) == bounded(sample)


def test_a_long_request_of_one_line_is_not_lost() -> None:
    """What a person or the agent wrote is cut between words, wherever its lines end."""
    found = bounded(transcript(ask="Fix it " + "a word " * 50_000 + "and test it")).messages[0].text
    assert found.startswith("Fix it a word ")
    assert found.endswith(" and test it")
    assert len(found) <= TEXT + MARK


@pytest.mark.shows("I46")
def test_only_whole_lines_are_cut() -> None:
    """Half a secret is not known as one, so none is left behind by a cut."""
    secret = "password=" + "s3cr3t" * 100
    text = "\n".join(f"{n} {secret}" for n in range(50))
    for limit in range(50, 5_000, 97):
        short = whole_lines(text, limit)
        assert all(line.endswith(secret) or line.startswith("[... ") for line in short.split("\n") if line), (
            limit
        )
        assert len(short) <= limit + MARK
        assert whole_lines(short, limit) == short, "cut twice"
    assert whole_lines("x" * 500, 100) == "[... 500 characters cut ...]\n"
    assert whole_lines(text, OLD_INPUT).count("characters cut") == 1


@pytest.mark.parametrize("pump", HOSTILE)
def test_a_hostile_task_is_read_to_its_end(pump: str) -> None:
    """Texts on which a pattern of the package was once slow or endless, everywhere that a text can stand."""
    text = pump * (3_400 // len(pump))
    calls = [bash(n, text, text[:1_000]) for n in range(20)]
    found = case_of(transcript(*calls, ask=pump * 20_000, final=text * 20)).evidence
    assert found.tool_calls == 20
