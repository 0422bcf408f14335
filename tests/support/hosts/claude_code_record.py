"""``python -m tests.support.hosts.claude_code_record`` makes ``tests/data/claude/real_*.jsonl`` anew.

Keeps what a conversation is made of. Left out are Claude Code's own prompts and listings (an attachment keeps
its type), the request lines, and usage; paths of this machine are replaced.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness.hosts.claude_code import KEY, ClaudeCode, Version
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.models.claude_code import sub_agent
from harness.models.claude_code_scripts import HEADLESS, PLUGIN, finished, mended, unfinished
from harness.models.scripts import CLAIM, DONE, REQUEST
from harness.models.server import ModelServer, Step, text

Json = dict[str, Any]
DATA: Final = REPO / "tests" / "data" / "claude"
PROJECT: Final = "/home/person/project"
LEFT_OUT: Final = "api-request"
SAID: Final = {"queued_command", "hook_additional_context", "hook_success", "async_hook_response"}


def main() -> None:
    """One file for each story."""
    with ModelServer() as llm:
        _record(llm, "new", "woken")
        _record(llm, "old", "woken")
        _record(llm, "new", "compacted")
        _record(llm, "old", "background")


def _record(llm: ModelServer, version: Version, story: str) -> None:
    with sandbox() as box, Daemon(box):
        claude = ClaudeCode(box, llm.url, version, plugin=PLUGIN)
        llm.reset()
        llm.script(*_steps(story, claude))
        llm.agents(text("Nothing in the way."))
        ran = claude.run(REQUEST, **HEADLESS, **_env(story))
        assert ran.result == DONE, ran
        lines = [kept for line in claude.transcript(ran.session) if (kept := _kept(line))]
        number = next(line["version"] for line in lines if "version" in line)
        _write(DATA / f"real_{number}_{story}.jsonl", lines, box)


def _steps(story: str, claude: ClaudeCode) -> list[Step]:
    if story == "background":
        return [sub_agent("Look around", run_in_background=True), text("Started."), *finished(claude)]
    return [*unfinished(claude, text(CLAIM, tokens_in=60_000)), *mended()]


def _env(story: str) -> dict[str, str]:
    return {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "2"} if story == "compacted" else {}


def _kept(line: Json) -> Json | None:
    if line["type"].startswith(LEFT_OUT):
        return None
    kept = {k: v for k, v in line.items() if k not in {"rendered", "requestRef"}}
    if isinstance(line.get("message"), dict):
        kept["message"] = {k: v for k, v in line["message"].items() if k != "diagnostics"}
        if "usage" in kept["message"]:
            names = (
                "input_tokens",
                "output_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            )
            kept["message"]["usage"] = {n: line["message"]["usage"][n] for n in names}
    if line["type"] == "attachment" and line["attachment"]["type"] not in SAID:
        kept["attachment"] = {"type": line["attachment"]["type"]}
    return kept


def _write(file: Path, lines: list[Json], box: Sandbox) -> None:
    said = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    dashed = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(box.project))
    for here, there in (  # longer ones first
        (str(box.project), PROJECT),
        (dashed, "-home-person-project"),
        (str(box.home), "/home/person"),
        (str(box.root), "/tmp/person"),
        (str(PLUGIN), "/opt/reflectd/plugin"),
    ):
        said = said.replace(here, there)
    assert not [w for w in (KEY, str(REPO), box.root.name) if w in said]
    file.write_text(said, encoding="utf-8")


if __name__ == "__main__":
    main()
