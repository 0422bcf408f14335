"""Codex rollouts beside Claude Code transcripts of the same turns: a first look, and all of a file."""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.stand import Table, median
from bench.transcripts import CALLS, MB, SESSION, Corpus
from daemon.hosts.claude_code import transcript as claude_code
from daemon.hosts.codex import rollout as codex

if TYPE_CHECKING:
    from collections.abc import Callable

LINES: Final = (20, 200)
"""Of a command's output: 1 kB and 12 kB."""
WHOLE: Final = 1 << 50
_USED: Final = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": 110}


def _output(lines: int) -> str:
    """As of a test run; one line in the middle has a telling word, and tells nothing."""
    shown = ["tests/test_orders.py::test_the_sum_of_all_items PASSED [ 41%]"] * lines
    shown[lines // 2] = "tests/test_errors.py::test_a_missing_item PASSED [ 41%]"
    return "\n".join([*shown, "200 passed in 12.04s"])


class Transcript(Corpus):
    """Turns without the requests to the model, which a rollout has not either."""

    def __init__(self, path: Path, output: str) -> None:
        super().__init__(path)
        self._output = output

    def turn(self) -> None:
        """A request, eight thoughts with their calls, and a final text."""
        origin = {"kind": "human"}
        self._line("user", promptId=f"p{self._n}", origin=origin, message={"content": f"task {self._n}"})
        for i in range(CALLS):
            call = f"t{self._n}"
            self._answer({"type": "thinking", "thinking": "", "signature": "x" * 2_000}, "tool_use")
            given = {"command": f"pytest tests/{i}"}
            self._answer({"type": "tool_use", "id": call, "name": "Bash", "input": given}, "tool_use")
            block = {"type": "tool_result", "tool_use_id": call, "content": self._output, "is_error": False}
            own = {"stdout": self._output, "stderr": "", "interrupted": False}
            self._line("user", message={"content": [block]}, toolUseResult=own)
        self._answer({"type": "text", "text": "Done. " * 40}, "end_turn")


class Rollout(Corpus):
    """The same turns as Codex 0.169.0 writes them."""

    def __init__(self, path: Path, output: str) -> None:
        super().__init__(path)
        self._output, self._turn = output, ""
        self._put(
            "session_meta", id=SESSION, cwd="/repo", source="cli", base_instructions="be good\n" * 2_000
        )

    def turn(self) -> None:
        """A request, eight thoughts with their calls, and a final text."""
        done, self._turn = "Done. " * 40, f"{self._n:08d}-0000-7000-8000-000000000000"
        self._event("task_started", turn_attribution={"turn_trigger": "user"})
        self._put("world_state", full=True, state={"skills": "be good\n" * 400})
        self._put("turn_context", turn_id=self._turn, cwd="/repo", model="m")
        asked = [{"type": "input_text", "text": f"task {self._n}"}]
        self._item("message", role="user", content=asked)
        self._completed("UserMessage", content=asked)
        for i in range(CALLS):
            self._item("reasoning", summary=[], encrypted_content="x" * 2_000)
            call, given = f"call_{self._n}", json.dumps({"cmd": f"pytest tests/{i}"})
            self._item("function_call", name="exec_command", arguments=given, call_id=call)
            self._put("token_usage_record", usage=_USED, turn_token_usage=_USED, thread_token_usage=_USED)
            ran = {
                "command": ["/bin/bash", "-lc", f"pytest tests/{i}"],
                "cwd": "file:///repo",
                "exit_code": 0,
            }
            self._completed(
                "CommandExecution", call, status="completed", aggregated_output=self._output, **ran
            )
            head = "Wall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n"
            self._item("function_call_output", call_id=call, output=head + self._output)
            self._event("token_count", info={"total_token_usage": _USED, "last_token_usage": _USED})
        self._completed("AgentMessage", content=[{"type": "Text", "text": done}])
        self._item("message", role="assistant", content=[{"type": "output_text", "text": done}])
        self._event("token_count", info={"total_token_usage": _USED, "last_token_usage": _USED})
        self._event("task_complete", last_agent_message=done)

    def _completed(self, kind: str, name: str = "", **more: object) -> None:
        item = {"type": kind, "id": name or f"item_{self._n}", **more}
        self._event("item_completed", item=item, started_at_ms=1, completed_at_ms=1)

    def _event(self, kind: str, **more: object) -> None:
        self._put("event_msg", type=kind, thread_id=SESSION, turn_id=self._turn, **more)

    def _item(self, kind: str, **more: object) -> None:
        about = {"turn_id": self._turn, "content_item_kinds": ["user.text"]}
        named = {"type": kind, "id": f"item_{self._n}", **more}
        self._put("response_item", **named, internal_chat_message_metadata_passthrough=about)

    def _put(self, line: str, **payload: object) -> None:
        self._n += 1
        head = {"timestamp": "2026-11-20T10:00:00.000Z", "ordinal": self._n, "type": line}
        self._write({**head, "payload": payload})


def run(*, quick: bool, mb: int = 100) -> Table:
    """Milliseconds of a first look and of a whole file for both, and the ratios, by the size of outputs."""
    table = Table(
        f"Codex rollouts beside Claude Code transcripts of the same turns, {mb} MB generated (one core)",
        ("output, reading", "Codex ms", "Claude Code ms", "ratio"),
    )
    with tempfile.TemporaryDirectory() as folder:
        for lines in LINES:
            output = _output(lines)
            made = (
                Rollout(Path(folder) / f"r{lines}", output),
                Transcript(Path(folder) / f"t{lines}", output),
            )
            for corpus in made:
                corpus.grow(mb * MB)
                corpus.close()
            for name, whole in (("first look", False), ("whole file", True)):
                ours, theirs = _measured(Path(folder), lines, 5 if quick else 9, whole=whole)
                cells = (f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}")
                table.rows.append((f"{len(output) / 1e3:.0f} kB, {name}", *cells))
                values = {"codex_ms": ours, "claude_ms": theirs, "ratio": ours / theirs}
                table.values[f"{lines} lines, {name}"] = values
    table.notes.append("aim: the same time, a ratio of about 1")
    return table


def _measured(folder: Path, lines: int, runs: int, *, whole: bool) -> tuple[float, float]:
    """The medians of both, read in turns."""
    spent: dict[Callable[..., None], list[float]] = {_codex: [], _claude: []}
    for _ in range(runs + 1):
        for read, took in spent.items():
            took.append(_ms(partial(read, folder, lines, whole=whole)))
    ours, theirs = (median(took[1:]) for took in spent.values())  # the first brings the file into the cache
    return ours, theirs


def _ms(job: Callable[[], object]) -> float:
    began = time.perf_counter()
    job()
    return (time.perf_counter() - began) * 1e3


def _codex(folder: Path, lines: int, *, whole: bool) -> None:
    path = folder / f"r{lines}"
    window = WHOLE if whole else codex.WINDOW
    found = codex.RolloutReader(path, is_ours=str.isascii, window=window).read("Done.")
    assert len(found.calls) == CALLS


def _claude(folder: Path, lines: int, *, whole: bool) -> None:
    reach = claude_code.Reach(window=WHOLE) if whole else claude_code.Reach()
    path = folder / f"t{lines}"
    found = claude_code.TranscriptReader(path, is_ours=str.isascii, reach=reach).read("Done.")
    assert len(found.calls) == CALLS
