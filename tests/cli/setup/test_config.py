"""``reflectd config``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from harness.machine.sandbox import Sandbox
from tests.support.machine.command_line import reflectd, said


def test_config(box: Sandbox) -> None:
    """``config`` names every setting, its value and who set it; a project's mistakes are listed."""
    done = reflectd(box, "config", "--judge-timeout-s", "60", REFLECTD_JUDGE_PROVIDER="host")
    said(done, 0, "judge.timeout_s", "--judge-timeout-s", "REFLECTD_JUDGE_PROVIDER", '"host"')
    box.file(".reflection/config.toml", '[judge]\nmode = "observe"\nprovider = "host"\nmoed = 1\n')
    done = reflectd(box, "config", "--json")
    found = json.loads(done.stdout)
    rows = {r["key"]: r for r in found["settings"]}
    assert (rows["judge.mode"]["value"], rows["judge.provider"]["value"]) == ("observe", "offline")
    assert any("may not set judge.provider" in p for p in found["problems"])
    assert any("judge.moed" in p and "judge.mode" in p for p in found["problems"])


def own_file(box: Sandbox, text: str = "") -> Path:
    """The person's settings file."""
    file = box.home / ".config" / "reflectd" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    if text:
        file.write_text(text)
    return file


def test_set_keeps_the_comments_of_the_file(box: Sandbox) -> None:
    """One value changes, in its place; ``get`` shows it, ``--changed`` lists it, and a backup is kept."""
    file = own_file(box, "# mine\n[judge]\nmode = 'act'  # for now\n\n[log] # all\n")
    said(reflectd(box, "config", "set", "judge.mode", "observe"), 0, str(file), "backup", "next start")
    assert file.read_text() == '# mine\n[judge]\nmode = "observe"  # for now\n\n[log] # all\n'
    assert reflectd(box, "config", "get", "judge.mode").stdout == "observe\n"
    done = reflectd(box, "config", "--changed", "--json", REFLECTD_JUDGE_MODE="act")
    found = {s["key"]: (s["value"], s["source"]) for s in json.loads(done.stdout)["settings"]}
    assert found["judge.mode"] == ("act", "REFLECTD_JUDGE_MODE")
    assert "log.level" not in found
    before = file.read_text()
    done = reflectd(box, "config", "set", "judge.mode", "observe", REFLECTD_JUDGE_MODE="act")
    said(done, 0, "stands already in", "REFLECTD_JUDGE_MODE in your environment counts more")
    assert file.read_text() == before
    for key, value, shown in (("toasts", "no", "false"), ("spend.cents_per_day", "7", "7")):
        found = json.loads(reflectd(box, "config", "set", key, value, "--json").stdout)
        assert (found["key"], found["changed"]) == (key, True)
        assert reflectd(box, "config", "get", key).stdout == f"{shown}\n"
    assert tomllib.loads(file.read_text())["spend"] == {"cents_per_day": 7}
    said(reflectd(box, "config", "undo"), 0, "-cents_per_day = 7", "restored")
    assert "spend" not in tomllib.loads(file.read_text())
    said(reflectd(box, "config", "undo"), 2, "nothing to undo")
    said(reflectd(box, "config", "set", "toasts", "yes"), 0)
    file.write_text("[log]\n")
    said(reflectd(box, "config", "undo"), 2, "was changed after our change of it")
    assert file.read_text() == "[log]\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["set", "judge.mode", "maybe"], 'judge.mode must be "act" or "observe", not \'maybe\''),
        (["set", "judge.timeout_s", "4"], "judge.timeout_s must be a whole number from 5 to 600, not 4"),
        (["set", "judge.mod", "act"], "did you mean judge.mode?"),
        (["get", "judge.mod"], "did you mean judge.mode?"),
        (["set", "daemon.state_dir", "/x"], "set REFLECTD_STATE_DIR in the environment"),
        (["set", "judge.mode"], "config set KEY VALUE"),
        (["get", "judge.mode", "x"], "config get KEY"),
        (["path", "x"], "config path"),
        (["nonsense"], "invalid choice"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_in_the_words_of_the_setting(
    box: Sandbox, args: list[str], words: str
) -> None:
    """Exit code 2, and the file is as it was."""
    file = own_file(box, "[judge]\n")
    said(reflectd(box, "config", *args), 2, words)
    assert file.read_text() == "[judge]\n"
    assert [f.name for f in file.parent.iterdir()] == ["config.toml"]


def test_set_and_path_work_while_the_file_has_mistakes(box: Sandbox) -> None:
    """So a typo can be mended; ``set`` names what else is wrong."""
    file = own_file(box, "[judge]\nmod = 1\n")
    assert reflectd(box, "config", "path").stdout == f"{file}\n"
    said(reflectd(box, "config", "set", "judge.mode", "observe"), 0, "another mistake", "judge.mod")


@pytest.mark.parametrize("verb", ["config", "serve"])
def test_help_does_not_list_every_setting(box: Sandbox, verb: str) -> None:
    """It says where they are; each is a flag all the same."""
    text = said(reflectd(box, verb, "--help"), 0, "Every setting is also a flag", "--judge-mode observe")
    assert len([line for line in text.splitlines() if line.startswith("  --")]) < 10
    found = json.loads(reflectd(box, "config", "--judge-mode", "observe", "--json").stdout)
    assert [s["source"] for s in found["settings"] if s["key"] == "judge.mode"] == ["--judge-mode"]
