"""Past sessions of a project on a throw-away machine, as Claude Code keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daemon.hosts.claude_code.past import named
from harness.machine.sandbox import Sandbox
from tests.support.hosts.claude_code_story import Story
from tests.support.machine.command_line import reflectd

Json = dict[str, Any]
WORK = "I set strict to false in tsconfig.json and ran npm install."


def folder(box: Sandbox, project: Path | None = None) -> Path:
    """Where the sessions of a project are."""
    place = box.home / ".claude" / "projects" / named(project or box.project)
    place.mkdir(parents=True, exist_ok=True)
    return place


def session(box: Sandbox, name: str, *said: str, project: Path | None = None) -> Path:
    """A session in which the person said this, each after the agent had worked."""
    story = Story(session=f"{name:0<8}-5a7e-4b6e-9f57-3a1c2b4d5e6f", cwd=str(project or box.project))
    story.human("Set up the project")
    for text in said:
        story.say(WORK)
        story.human(text)
    path = folder(box, project) / f"{story.session}.jsonl"
    path.write_bytes(story.data())
    return path


def asked(box: Sandbox, *args: str, code: int = 0, **env: str) -> Json:
    """What `reflectd reflect … --json` answers."""
    done = reflectd(box, "reflect", *args, "--json", **env)
    assert (done.returncode, done.stderr) == (code, ""), done
    found: Json = json.loads(done.stdout)
    return found
