"""The real ``opencode acp``, and the side of an editor: JSON-RPC 2.0, one message a line, over its pipes."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import threading
from types import TracebackType
from typing import Any, Self

from harness.hosts.opencode import binary
from harness.machine import processes
from harness.machine.sandbox import Sandbox, opencode_env
from harness.machine.waiting import PATIENCE_S, wait_until

Json = dict[str, Any]


class OpencodeAcp:
    """``with OpencodeAcp(box, llm.url) as editor``: one ``opencode acp``, greeted."""

    def __init__(self, box: Sandbox, model_url: str, **env: str) -> None:
        self._box, self._env = box, opencode_env(box, model_url) | env
        self._ids = itertools.count(1)
        self._answers: dict[int, Json] = {}
        self.noise: list[str] = []
        """What stood on its standard output and was no message of the protocol."""

    def __enter__(self) -> Self:
        self._err = self._box.root / "acp.err"
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [str(binary()), "acp"],
                cwd=self._box.project,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._read, name="acp", daemon=True)
        self._thread.start()
        try:
            files = {"readTextFile": False, "writeTextFile": False}
            self.ask("initialize", protocolVersion=1, clientCapabilities={"fs": files, "terminal": False})
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def leave(self) -> int:
        """What an editor does that is closed: no more input. The exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(PATIENCE_S)

    def ask(self, method: str, **params: Any) -> Json:
        """One request; its result. An error fails the test."""
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params})
        answer = wait_until(lambda: self._answers.get(number), f"answer to {method}", self._said)
        assert answer is not None
        assert "error" not in answer, answer
        result: Json = answer["result"]
        return result

    def new_session(self) -> str:
        """A session in the project; its id."""
        made: str = self.ask("session/new", cwd=str(self._box.project), mcpServers=[])["sessionId"]
        return made

    def prompt(self, session: str, text: str) -> str:
        """What a person types in the editor; waits for the turn's end and says why it ended."""
        said = [{"type": "text", "text": text}]
        reason: str = self.ask("session/prompt", sessionId=session, prompt=said)["stopReason"]
        return reason

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                self.noise.append(line.decode("utf-8", "replace"))
                continue
            if "method" not in message:
                self._answers[message["id"]] = message
            elif "id" in message:
                # an editor that offers nothing
                with contextlib.suppress(OSError, ValueError):
                    self._send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})

    def _said(self) -> str:
        return "".join(self.noise) + self._err.read_text("utf-8", "replace")

    def _close(self) -> None:
        processes.end_group(self._process)
        self._thread.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
