"""``reflectd doctor`` on whether there is an agent at all."""

from __future__ import annotations

import json

from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import reflectd, said


def on_path(box: Sandbox, *names: str) -> dict[str, str]:
    """The variables of a machine with these agents and no others."""
    folder = box.root / ("bin-" + "-".join(names))
    folder.mkdir(exist_ok=True)
    for name in (*names, "curl"):
        (folder / name).write_text("#!/bin/sh\necho 2.1.330\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def finding(box: Sandbox, name: str, env: dict[str, str]) -> tuple[str, str, str]:
    found = json.loads(reflectd(box, "doctor", "--json", **env).stdout)["checks"]
    (check,) = [c for c in found if c["name"] == name]
    return check["outcome"], check["text"], check["mend"]


def test_without_an_agent_not_all_is_well(box: Sandbox) -> None:
    """No agent on PATH is to be looked at, also where settings load reflectd for one."""
    env = on_path(box)
    assert "all is well" not in said(reflectd(box, "doctor", **env), 0, "neither `opencode` nor `claude`")
    assert finding(box, "agents", env)[0] == "warn"
    said(reflectd(box, "setup", "claude-code", **env), 0)
    said(reflectd(box, "setup", "opencode", **env), 0)
    assert "all is well" not in said(reflectd(box, "doctor", **env), 0)
    for name in ("agents", "opencode", "claude code"):
        outcome, text, mend = finding(box, name, env)
        assert (outcome, "on PATH" in text, "install" in mend) == ("warn", True, True)


def test_an_agent_that_is_not_connected(box: Sandbox) -> None:
    """One command mends it; one connected agent is enough, and the other is not missed."""
    env = on_path(box, "claude")
    assert finding(box, "agents", env)[::2] == ("warn", "reflectd setup")
    said(reflectd(box, "setup", "claude-code", **env), 0)
    assert finding(box, "agents", env)[:2] == ("ok", "connected here: Claude Code")
    assert finding(box, "opencode", env)[0] == "ok"
    assert finding(box, "plugin", env)[0] == "ok"
