"""opencode's wire forms to core values: every event kind, the human rule, and what bad items cost."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import BadReply
from daemon.core.transcript import Model, Todo, Transcript
from daemon.hosts.opencode.messages import parse_transcript
from daemon.hosts.wire import mend
from tests.hosts.opencode.samples import JSON

OURS = {"ord_1"}


def parse(data: Any, **more: Any) -> Transcript:
    return parse_transcript(data, is_ours=OURS.__contains__, **more)


def message(mid: str, role: str = "assistant", at: int = 1, **more: Any) -> dict[str, Any]:
    parts = more.pop("parts", [{"type": "text", "id": "p", "text": mid}])
    return {"info": {"id": mid, "role": role, "time": {"created": at}, **more}, "parts": parts}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "id": "p", "text": said, **more}


def test_a_whole_transcript() -> None:
    """Every field of the ``read`` projection arrives."""
    data = {
        "missing": False,
        "busy": True,
        "session": {"id": "s", "parentID": "p", "title": "t", "directory": "/d"},
        "messages": [
            message("u", "user", 1, agent="plan", providerID="x", modelID="y", summary={"diffs": []}),
            message(
                "a",
                at=2,
                finish="stop",
                error={"name": "APIError", "message": "m"},
                summary=True,
                time={"created": 2, "completed": 3.7},
                parts=[
                    text("one"),
                    {
                        "type": "tool",
                        "id": "t",
                        "callID": "c",
                        "tool": "bash",
                        "state": {
                            "status": "completed",
                            "input": {"command": "ls"},
                            "output": "o",
                            "cut": 9,
                            "exit": 2,
                            "start": 4,
                            "end": 5,
                        },
                    },
                    {"type": "other", "of": "step-start"},
                    text("two"),
                ],
            ),
        ],
        "todos": [{"id": "1", "content": "x", "status": "pending", "priority": "high"}],
    }
    got = parse(json.dumps(data).encode())
    assert got == parse(data)
    assert (got.session, got.parent, got.title, got.directory, got.busy, got.missing) == (
        "s",
        "p",
        "t",
        "/d",
        True,
        False,
    )
    assert got.todos == (Todo("x", "pending"),)
    user, answer = got.messages
    assert (user.human, user.agent, user.model, user.summary) == (True, "plan", Model("x", "y"), False)
    assert (answer.text, answer.finish, answer.error, answer.error_message) == (
        "one\n\ntwo",
        "stop",
        "APIError",
        "m",
    )
    assert (answer.summary, answer.completed) == (True, 3)
    (call,) = answer.calls
    assert (call.id, call.tool, call.input, call.output) == ("c", "bash", {"command": "ls"}, "o")
    assert (call.exit, call.cut, call.ended) == (2, 9, 5)


@pytest.mark.shows("I4", "I50")
@pytest.mark.parametrize(
    ("parts", "human", "order", "said"),
    [
        ([text("hi")], True, "", "hi"),
        ([text("see @a"), text("file content", synthetic=True)], True, "", "see @a"),
        (
            [text("Continue if you have next steps", synthetic=True)],
            False,
            "",
            "Continue if you have next steps",
        ),
        ([text("## Reflection-3", order="ord_1")], False, "ord_1", "## Reflection-3"),
        ([text("## Reflection-3", order="ord_of_nobody")], True, "", "## Reflection-3"),
        ([{"type": "compaction", "auto": True}], False, "", ""),
        ([text("hi"), {"type": "compaction", "auto": False}], False, "", "hi"),
        ([], False, "", ""),
        ([{"type": "other", "of": "file"}], False, "", ""),
    ],
)
def test_who_typed_it(parts: list[Any], human: bool, order: str, said: str) -> None:
    """Feedback of ours, compaction and synthetic texts are nobody's; an unknown mark is a person's."""
    (got,) = parse({"messages": [message("u", "user", parts=parts)]}).messages
    assert (got.human, got.order, got.text) == (human, order, said)


@pytest.mark.shows("I32")
@pytest.mark.parametrize(
    ("part", "role", "compaction"),
    [
        ({"type": "compaction", "auto": True}, "user", "auto"),
        ({"type": "compaction", "auto": False}, "user", "manual"),
        ({"type": "compaction"}, "user", "manual"),
        ({"type": "compaction", "auto": "yes"}, "user", "manual"),
        ({"type": "compaction", "auto": True}, "assistant", ""),
        ({"type": "other", "auto": True}, "user", ""),
        (text("/compact"), "user", ""),
    ],
)
def test_who_began_the_compaction(part: dict[str, Any], role: str, compaction: str) -> None:
    """Only what the host marks as its own counts as automatic, and only a user message asks for one."""
    (got,) = parse({"messages": [message("c", role, parts=[part])]}).messages
    assert got.compaction == compaction


@pytest.mark.shows("I7", "I28")
def test_the_task_is_an_id() -> None:
    """After compaction and feedback the task is still the last message a person typed."""
    messages = [
        message("u1", "user", 1),
        message("u2", "user", 2),
        message("c", "user", 3, parts=[{"type": "compaction", "auto": True}]),
        message("a", "assistant", 4, summary=True),
        message("k", "user", 5, parts=[text("Continue", synthetic=True)]),
        message("f", "user", 6, parts=[text("do it", order="ord_1")]),
    ]
    task = parse({"messages": messages}).task
    assert task is not None
    assert task.id == "u2"


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"null",
        {},
        {"messages": {}},
        {"messages": None, "todos": {}, "session": []},
        {"messages": [None, {}]},
    ],
)
def test_empty_replies(data: Any) -> None:
    """``{}`` from messages(), null and missing fields give an empty transcript."""
    assert parse(data, session="s") == Transcript("s")


@pytest.mark.shows("I36")
def test_one_bad_item_costs_only_itself() -> None:
    """A wrong type takes its part, message or todo away, with a reason; the rest stays."""
    skipped: list[str] = []
    tool = {"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "completed"}}
    got = parse(
        {
            "messages": [
                message(
                    "a",
                    at=1,
                    parts=[text("ok"), {"type": "text", "text": 5}, tool, {**tool, "state": {"status": "?"}}],
                ),
                message("b", at="soon"),  # type: ignore[arg-type]
                {"info": {"id": "x", "role": "system"}},
                message("d", at=3),
            ],
            "todos": [{"content": "x", "status": "pending"}, 5, {"content": "y", "status": "someday"}],
            "session": {"id": 5},
        },
        session="s",
        on_skip=skipped.append,
    )
    assert [m.id for m in got.messages] == ["a", "d"]
    assert got.messages[0].text == "ok"
    assert len(got.messages[0].calls) == 1
    assert got.todos == (Todo("x", "pending"),)
    assert len(skipped) == 7


@given(st.lists(st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d8", "3d", '"', "\n", "😀"]), max_size=12))
def test_only_half_characters_are_mended(parts: list[str]) -> None:
    """Whatever stands around them: escaped backslashes, whole characters, other halves."""
    said = "".join(parts)
    utf16 = said.encode("utf-16-le", "surrogatepass")
    assert json.loads(mend(json.dumps(said).encode())) == utf16.decode("utf-16-le", "replace")


@pytest.mark.shows("I7")
def test_order_and_doubles() -> None:
    """The order is the host's whatever the times say; a repeated id takes the later form."""
    messages = [message("c", at=3), message("a", at=1), message("b", at=2), message("a", at=1)]
    messages[-1]["parts"] = [text("newer")]
    got = parse({"messages": messages}).messages
    assert [m.id for m in got] == ["c", "a", "b"]
    assert got[1].text == "newer"


def test_a_megabyte_is_quick() -> None:
    """No step of the loop takes over 10 ms; a read of 1 MB stays in that range."""
    tool = {
        "type": "tool",
        "callID": "c",
        "tool": "bash",
        "state": {"status": "completed", "output": "x" * 3000},
    }
    data = json.dumps(
        {"messages": [message(f"m{i}", at=i, parts=[tool, text("y" * 2000)]) for i in range(200)]}
    ).encode()
    best = min(_seconds(data) for _ in range(5))
    assert best < 0.1


def _seconds(data: bytes) -> float:
    before = time.perf_counter()
    parse(data)
    return time.perf_counter() - before


_any_part = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "tool", "compaction", "other"]) | JSON,
        "text": st.text(max_size=5) | JSON,
        "synthetic": JSON,
        "order": st.sampled_from(["ord_1", "x"]) | JSON,
        "callID": JSON,
        "state": st.fixed_dictionaries(
            {}, optional={"status": st.just("completed") | JSON, "input": JSON, "exit": JSON}
        )
        | JSON,
    },
)


_any_message = st.fixed_dictionaries(
    {},
    optional={
        "info": st.fixed_dictionaries(
            {},
            optional={
                "id": st.sampled_from(["a", "b", "c"]) | JSON,
                "role": st.sampled_from(["user", "assistant"]) | JSON,
                "time": st.fixed_dictionaries({}, optional={"created": st.integers(0, 5) | JSON}) | JSON,
                "error": JSON,
                "summary": JSON,
            },
        )
        | JSON,
        "parts": st.lists(_any_part, max_size=3) | JSON,
    },
)


_any_read = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(_any_message | JSON, max_size=5) | JSON,
        "todos": st.lists(JSON, max_size=3) | JSON,
        "session": JSON,
        "busy": st.booleans() | JSON,
    },
)


@pytest.mark.shows("I36")
@given(_any_read | JSON)
def test_any_json_is_read_or_refused(data: Any) -> None:
    """Arbitrary JSON raises ``BadReply`` or gives a transcript with unique, known messages."""
    try:
        got = parse(json.dumps(data).encode())
    except BadReply:
        return
    ids = [m.id for m in got.messages]
    assert len(ids) == len(set(ids))
    assert all(m.role == "user" or not m.human for m in got.messages)


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("cost", "tokens", "read"),
    [
        (0.25, 1200, (0.25, 1200)),
        (0, 1200, (None, 1200)),
        (None, None, (None, 0)),
        ("much", {"input": 3}, (None, 0)),
        (-1, -1, (None, 0)),
        (True, True, (None, 0)),
        (1e300, 1e300, (None, 0)),
    ],
)
def test_what_the_agents_work_cost(cost: Any, tokens: Any, read: tuple[float | None, int]) -> None:
    """The agent's own cost is summed for the task; a price the host does not know stays unknown."""
    asked = {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": "Do it"}]}
    info = {"id": "m2", "role": "assistant", "finish": "stop", "cost": cost, "tokens": tokens}
    data = json.dumps({"session": {"id": "s"}, "messages": [asked, {"info": info, "parts": []}]}).encode()
    found = parse_transcript(data, is_ours=lambda _: False)
    assert found.used == read


@pytest.mark.shows("REQ-REFL-001")
@pytest.mark.parametrize(
    ("cited", "kept"),
    [
        (["pat-001", "kpt_002", "pat-001"], ("pat-001", "kpt_002")),
        (["x", 7, "a] [pat-1"], ("pat-1",)),
        ("pat-001", ()),
    ],
)
def test_of_thoughts_only_the_cited_points_are_kept(cited: Any, kept: tuple[str, ...]) -> None:
    """The shim sends the names alone; what is no name is left out, and nothing else is lost."""
    parts = [text("one"), {"type": "reasoning", "cited": cited}]
    (found,) = parse({"messages": [message("a", parts=parts)]}).messages
    assert (found.text, found.cited) == ("one", kept)
