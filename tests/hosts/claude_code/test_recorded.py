"""What the real Claude Code wrote, both versions, as core transcripts (``tests/data/claude/README.md``)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from daemon.core.guards import Limits, may_judge_messages
from daemon.core.session import Session
from daemon.evidence.collect import collect
from daemon.hosts.claude_code.transcript import TranscriptReader, transcript_of
from daemon.hosts.hook import order_in
from harness.machine.sandbox import REPO
from harness.models.scripts import CLAIM, DONE, HEADING, REQUEST

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.core.transcript import Transcript

FOLDER = "/home/person/project"
FILES = sorted((REPO / "tests" / "data" / "claude").glob("real_*.jsonl"))
WOKEN = [f for f in FILES if "background" not in f.name]
COMPACTED = [f for f in FILES if "compacted" in f.name]
BACKGROUND = [f for f in FILES if "background" in f.name]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def prompt_of(file: Path) -> str:
    """The id that UserPromptSubmit gave the person's prompt."""
    return next(str(line["promptId"]) for line in lines(file) if "promptId" in line)


def last_line_said(file: Path, text: str) -> str:
    """The id of the last line in which the agent says ``text``."""
    said = (line for line in lines(file) if line["type"] == "assistant")
    return [str(line["uuid"]) for line in said if text in str(line["message"]["content"])][-1]


def read(file: Path) -> Transcript:
    """As the daemon reads it, which knows all orders in it as its own."""
    return TranscriptReader(file, is_ours=lambda _: True).read(DONE, closed=True)


def by_file(files: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("file", files, ids=[f.stem for f in files])


def test_both_versions_are_there() -> None:
    """The newest and the oldest supported version; nothing of a machine or a person is in the files."""
    assert {f.stem for f in WOKEN} >= {"real_2.1.197_woken", "real_2.1.330_woken"}
    assert COMPACTED
    assert BACKGROUND
    for file in FILES:
        said = file.read_text("utf-8")
        assert {line["version"] for line in lines(file) if "version" in line} == {file.name.split("_")[1]}
        assert not re.search(r"sk-ant|api-request|/rd-|/work/|/root", said)


@pytest.mark.shows("I2", "I6")
@by_file(FILES)
def test_the_task_and_the_turn(file: Path) -> None:
    """One task, named as the hooks name it; the turn is the last answer, and may be judged."""
    found = read(file)
    assert found.task is not None
    assert found.turn is not None
    assert (found.task.id, found.task.text, found.directory) == (prompt_of(file), REQUEST, FOLDER)
    assert [m.text for m in found.messages if m.human] == [REQUEST]
    assert (found.turn.id, found.turn.text, found.turn.finish) == (last_line_said(file, DONE), DONE, "stop")
    assert may_judge_messages(Session(id=found.session), found, Limits()) is None
    assert found == transcript_of(file.read_bytes(), file.stem)


@pytest.mark.shows("I4")
@by_file(WOKEN)
def test_what_we_said_is_ours(file: Path) -> None:
    """Our feedback comes back with its order's id, between the two rounds, and is no human message."""
    found = read(file)
    (ours,) = [m for m in found.messages if m.order]
    assert (ours.human, ours.role) == (False, "user")
    assert HEADING in ours.text
    assert ours.order == order_in(ours.text) != ""
    answers = [m.text for m in found.messages if m.text in {CLAIM, DONE} or m is ours]
    assert answers == [CLAIM, ours.text, DONE]
    foreign = TranscriptReader(file, is_ours=lambda _: False).read(closed=True)
    assert not [m for m in foreign.messages if m.order]


@pytest.mark.shows("I24")
@by_file(WOKEN)
def test_the_calls_and_their_exits(file: Path) -> None:
    """Each call with its status, its exit and its output, in the words of both versions."""
    found = read(file)
    calls = [(c.tool, c.status, c.exit) for c in found.calls]
    assert calls == [("Write", "completed", None), ("Bash", "completed", 2), ("Bash", "completed", 0)]
    assert "1 failed: no answer.txt" in found.calls[1].output
    assert found.calls[2].output == "1 passed"
    (check,) = [r for r in collect(found).rows if r.kind == "check"]
    assert (check.command, check.outcome) == ("make test", "passed")


@pytest.mark.shows("I7")
@by_file(COMPACTED)
def test_a_compaction_is_in_the_task(file: Path) -> None:
    """The boundary is known, the summary is no request, and the turn after it goes on with the task."""
    found = read(file)
    assert [m.compaction for m in found.messages if m.compaction] == ["auto"]
    (summary,) = [m for m in found.messages if m.summary]
    assert summary.text.startswith("This session is being continued")
    assert summary in found.work


@pytest.mark.shows("I4", "I16")
@by_file(BACKGROUND)
def test_a_sub_agent_is_no_person(file: Path) -> None:
    """The notification that it ended is said to the agent by nobody."""
    found = read(file)
    (told,) = [m for m in found.messages if m.text.startswith("<task-notification>")]
    assert (told.human, told.order) == (False, "")
    assert [c.tool for c in found.calls] == ["Agent", "Write", "Bash"]


ODD: tuple[object, ...] = ([], {}, [{"a": []}], {"kind": ["human"]}, 7, 1e308, True, None, "", "x" * 300)


def fields_of(line: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The place of each value inside a line."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(line, dict):
        inner = list(line.items())
    elif isinstance(line, list):
        inner = list(enumerate(line[:3]))
    return [p for key, value in inner for p in ((*path, key), *fields_of(value, (*path, key)))]


def with_value(line: Any, path: tuple[str | int, ...], value: object) -> Any:
    copy = json.loads(json.dumps(line))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


@pytest.mark.shows("I36")
@by_file(FILES)
def test_a_field_of_another_type_costs_only_its_line(file: Path) -> None:
    """Any field of any line may hold any JSON: an object or a list is no text, and nothing raises."""
    read_before = len(read(file).messages)
    whole = lines(file)
    shapes: dict[tuple[Any, ...], int] = {}
    for at, line in enumerate(whole):
        for path in fields_of(line):
            shapes.setdefault((line["type"], *path), at)
    for place, at in shapes.items():
        for odd in ODD:
            changed = [*whole[:at], with_value(whole[at], place[1:], odd), *whole[at + 1 :]]
            data = b"\n".join(json.dumps(line).encode() for line in changed[max(0, at - 3) : at + 4])
            assert len(transcript_of(data, "f").messages) <= read_before + 1
