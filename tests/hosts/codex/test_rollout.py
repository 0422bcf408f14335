"""Rollouts as Codex 0.169.0 wrote them, and files that are half written, long, old, foreign or hostile."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.core.guards import ABORT_ERROR
from daemon.core.transcript import Transcript
from daemon.hosts.codex.lines import entry_of, result_of
from daemon.hosts.codex.rollout import (
    Fold,
    RolloutReader,
    is_rollout,
    name_of,
    transcript_of,
    with_sub_agents,
)

RECORDED = Path(__file__).parents[2] / "data" / "codex"
SESSION = "01a20000-0000-7000-8000-000000000001"
TURN = "01a20000-0000-7000-8000-00000000000{}"
Json = dict[str, Any]


def recorded(part: str) -> Path:
    (found,) = RECORDED.glob(f"*{part}*.jsonl")
    return found


def every_task(path: Path) -> Transcript:
    """All tasks of a rollout, not the current one alone."""
    fold = Fold(lambda _: True, whole=True, every=True)
    for raw in path.read_bytes().split(b"\n"):
        fold.take(raw)
    return fold.transcript()


def line(kind: str, payload: Json, at: int = 0) -> str:
    stamp = f"2026-11-24T10:00:{at:02d}.000Z"
    return json.dumps(
        {"timestamp": stamp, "ordinal": at, "type": kind, "payload": payload}, separators=(",", ":")
    )


def meta(**more: Any) -> str:
    return line("session_meta", {"id": SESSION, "cwd": "/home/ann/shop", "source": "cli", **more})


def began(turn: str, trigger: str = "") -> str:
    told = {"turn_attribution": {"turn_trigger": trigger}} if trigger else {}
    return line("event_msg", {"type": "task_started", "turn_id": turn, **told})


def said(
    text: str, turn: str = "", kinds: list[str] | None = None, provenance: str = "user", name: str = "m"
) -> str:
    about: Json = {"turn_id": turn, "content_item_kinds": kinds or ["user.text"]}
    about["content_item_metadata"] = [{"provenance": {"type": provenance}}]
    content = [{"type": "input_text", "text": text}]
    message = {"type": "message", "role": "user", "id": name, "content": content}
    return line("response_item", message | {"internal_chat_message_metadata_passthrough": about})


def answered(text: str, name: str = "a") -> str:
    content = [{"type": "output_text", "text": text}]
    return line("response_item", {"type": "message", "role": "assistant", "id": name, "content": content})


def called(command: str, name: str = "c1") -> str:
    arguments = json.dumps({"cmd": command})
    return line(
        "response_item",
        {"type": "function_call", "name": "exec_command", "call_id": name, "arguments": arguments},
    )


def ran(name: str = "c1", code: int = 0, output: str = "") -> str:
    item = {
        "type": "CommandExecution",
        "id": name,
        "command": ["bash", "-lc", "make"],
        "cwd": "file:///home/ann/shop",
    }
    item |= {"exit_code": code, "status": "completed", "aggregated_output": output}
    return line("event_msg", {"type": "item_completed", "item": item})


def used(total: int = 100) -> str:
    return line("event_msg", {"type": "token_count", "info": {"last_token_usage": {"total_tokens": total}}})


def ended(turn: str, **more: Any) -> str:
    return line("event_msg", {"type": "task_complete", "turn_id": turn, **more})


def aborted(turn: str, reason: str = "interrupted") -> str:
    return line("event_msg", {"type": "turn_aborted", "turn_id": turn, "reason": reason})


def of(*lines: str) -> Transcript:
    return transcript_of("\n".join([meta(), *lines]).encode(), "x")


ONE, TWO = TURN.format(1), TURN.format(2)
TASK = (
    began(ONE),
    said("Fix it", ONE),
    called("make"),
    used(),
    ran(code=2, output="boom"),
    answered("Done."),
    used(),
)


def test_a_patch_and_a_command_that_still_ran() -> None:
    """A patch by the shell is a patch, with its lines; a tool that Codex does not have failed."""
    found = every_task(recorded("4ef8"))
    assert (found.session, found.directory) == ("01a2142d-4ef8-7852-bdfa-930cbba4dfdb", "/home/ann/shop")
    calls = {(c.tool, c.status): c for c in found.calls}
    patch = calls["apply_patch", "completed"]
    assert patch.input == {
        "patchText": "*** Begin Patch\n*** Add File: /home/ann/shop/hello.py\n+print('hello')\n*** End Patch"
    }
    assert calls["apply_patch", "error"].error == "unsupported custom tool call: apply_patch"
    assert calls["bash", "completed"].input["command"] == "sleep 30; echo late"
    assert calls["bash", "completed"].exit is None


def test_hook_prompts_and_sub_agents() -> None:
    """Our words are no person's; a sub-agent's calls stand in the call that started it."""
    path = recorded("f626")
    found = every_task(path)
    assert [m.text for m in found.messages if m.human] == ["do it"]
    assert [m.order for m in found.messages if m.order] == ["rfl_0123456789abcdef0123"] * 2
    assert found.task is not None
    assert found.task.id == "01a2142e-f64a-71b0-a4a6-028430a42ae3", "as the hook named the turn"
    (agent,) = found.agents
    assert [c.status for c in found.calls if c.agent] == ["completed"]
    own = every_task(recorded("f8e9"))
    assert (own.session, own.parent) == (agent, found.session)
    assert not any(m.human for m in own.messages), "a sub-agent's prompt is no person's"
    assert with_sub_agents(found, path).messages == found.messages, "it made no calls"


@pytest.mark.parametrize("part", ["84cb", "bdfa", "a7c4"])
def test_a_result_that_is_known_is_not_read_again(part: str) -> None:
    """A result is known by the first bytes of its line. Where Codex's own item of the call came before, the
    line is not decoded, and the transcript is the same.
    """
    taken, fed = Fold(str.isascii, whole=True), Fold(str.isascii, whole=True)
    for each in recorded(part).read_bytes().splitlines():
        entry = entry_of(each)
        assert result_of(each) == (entry.id if entry is not None and entry.kind == "output" else "")
        taken.take(each)
        if entry is not None:
            fed.feed(entry)
    assert taken.transcript() == fed.transcript()


def test_a_sub_agent_that_runs_is_seen() -> None:
    """Until Codex says that it has ended."""
    spawn = {"type": "function_call", "name": "spawn_agent", "namespace": "multi_agent_v1", "call_id": "s"}
    spawn["arguments"] = json.dumps({"message": "Look", "agent_type": "explorer"})
    began_it = [
        *TASK[:2],
        line("response_item", spawn),
        line(
            "response_item",
            {"type": "function_call_output", "call_id": "s", "output": json.dumps({"agent_id": SESSION})},
        ),
        answered("It looks."),
    ]
    told = json.dumps({"agent_path": SESSION, "status": {"completed": "x"}})
    note = f"<subagent_notification>\n{told}\n</subagent_notification>"
    over = said(note, ONE, ["multi_agent.subagent_notification"], "tool")
    assert [(c.tool, c.status, c.agent) for c in of(*began_it).calls] == [("agent", "running", SESSION)]
    assert [c.status for c in of(*began_it, over).calls] == ["completed"]
    assert [m.text for m in of(*began_it, over).messages if m.human] == ["Fix it"]


def test_a_task_with_a_failed_check() -> None:
    """The command, its exit code, its output; the answer is finished when the model had no more to say."""
    found = of(*TASK)
    (call,) = found.calls
    assert (call.tool, call.input["command"], call.exit, call.output) == ("bash", "make", 2, "boom")
    assert [(m.role, m.finish) for m in found.messages] == [
        ("user", ""),
        ("assistant", "tool-calls"),
        ("assistant", "stop"),
    ]
    assert found.task is not None
    assert found.task.id == ONE


@pytest.mark.parametrize(
    ("text", "kinds", "provenance", "human"),
    [
        ("Fix it", ["user.text"], "user", True),
        (
            "<environment_context>x</environment_context>",
            ["environments.environment_context"],
            "harness",
            False,
        ),
        ("<turn_aborted>\nx</turn_aborted>", ["generic.turn_aborted"], "harness", False),
        ("Fix it", ["user.text"], "harness", False),
        ("Go on (reflectd rfl_0123456789abcdef0123)", ["user.text"], "user", False),
    ],
)
def test_whose_words_they_are(text: str, kinds: list[str], provenance: str, human: bool) -> None:
    """Provenance decides, and an order of ours is never a person's."""
    assert any(m.human for m in of(began(ONE), said(text, ONE, kinds, provenance)).messages) is human


@pytest.mark.parametrize(
    ("text", "human"),
    [
        ("Fix it", True),
        ("<environment_context>", False),
        ("# AGENTS.md instructions for /x", False),
        ("<b> tag", True),
    ],
)
def test_a_version_that_tells_no_provenance(text: str, human: bool) -> None:
    """Then Codex's own texts are known by their tags."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    assert any(m.human for m in of(began(ONE), line("response_item", message)).messages) is human


def test_esc_and_errors_of_the_provider() -> None:
    """Esc ends the answer; so does an error, which no hook tells."""
    found = of(*TASK[:3], aborted(ONE))
    assert found.turn is not None
    assert (found.turn.error, found.turn.calls[0].status) == (ABORT_ERROR, "error")
    found = of(began(ONE), said("Fix it", ONE), aborted(ONE))
    assert [m.error for m in found.messages] == ["", ABORT_ERROR]
    found = of(*TASK[:5], ended(ONE, error={"message": "high demand"}))
    assert found.turn is not None
    assert (found.turn.error, found.turn.error_message) == ("HostError", "high demand")


def test_a_new_task_forgets_the_old_one_but_its_request() -> None:
    """A reader keeps what the judge may see: earlier requests, the last answer, and the task."""
    found = of(
        *TASK,
        ended(ONE),
        began(TWO),
        said("Now document it", TWO, name="m2"),
        answered("Documented.", "a2"),
        used(),
    )
    assert found.task is not None
    assert (found.task.id, [m.text for m in found.requests]) == (TWO, ["Now document it"])
    assert not found.calls


def test_steering_keeps_the_task() -> None:
    """A second message of the same turn has a name of its own."""
    found = of(*TASK[:5], said("and hurry", ONE, name="m2"), answered("Done."), used())
    assert [m.id for m in found.messages if m.human] == [ONE, "m2"]
    assert found.task is not None
    assert found.task.id == ONE


def test_compaction_and_turns_that_were_taken_back() -> None:
    """A summary is no answer of the task; what the person took back is gone."""
    found = of(*TASK[:5], line("compacted", {"message": "So far …"}), answered("Done."), used())
    assert [m.summary for m in found.messages if m.role == "assistant"] == [False, True, False]
    back = line("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    found = of(*TASK, ended(ONE), began(TWO), said("No", TWO, name="m2"), back)
    assert [m.text for m in found.messages if m.human] == ["Fix it"]


def test_older_forms_of_a_call() -> None:
    """Commands as lists, and outputs as JSON with the exit code."""
    call = {"type": "function_call", "name": "shell", "call_id": "c"}
    call["arguments"] = json.dumps({"command": ["bash", "-lc", "make test"], "workdir": "/x"})
    output = json.dumps({"output": "1 failed", "metadata": {"exit_code": 2}})
    given = {"type": "function_call_output", "call_id": "c", "output": output}
    (found,) = of(*TASK[:2], line("response_item", call), line("response_item", given)).calls
    assert (found.input, found.output, found.exit) == (
        {"command": "make test", "workdir": "/x"},
        "1 failed",
        2,
    )


@pytest.mark.parametrize(
    "bad",
    [
        b"{", b"[]", b"null", b"{}", b'{"type":"response_item"}', b"\xff\xfe", b'{"type":[],"payload":{}}',
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":7,"id":[]}}',
        b'{"type":"response_item","payload":{"type":"function_call","arguments":"[[[","call_id":{}}}',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","changes":[1]}}}',
        b'{"type":"event_msg","payload":{"type":"task_complete","error":7}}',
        b'{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":-5}}',
        b'{"type":"a_new_kind","payload":{"type":"x"}}', b'{"timestamp":1,"type":"compacted","payload":[]}',
        b'{"type":"response_item","payload":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"\\ud83d"}]}}',
    ],
)  # fmt: skip
def test_lines_of_any_form_cost_only_themselves(bad: bytes) -> None:
    """The task before and after them is read (I36)."""
    whole = "\n".join([meta(), *TASK[:4]]).encode() + b"\n" + bad + b"\n" + "\n".join(TASK[4:]).encode()
    found = transcript_of(whole, "x")
    assert [c.exit for c in found.calls] == [2]


def test_a_file_that_grows(tmp_path: Path) -> None:
    """Half a line is left for the next read; the final text is waited for; a file that was replaced is read
    anew.
    """
    path = tmp_path / f"rollout-2026-11-24T10-00-00-{SESSION}.jsonl"
    reader = RolloutReader(path, is_ours=lambda _: True)
    assert reader.read().messages == ()
    text = "\n".join([meta(), *TASK[:-2], TASK[-2]])
    path.write_text(text[:-20], "utf-8")
    assert reader.read("Done.").turn is not None
    assert not reader.found
    path.write_text(text + "\n", "utf-8")
    found = reader.read("Done.")
    assert reader.found
    assert found.turn is not None
    assert found.turn.finish == "stop", "the hook says that it ended"
    path.unlink()
    path.write_text("\n".join([meta(), began(TWO), said("Another", TWO)]) + "\n", "utf-8")
    assert [m.text for m in reader.read().messages] == ["Another"]
    assert (reader.read().session, name_of(path)) == (SESSION, SESSION)


def test_a_long_file_is_read_from_its_end(tmp_path: Path) -> None:
    """Of 100 MB only the last task and a few requests before it are read."""
    path = tmp_path / f"rollout-2026-11-24T10-00-00-{SESSION}.jsonl"
    old = "\n".join([*TASK[:4], ran(output="x" * 100_000), *TASK[5:], ended(ONE)]) + "\n"
    with path.open("w", encoding="utf-8") as file:
        file.write(meta() + "\n")
        for _ in range(1_000):
            file.write(old)
        file.write(
            "\n".join([began(TWO), said("The last", TWO, name="m2"), answered("Yes.", "a2"), used()]) + "\n"
        )
    assert os.path.getsize(path) > 100_000_000
    reader = RolloutReader(path, is_ours=lambda _: True)
    began_at = time.process_time()
    found = reader.read()
    took = time.process_time() - began_at
    assert found.task is not None
    assert (found.task.text, found.session, found.directory) == ("The last", SESSION, "/home/ann/shop")
    assert took < 5, "the whole file takes far longer than its end"


def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder or a FIFO is told of, and nobody waits for it."""
    fifo = tmp_path / "rollout.jsonl"
    os.mkfifo(fifo)
    for path in (tmp_path, fifo):
        with pytest.raises(Unavailable):
            RolloutReader(path, is_ours=lambda _: True).read()


def test_rollouts_are_told_from_other_files() -> None:
    """By their first line."""
    assert is_rollout(recorded("4ef8").read_bytes())
    assert not is_rollout(b'{"type":"user","uuid":"x","sessionId":"y"}\n')
    assert not is_rollout(b"not JSON")
