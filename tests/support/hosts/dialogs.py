"""A Claude Code with a person before it, as the daemon sees one: hooks on the socket, lines in a transcript.

Lines are those that the real program made (``tests/data/consent``), with other texts. The hooks can be left
out, as for a forger who only writes into the transcript.
"""

from __future__ import annotations

import copy
import json
import os
import uuid
from pathlib import Path
from typing import Any

from harness.machine.sandbox import Sandbox
from tests.support.hosts.wire import send
from tests.support.machine.command_line import Done, reflectd

Json = dict[str, Any]
DATA = Path(__file__).parents[2] / "data" / "consent"


class Dialogs:
    """One session. ``version``: whose forms are used."""

    def __init__(self, box: Sandbox, version: str = "2.1.330", *, folder: Path | None = None) -> None:
        self.box, self.folder = box, folder or box.project
        self._forms: Json = json.loads((DATA / f"claude-code-{version}.json").read_text("utf-8"))
        self.session = str(uuid.uuid4())
        self.file = box.home / ".claude" / "projects" / "-project" / f"{self.session}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.headers = {
            "X-CC-Entrypoint": "cli",
            "X-CC-Attended": "1",
            "X-CC-Project": str(self.folder),
            "X-CC-Pid": str(os.getpid()),
        }
        self.hook("SessionStart", {"source": "startup"})

    def hook(self, event: str, fields: Json) -> int:
        """One hook; the status of its answer."""
        body = {
            "session_id": self.session,
            "transcript_path": str(self.file),
            "cwd": str(self.folder),
            "hook_event_name": event,
            **fields,
        }
        return send(self.box.socket, "POST", f"/v1/hooks/{event}", body, self.headers).status

    def write(self, *lines: Json) -> None:
        """Lines at the end of the transcript."""
        with self.file.open("a", encoding="utf-8") as f:
            f.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def asks(
        self,
        given: Json,
        *labels: str,
        told: bool = True,
    ) -> str:
        """The agent calls the question tool with ``given``, and the person answers with these labels, one for
        each question; the id of the call.

        ``told``: whether there is a hook that it was answered.
        """
        call = f"toolu_{uuid.uuid4().hex[:8]}"
        questions = given["questions"]
        answers = {q["question"]: label for q, label in zip(questions, labels, strict=True)}
        came = {"questions": questions, "answers": answers, "annotations": {}}
        self.write(*self.lines(given, came, call))
        if told:
            fields = {"tool_name": "AskUserQuestion", "tool_input": came, "tool_response": came}
            self.hook("PostToolUse", {**fields, "tool_use_id": call})
        return call

    def lines(self, given: Json, came: Json, call: str) -> list[Json]:
        """The two lines of a dialog."""
        form = self._forms["answered"]
        return lines_of(form, given, came, call, session=self.session, cwd=str(self.folder))

    def types(self, arguments: str, *, told: bool = True, **fields: Any) -> None:
        """The person types `/reflectd:reflect` with these words."""
        prompt = str(uuid.uuid4())
        if told:
            typed = f"/reflectd:reflect {arguments}"
            self.hook("UserPromptSubmit", {"prompt": typed, "prompt_id": prompt, **fields})
        line = copy.deepcopy(self._forms["commands"][1])
        said = line["message"]["content"].replace("reflect</", "reflectd:reflect</", 1)
        said = said.replace("/reflect<", "/reflectd:reflect<")
        before, _, rest = said.partition("<command-args>")
        after = rest.partition("</command-args>")[2]
        line["message"]["content"] = f"{before}<command-args>{arguments}</command-args>{after}"
        line |= {"promptId": prompt, "sessionId": self.session, "uuid": str(uuid.uuid4())}
        self.write(line)

    def runs(self, *words: str, **env: str) -> Done:
        """The agent runs `reflectd reflect` in its shell."""
        given = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.session, **env}
        return reflectd(self.box, "reflect", *words, cwd=self.folder, **given)


def lines_of(form: Json, given: Json, came: Json, call: str, **where: str) -> list[Json]:
    """The two lines of a dialog. ``where``: the session and its folder."""
    dialog = copy.deepcopy(form)
    asked, result = dialog["call"], dialog["result"]
    asked["message"]["content"][0] |= {"id": call, "input": given}
    result["message"]["content"][0]["tool_use_id"] = call
    result["toolUseResult"] = came
    for line in (asked, result):
        line |= {"uuid": str(uuid.uuid4()), "sessionId": where["session"], "cwd": where["cwd"]}
    return [asked, result]


def answer(done: Done, code: int = 0) -> Json:
    """What a command printed."""
    assert done.returncode == code, done
    found: Json = json.loads(done.stdout)
    return found
