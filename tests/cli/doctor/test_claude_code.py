"""``reflectd doctor`` on Claude Code."""

from __future__ import annotations

import json

import pytest

from daemon import config, paths
from daemon.cli.doctor.checks import About, claude_hooks, judges, programs
from daemon.cli.setup.agents import look
from daemon.cli.setup.claude_code import CLAUDE_CODE
from daemon.core.settings import Settings
from daemon.keys import TOKEN
from tests.support.hosts.claude_code_settings import Desk


def examined(desk: Desk) -> list[tuple[str, str]]:
    about = About(desk.env, Settings(), paths.resolve(desk.env, socket="/r.sock"), None)
    found = [c for c in programs(about) if c.name == "claude code"] + [*claude_hooks(about)]
    return [(check.outcome, check.text.replace(str(desk.root), "")) for check in found]


def a_program(desk: Desk, name: str, says: str) -> None:
    folder = desk.root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)
    desk.env["PATH"] = str(folder)


def test_doctor_is_quiet_without_claude_code(desk: Desk) -> None:
    """Where Claude Code is not used, nothing is reported as wrong."""
    desk.env["PATH"] = "/nowhere"
    assert [outcome for outcome, _ in examined(desk)] == ["ok", "ok"]
    a_program(desk, "claude", "2.1.330 (Claude Code)")
    assert examined(desk)[0] == ("ok", "2.1.330 (/bin/claude)")


@pytest.mark.shows("I39")
@pytest.mark.parametrize(
    ("said", "outcome"), [("2.1.197 (Claude Code)", "ok"), ("2.1.196", "warn"), ("1.9.999", "warn")]
)
def test_doctor_knows_the_oldest_version(desk: Desk, said: str, outcome: str) -> None:
    """Versions are compared by their numbers with the oldest tested one."""
    a_program(desk, "claude", said)
    assert examined(desk)[0][0] == outcome


def test_doctor_finds_a_file_that_claude_code_skips(desk: Desk) -> None:
    """A comment in any of the files that are read makes all settings of that file count for nothing."""
    a_program(desk, "curl", "")
    desk()
    desk.file.write_text(desk.file.read_text() + "// mine\n")
    (outcome, text), loads = examined(desk)[1:]
    assert (outcome, loads[0]) == ("fail", "ok")
    assert text.startswith("/home/.claude/settings.json: line ")
    assert "skips a file with comments" in text


@pytest.mark.parametrize("whose", ["person", "project"])
def test_doctor_names_what_switches_all_hooks_off(desk: Desk, whose: str) -> None:
    """`disableAllHooks` in any file that counts here: then nobody is judged, whatever our entries say."""
    a_program(desk, "curl", "")
    desk()
    file = desk.file if whose == "person" else desk.project / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    settings = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**settings, "disableAllHooks": True}))
    assert [text for outcome, text in examined(desk) if outcome == "fail"] == [
        f"{file}: disableAllHooks is true, so no hook runs".replace(str(desk.root), "")
    ]
    (claude,) = [agent for agent in look(desk.env, desk.project) if agent.host == "claude-code"]
    assert "  SILENCED   " in "\n".join(claude.lines())


@pytest.mark.parametrize("name", ["managed-settings.json", "managed-settings.d/10-hooks.json"])
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"allowManagedHooksOnly": True}, "only hooks of the organisation"),
        ({"disableAllHooks": True}, "no hook runs"),
        ({"enabledPlugins": {"reflectd@reflectd": False}}, "switches the plugin off"),
    ],
)
def test_an_organisation_s_settings_are_read(
    desk: Desk, name: str, settings: dict[str, object], says: str
) -> None:
    """Those count above all others; the same keys in a person's own file mean nothing of that kind."""
    file = desk.root / "etc" / name
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings))
    (why,) = CLAUDE_CODE.silenced(desk.env, desk.project, (desk.root / "etc" / "managed-settings.json",))
    assert why.startswith(f"{file}: ")
    assert says in why


def test_doctor_looks_at_our_entries(desk: Desk) -> None:
    """Our plugin is enabled, exists and is this installation's; and the hooks have the programs they need."""
    a_program(desk, "curl", "")
    desk()
    assert examined(desk)[1:] == [
        (
            "ok",
            "/home/.claude/settings.json loads /home/.local/share/reflectd/plugins/claude-code",
        )
    ]
    (desk.root / "bin" / "curl").unlink()
    assert examined(desk)[-1][0] == "fail"
    a_program(desk, "python3", "")
    assert examined(desk)[-1] == ("warn", "without `curl` each hook takes longer")
    a_program(desk, "curl", "")
    ours = desk.file.read_text()
    desk.write(ours.replace("true", "false"))
    assert examined(desk)[1:] == [("warn", "/home/.claude/settings.json has reflectd switched off")]
    desk.write(ours.replace(desk.folder, "/gone"))
    assert examined(desk)[1:] == [("fail", "/home/.claude/settings.json loads /gone, which is not there")]
    other = desk.write("#!/bin/sh\n", desk.root / "other" / "scripts" / "hook.sh")
    desk.write(ours.replace(desk.folder, str(desk.root / "other")))
    assert examined(desk)[1][1].endswith("hook.sh cannot be run")
    other.chmod(0o755)
    assert examined(desk)[1] == ("warn", "/home/.claude/settings.json loads another installation, /other")
    desk.write('{"enabledPlugins": {"reflectd@reflectd": true}}')
    assert examined(desk)[1][0] == "warn"


def test_doctor_says_which_login_the_daemon_lacks(desk: Desk) -> None:
    """The daemon's environment counts, not that of the shell: a token that only the shell has is no login."""
    desk()
    a_program(desk, "claude", "2.1.331 (Claude Code)")
    desk.env[TOKEN] = "k" * 40
    settings = config.from_text('[judge]\nclaude_code = "claude-cli"')

    def lacking(status: dict[str, object] | None, settings: Settings = settings) -> list[str]:
        about = About(desk.env, settings, paths.resolve(desk.env, socket="/r.sock"), status)
        return [c.mend for c in judges(about) if c.text == "Claude Code's judge has no login"]

    for status in (None, {"claude_token": ""}):
        (way,) = lacking(status)
        assert "set claude_cli.token_file" in way
        assert "kkkk" not in way
    assert lacking({"claude_token": "claude_cli.token_file"}) == []
    assert lacking({"claude_token": f"{TOKEN} of the environment"}) == []
    token = desk.write("t0ken", desk.root / "token")
    assert (
        lacking(
            None,
            config.from_text(f'[judge]\nclaude_code = "claude-cli"\n[claude_cli]\ntoken_file = "{token}"'),
        )
        == []
    )
    desk.write("{}", desk.file.with_name(".credentials.json"))
    assert lacking({"claude_token": ""}) == []
