"""``reflectd proof``: the list, the choice at a terminal, what is struck out, and what is never run."""

from __future__ import annotations

import json
import shutil
import sys

import pexpect
import pytest

from daemon.cli.control.status import render
from daemon.cli.render import Paint
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.cli.doctor.test_doctor import checks
from tests.cli.test_screens import SCREENS
from tests.support.machine.command_line import environment, reflectd, said

ON = "REFLECTD_PROOF_ENABLED"


def at_a_terminal(box: Sandbox, answer: str, *args: str) -> str:
    """What the command prints to a person who answers its question so."""
    child = pexpect.spawn(
        sys.executable, ["-m", "daemon", *args], env=environment(box), cwd=str(box.project), encoding="utf-8",
        timeout=60,
    )  # fmt: skip
    child.expect("y/N")
    before = child.before or ""
    child.sendline(answer)
    child.expect(pexpect.EOF)
    return before + (child.before or "")


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_person_chooses_forbids_and_allows(box: Sandbox) -> None:
    """Each change is in the list at once; no and no terminal change nothing."""
    with Daemon(box, **{ON: "true"}):
        said(reflectd(box, "proof"), 0, "No check is known here yet")
        said(reflectd(box, "proof", "use", "make test"), 2, "only a person at a terminal")
        assert "Nothing was changed" in at_a_terminal(box, "n", "proof", "use", "make test")
        told = at_a_terminal(box, "y", "proof", "use", "make test")
        assert "`make test` is the check of this project." in told
        assert "Proof is off" in told  # by the settings of this command, which are not the daemon's
        said(reflectd(box, "proof"), 0, "1. `make test`  you chose it")
        said(reflectd(box, "proof", "forbid", "1"), 0, "`make test` is never run.")
        said(reflectd(box, "proof", "list"), 0, "`make test`  forbidden")
        said(reflectd(box, "proof", "allow", "make test"), 0, "may be run again")
        (check,) = json.loads(reflectd(box, "proof", "--json").stdout)["checks"]
        assert (check["command"], check["source"], check["forbidden"]) == ("make test", "person", False)


def test_what_is_wrong_is_said(box: Sandbox) -> None:
    """Exit code 2, with what to do; nothing is asked."""
    said(reflectd(box, "proof", "use", "curl x | sh"), 2, "is never run: it names a network address")
    said(reflectd(box, "proof", "forbid", "7"), 2, "there is no check '7' here", "reflectd proof")
    said(reflectd(box, "proof", "nonsense"), 2, "invalid choice: 'nonsense'", "forbid")
    said(reflectd(box, "config", "set", "proof.command", "curl x"), 2, "never run as a check")
    said(reflectd(box, "config", "set", "proof.share", "../x"), 2, "folders of the project")
    said(reflectd(box, "config", "set", "proof.share", "node_modules, .venv"), 0, "written to")


def test_a_projects_settings(box: Sandbox) -> None:
    """A mistake in them is told, a check waits for trust, and they can switch proof off."""
    settings = box.project / ".reflection" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("proof.command = 7\nproof.enabled = false\n")
    said(reflectd(box, "proof", **{ON: "true"}), 0, "! .reflection/config.toml: proof.command", ": off")
    settings.write_text("proof.command = 'make check'\n")
    found = said(reflectd(box, "proof", **{ON: "true"}), 0, "`make check`: not trusted", ": on")
    assert "!" not in found
    shown = said(reflectd(box, "trust", "--show"), 0, "brings no prompts", "`make check`")
    assert "nothing to do" not in shown
    check = json.loads(reflectd(box, "trust", "--show", "--json").stdout)["check"]
    assert check == {"command": "make check", "trusted": False, "refused": ""}


@pytest.mark.full("a pseudo-terminal is driven")
def test_a_projects_check_is_trusted_and_not_any_more(box: Sandbox) -> None:
    """Word for word, by a person at a terminal."""
    settings = box.project / ".reflection" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("proof.command = 'make check'\n")
    assert "Trusted, until it changes" in at_a_terminal(box, "y", "trust")
    said(reflectd(box, "proof"), 0, "`make check`: trusted")
    settings.write_text("proof.command = 'make check all'\n")
    said(reflectd(box, "proof"), 0, "`make check all`: not trusted")
    said(reflectd(box, "trust", "--remove"), 0, "Its check is not run any more")


def test_doctor_says_whether_checks_are_run(box: Sandbox) -> None:
    """Off is fine; a check that is never run, no repository for a worktree and used minutes are told."""
    _, found = checks(box)
    assert [c[0] for c in found["proof"]] == ["ok"]
    assert found["proof"][0][1].startswith("off")
    env = {ON: "true", "REFLECTD_PROOF_COMMAND": "git push", "REFLECTD_PROOF_MINUTES_A_DAY": "0"}
    shutil.rmtree(box.project / ".git")
    _, found = checks(box, **env, REFLECTD_PROOF_WHERE="worktree")
    texts = [text for outcome, text, mend in found["proof"] if outcome == "warn" and mend]
    assert [text.split(":")[0] for text in texts[:2]] == [
        "proof.command is never run", "proof.where is worktree",
    ]  # fmt: skip
    assert texts[2].startswith("on, 0.0 of 0 minutes")


def test_status_says_what_checks_took_and_which_runs() -> None:
    """Nothing where proof is off."""
    status = json.loads((SCREENS / "answers.json").read_text("utf-8"))["status"]

    def told(found: object) -> str:
        lines = render({**status, "features": {"proof": found} if found else {}}, [], Paint(), 0)
        return next((line for line in lines if line.startswith("  proof")), "")

    assert told(None) == ""
    last = {"command": "make test", "exit": 0, "seconds": 41.0, "state": "passed", "at": 0, "project": "/w"}
    assert "1.5 of 30 minutes in 24 h; proved by `make test`, exit 0, 41 s" in told(
        {"minutes": 1.5, "limit": 30, "runs": "", "last": last}
    )
    running = {"minutes": 0, "limit": 30, "runs": "make test", "last": last}
    assert told(running) == "  proof    0 of 30 minutes in 24 h; `make test` runs"
