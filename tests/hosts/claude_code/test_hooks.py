"""Hooks of Claude Code: each shape, what core events it gives, and what is refused."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core import events as ev
from daemon.core.errors import BadReply
from daemon.core.session import Session, fold
from daemon.hosts.claude_code.hooks import EVENTS, Hook, Task, events_of, parse_hook

SESSION = "5f0c7a52-9a1e-4a0e-8a37-0f4c1d2e3b4a"
ORDER = "rfl_0123456789abcdef0123"
HEADERS = {
    "Host": "reflectd",
    "X-CC-Entrypoint": "cli",
    "X-CC-Attended": "1",
    "X-CC-Pid": "4242",
    "X-CC-Project": "/home/ada/shop",
    "X-CC-Headless": "",
}
RUNNING = {"id": "a1", "type": "subagent", "status": "running", "agent_type": "general-purpose"}


def hook(event: str, headers: dict[str, str] | None = None, **body: Any) -> Hook:
    common = {
        "session_id": SESSION,
        "transcript_path": f"/home/u/.claude/projects/-work-shop/{SESSION}.jsonl",
        "cwd": "/home/ada/shop/sub",
        "hook_event_name": event,
        "prompt_id": "9d3c0001",
    }
    data = json.dumps({k: v for k, v in (common | body).items() if v is not ...}).encode()
    return parse_hook(event, data, HEADERS if headers is None else headers)


def said(event: str, **body: Any) -> tuple[ev.Event, ...]:
    return events_of(hook(event, **body), 7)


def test_fields_of_a_stop_and_its_headers() -> None:
    """All that the engine needs is read from the body and the headers that hook.sh adds."""
    found = hook(
        "Stop",
        permission_mode="default",
        effort={"level": "medium"},
        last_assistant_message="all done",
        background_tasks=[RUNNING, RUNNING | {"status": "completed"}, {"id": "x"}, "odd"],
        session_crons=[],
    )
    assert found.session == SESSION
    assert found.transcript.endswith(f"{SESSION}.jsonl")
    assert (found.project, found.cwd, found.directory) == (
        "/home/ada/shop",
        "/home/ada/shop/sub",
        "/home/ada/shop",
    )
    assert (found.prompt_id, found.last_assistant_message) == ("9d3c0001", "all done")
    assert found.background == (Task("a1", "subagent", "general-purpose"), Task("x", "", "a background task"))
    assert (found.entrypoint, found.attended, found.pid, found.headless) == ("cli", True, 4242, False)
    assert found.interactive


def test_headless_sessions_are_told_from_a_terminal() -> None:
    """An SDK's entry point, or nobody at the terminal; an old version says nothing about that."""
    print_mode = hook("Stop", {"x-cc-entrypoint": "sdk-cli", "x-cc-attended": "0", "x-cc-headless": "1"})
    assert (print_mode.interactive, print_mode.headless, print_mode.attended) == (False, True, False)
    background = hook("Stop", {"x-cc-entrypoint": "cli", "x-cc-attended": "0"})
    assert (print_mode.one_shot, background.one_shot, background.interactive) == (True, False, False)
    old = hook("Stop", {"X-CC-Entrypoint": "cli"})
    assert (old.interactive, old.attended, old.project, old.directory) == (
        True,
        None,
        "",
        "/home/ada/shop/sub",
    )


SEEN = ev.SessionSeen(SESSION, 7, title="t", directory="/home/ada/shop")
ACTIVE, BUSY, IDLE = ev.ActivitySeen(SESSION, 7), ev.SessionBusied(SESSION, 7), ev.SessionIdled(SESSION, 7)
ANSWERED = ev.PersonAnswered(SESSION, 7, "permission")
NOTE = "<task-notification>"


def typed(name: str = "9d3c0001", agent: str = "") -> tuple[ev.Event, ...]:
    return ev.HumanMessaged(SESSION, 7, name, agent), BUSY


def by_nobody(order: str = "") -> tuple[ev.Event, ...]:
    return ev.SyntheticMessaged(SESSION, 7, "9d3c0001", order), BUSY


@pytest.mark.shows("I4", "I7", "I9", "I11", "I16", "I21", "I33", "I36")
@pytest.mark.parametrize(
    ("event", "body", "expected"),
    [
        *(
            ("SessionStart", {"source": s, "session_title": "t"}, (SEEN,))
            for s in ("startup", "clear", "fork")
        ),
        (
            "SessionStart",
            {"source": "compact", "model": "x", "session_title": "t"},
            (SEEN, ev.SessionCompacted(SESSION, 7)),
        ),
        # the task's id is the prompt's id; plan mode is the agent's name; without an id it is a task too
        ("UserPromptSubmit", {"prompt": "Fix it"}, typed()),
        ("UserPromptSubmit", {"prompt": "/plugin:do it", "permission_mode": "plan"}, typed(agent="plan")),
        ("UserPromptSubmit", {"prompt": "x", "prompt_id": ...}, typed("prompt-7")),
        # wakes, notifications and our own commands are no human messages and open no task
        ("UserPromptSubmit", {"prompt": f"{NOTE}\nGo on\n(reflectd {ORDER})"}, by_nobody(ORDER)),
        ("UserPromptSubmit", {"prompt": f"{NOTE}<task-id>a1</task-id></task-notification>"}, by_nobody()),
        ("UserPromptSubmit", {"prompt": f"Stop hook feedback:\nGo on (reflectd {ORDER})"}, by_nobody(ORDER)),
        ("UserPromptSubmit", {"prompt": "<system-reminder>be nice</system-reminder>"}, by_nobody()),
        ("UserPromptSubmit", {"prompt": "/reflectd:status"}, by_nobody()),
        # with a background task the turn is not over; a second Stop follows
        ("Stop", {"background_tasks": []}, (ANSWERED, IDLE)),
        (
            "Stop",
            {"background_tasks": [RUNNING]},
            (ANSWERED, ACTIVE, ev.BackgroundAwaited(SESSION, 7, ("general-purpose",))),
        ),
        # a rate limit is not the agent's fault, and the session is idle after it
        (
            "StopFailure",
            {"error": "rate_limit", "last_assistant_message": "API Error: 429"},
            (ev.HostErrored(SESSION, 7, "rate_limit", "API Error: 429"), ANSWERED, IDLE),
        ),
        # a sub-agent's hooks never idle its session; that of a compaction (no type) says nothing
        ("SubagentStop", {"agent_id": "a1", "agent_type": "Explore"}, (ACTIVE,)),
        ("SubagentStop", {"agent_id": "a1", "agent_type": ""}, ()),
        ("Stop", {"agent_id": "a1", "agent_type": "Explore"}, (ACTIVE,)),
        ("PreCompact", {"trigger": "auto", "custom_instructions": None}, (ACTIVE,)),
        ("PreToolUse", {"tool_name": "Bash"}, (ACTIVE,)),
        ("PostToolUse", {"tool_name": "Bash"}, (ANSWERED, ACTIVE)),
        # a turn cut short by the end of the session gets its final verdict too
        ("SessionEnd", {"reason": "other"}, (ANSWERED, IDLE, ev.SessionEnded(SESSION, 7))),
        # Esc: nothing is asked of the person any more, and the agent is idle
        ("ModAborted", {"turn_id": "t1"}, (ev.TurnAborted(SESSION, 7), ANSWERED, IDLE)),
        # a newer host's events give nothing, its new fields are skipped
        ("ModWatch", {}, ()),
        ("MessageDisplay", {"delta": "x", "turn_id": "t"}, ()),
        ("PostCompact", {"trigger": "manual", "brand_new": {"deep": [1]}}, ()),
    ],
)
def test_events(event: str, body: dict[str, Any], expected: tuple[ev.Event, ...]) -> None:
    """Each hook and the events of it."""
    assert said(event, **body) == expected


@pytest.mark.shows("I16")
def test_a_shell_in_the_background_is_no_agent_at_work() -> None:
    """A server may run as long as the session: it holds no turn back by itself."""
    shell = {
        "id": "b7",
        "type": "shell",
        "status": "running",
        "command": "npm run  dev\n# x",
        "description": "d",
    }
    assert said("Stop", background_tasks=[shell])[-1] == ev.SessionIdled(SESSION, 7)
    found = hook("Stop", background_tasks=[shell, shell | {"status": "completed"}, RUNNING])
    assert found.lasting == (Task("b7", "shell", "npm run dev # x"),)
    assert said("Stop", background_tasks=[shell, RUNNING])[-1] == ev.BackgroundAwaited(
        SESSION, 7, ("general-purpose",)
    )


@pytest.mark.shows("I36")
@pytest.mark.parametrize("odd", [["running"], {"a": 1}, 7, None], ids=str)
def test_a_background_task_of_an_odd_form_counts(odd: object) -> None:
    """A status that is no word says nothing, so the task is taken to run, and nothing raises."""
    found = hook("Stop", background_tasks=[{"id": odd, "type": odd, "status": odd, "command": odd}])
    assert len(found.background) == 1


@pytest.mark.shows("I15", "I16")
def test_a_permission_is_open_until_the_turn_ends() -> None:
    """No hook says that a permission was answered, so a Stop must not leave it open for ever."""
    asked = said(
        "Notification", notification_type="permission_prompt", message="Claude needs your permission"
    )
    s = Session(id=SESSION)
    for e in asked:
        s = fold(s, e)
    assert s.waiting
    for e in said("Stop"):
        s = fold(s, e)
    assert not s.waiting
    assert s.recheck
    assert (
        said("Notification", notification_type="idle_prompt", message="Claude is waiting for your input")
        == ()
    )
    assert said("Notification", message="Claude needs your permission to use Bash") == asked


@pytest.mark.shows("I4")
@pytest.mark.parametrize(
    ("origin", "prompt", "typed"),
    [
        ("composer", "Do it", True),
        ("bridge", "Do it", True),
        ("sdk", "Do it", True),
        ("", "Do it", True),
        ("a kind of next year", "Do it", True),
        ("plugin", "Do it", False),
        ("scheduled-trigger", "Do it", False),
        ("peer", "Do it", False),
        ("task-notification", "Do it", False),
        ("composer", "/reflectd:status", False),
        ("", "<task-notification>x</task-notification>", False),
        ("", "`<channel>` lacks a title", True),
        ("", "<channel> in feed.xml lacks a title", True),
        ("", "<channel source='x'>hello</channel>", False),
        ("composer", "<channel><item/></channel> lacks a title", True),
        ("composer", "Stop hook feedback: what is that?", True),
        ("composer", "<task-notification> is printed twice", True),
        ("composer", "<bash-stdout>x</bash-stdout>", False),
    ],
)
def test_the_mod_says_who_submitted_a_prompt(origin: str, prompt: str, *, typed: bool) -> None:
    """What another plugin, a schedule or the host submits is no person's, though its text looks like it;
    where the mod says nothing, or something that is not known, the text decides.
    """
    found = hook("UserPromptSubmit", prompt=prompt, reflectd_mod=1, reflectd_origin=origin)
    assert (found.mod, found.typed) == (True, typed)
    kinds = {type(e) for e in events_of(found, 7)}
    assert (ev.HumanMessaged in kinds) is typed


@pytest.mark.shows("I44")
@pytest.mark.parametrize("name", ["prompt", "last_assistant_message", "tool_input", "reflectd_mod", "source"])
def test_lists_of_millions_are_not_made(name: str) -> None:
    """What is no text where a text stands is not looked into; making it would stop the daemon."""
    body = b'{"session_id":"s","%s":[%s[]]}' % (name.encode(), b"[]," * 300_000)
    tracemalloc.start()
    parse_hook("Stop", body, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(body), "a list for each would take twenty times that"


@pytest.mark.shows("I36")
def test_background_tasks_without_end_are_refused() -> None:
    """A megabyte of them is no list that a host keeps."""
    body = b'{"session_id":"s","background_tasks":[%s{}]}' % (b"{}," * 400_000)
    with pytest.raises(BadReply, match="background_tasks"):
        parse_hook("Stop", body, {})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"session_id": 7}',
        b'{"session_id": ""}',
        b'{"session_id": "a\\nb"}',
        b'{"session_id": "' + b"x" * 300 + b'"}',
        b'{"session_id": "s", "transcript_path": "../x.jsonl"}',
        b'{"session_id": "s", "transcript_path": "/x\\u0000y"}',
        b'{"session_id": "s", "cwd": ["/"]}',
        b'{"session_id": "s", "cwd": "/' + b"x" * 5_000 + b'"}',
        b" " * (8 << 20) + b'{"session_id": "s"}',
    ],
    ids=lambda b: repr(b[:24]),
)
def test_what_is_not_of_the_form_is_refused(body: bytes) -> None:
    """A broken body is a BadReply, never another exception."""
    with pytest.raises(BadReply):
        parse_hook("Stop", body, {})


def test_texts_are_bounded_and_odd_bytes_survive() -> None:
    """A long prompt keeps its head, a final text its tail; half characters are replaced, not refused."""
    found = hook("Stop", prompt="a" * 200_000 + "b", last_assistant_message="a" * 200_000 + "the end")
    assert len(found.prompt) == len(found.last_assistant_message) == 100_000
    assert found.last_assistant_message.endswith("the end")
    odd = parse_hook("Stop", b'{"session_id": "s", "prompt": "\\ud83d"}', {"X-CC-Project": "/a\udcff"})
    assert (odd.prompt, odd.project) == ("�", "/a�")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    "session_id", "cwd", "prompt", "prompt_id", "background_tasks", "source", "agent_id", "agent_type",
    "error", "notification_type", "message", "last_assistant_message", "permission_mode", "turn_id",
    "reflectd_mod", "reflectd_origin",
]  # fmt: skip


@pytest.mark.shows("I36")
@given(
    event=st.sampled_from(sorted(EVENTS)) | st.text(max_size=20),
    body=st.dictionaries(st.sampled_from(FIELDS), JSON),
)
def test_any_json_gives_events_or_a_bad_reply(event: str, body: dict[str, Any]) -> None:
    """Fields of any type are read or refused, and what comes out can be folded."""
    try:
        found = parse_hook(event, json.dumps({"session_id": "s"} | body).encode(), {})
    except BadReply:
        return
    s = Session(id=found.session)
    for e in events_of(found, 1):
        assert not isinstance(e, ev.InstanceDisposed)
        s = fold(s, e)
