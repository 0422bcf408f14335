"""What holds for every verb: help, wrong arguments, wrong ``settings``, a closed pipe."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from daemon.cli.verbs import BELOW, GROUPS, OLDER, VERBS
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox
from tests.support.machine.command_line import environment, reflectd, said

if TYPE_CHECKING:
    from pathlib import Path


def settings_file(box: Sandbox, text: str) -> Path:
    """The person's settings file, with this text."""
    path = box.home / ".config" / "reflectd" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


TYPO = '[judge]\nprovder = "offline"\n'


@pytest.mark.parametrize("args", [["start"], ["serve"], ["config"], ["trust"], ["judge", "x"]], ids=" ".join)
def test_a_wrong_setting_stops_what_starts_or_changes_judging(box: Sandbox, args: list[str]) -> None:
    """Exit code 2 with the nearest name, from the file and from the environment."""
    said(reflectd(box, *args, REFLECTD_JUDGE_PROVDER="x"), 2, "REFLECTD_JUDGE_PROVIDER")
    path = settings_file(box, TYPO)
    said(reflectd(box, *args), 2, str(path), "judge.provider")
    settings_file(box, "[judge\n")
    said(reflectd(box, *args), 2, "not valid TOML")


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["stop"], 0, "is not running"),
        (["status"], 3, "is not running"),
        (["logs"], 1, "there is no log"),
        (["why"], 0, "nothing was judged yet"),
        (["watch"], 1, "reflectd start"),
        (["cost"], 0, "nothing was judged yet"),
        (["off"], 0, "is off for"),
        (["on"], 0, "was on already for"),
        (["case", "list"], 0, "no cases in"),
        (["dispute", "--should-be", "complete"], 2, "no saved case"),
        (["trust", "--list"], 0, "You trust no project"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_typo_locks_no_verb_that_only_reads(box: Sandbox, args: list[str], code: int, word: str) -> None:
    """One line on stderr names the mistake, and the verb does its work; wrong flags still stop it."""
    path = settings_file(box, TYPO)
    done = reflectd(box, *args)
    said(done, code, word)
    warnings = [line for line in done.stderr.splitlines() if "ignored here" in line]
    assert len(warnings) == 1
    assert f"{path}: unknown setting judge.provder, did you mean judge.provider?" in warnings[0]
    said(reflectd(box, *args, "--socket", "relative"), 2, "absolute path")


def test_a_file_that_is_no_toml_locks_no_verb_that_only_reads(box: Sandbox) -> None:
    """What the environment sets still counts; several mistakes are one line; JSON on stdout stays JSON."""
    settings_file(box, "[judge\n")
    done = reflectd(box, "status", "--json", REFLECTD_JUDGE_MODE="maybe", REFLECTD_JUDGE_PROVDER="x")
    assert (done.returncode, json.loads(done.stdout)["running"]) == (3, False)
    assert str(box.socket) in done.stdout
    assert "not valid TOML" in done.stderr
    assert "(and 2 more)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_typo_does_not_end_the_doctor(box: Sandbox) -> None:
    """It fails the check of the settings, and the checks after it are made."""
    settings_file(box, TYPO)
    done = reflectd(box, "doctor", "--json")
    found = {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert "judge.provider" in found["settings"]["text"]
    assert {"state", "socket", "judge", "database", "log"} <= set(found)


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["why", "nobody"], 2, "no session begins with"),
        (["why", "--nonsense"], 2, "--nonsense"),
        (["cost", "--session", "nobody"], 2, "no session begins with"),
        (["cost", "--days", "soon"], 2, "is no whole number"),
        (["cost", "--by", "modle"], 2, "did you mean `model`?"),
        (["watch"], 1, "no daemon answers"),
        (["config", "--judge-mode", "maybe"], 2, "judge.mode"),
        (["judge", "--last"], 2, "no session of"),
        (["trust", "/nowhere"], 2, "there is no folder"),
        (["case", "list", "--socket", "x"], 2, "absolute"),
        (["doctor", "--socket"], 2, "expected one argument"),
        (["setup", "opencode", "--nonsense"], 2, "--nonsense"),
        (["service", "status", "--nonsense"], 2, "--nonsense"),
        (["status", "--nonsense"], 2, "--nonsense"),
        (["statsu"], 2, "did you mean `status`?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failure_with_json_is_json_on_stdout(box: Sandbox, args: list[str], code: int, word: str) -> None:
    """An object with ``error`` and nothing on stderr; one line where each answer is one."""
    done = reflectd(box, *args, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    assert word in json.loads(done.stdout)["error"]
    lines = args[0] == "watch"
    assert done.stdout.startswith('{"error"' if lines else '{\n "error"')


@pytest.mark.parametrize(
    "args",
    [
        ["status"],
        ["config"],
        ["case", "list"],
        ["trust", "--list"],
        ["trust", "--show"],
        ["setup", "opencode", "--dry-run"],
        ["service", "status"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_json_is_indented_in_one_way(box: Sandbox, args: list[str]) -> None:
    """Every verb that answers with one object writes it alike."""
    text = reflectd(box, *args, "--json").stdout
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def test_failures_are_told_in_words(box: Sandbox) -> None:
    """No number of a system's error and no status of HTTP: a folder that is gone, a file that can't be read,
    a daemon that says no.
    """
    gone = box.root / "gone"
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" -m daemon why'
    done = subprocess.run(
        ["sh", "-c", script, "sh", gone, sys.executable],
        env=environment(box),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "reflectd: the current folder was removed; go to another one\n",
    )
    path = settings_file(box, "")
    path.unlink()
    path.mkdir()
    unread = reflectd(box, "config")
    path.rmdir()
    with Daemon(box):
        unknown = reflectd(box, "why", "nobody")
    for each, word in (
        (unread, "can't be read: it is not a regular file"),
        (unknown, "reflectd: no session begins with 'nobody'"),
    ):
        said(each, 2, word)
        assert "Errno" not in each.stderr
        assert "404" not in each.stderr


def test_help_and_version_as_verbs(box: Sandbox) -> None:
    """`help`, `help VERB`, `help VERB WORD`, `version` and `-V` say what the flags say. All verbs are in the
    help, which fits a screen of 80 columns and 40 lines.
    """
    listed = (verb for verbs in GROUPS.values() for verb in verbs)
    text = said(reflectd(box, "help"), 0, *listed, "exit codes")
    assert len(text.splitlines()) <= 40
    assert reflectd(box, "--help").stdout == reflectd(box).stdout == text
    assert reflectd(box, "help", "why").stdout == reflectd(box, "why", "--help").stdout
    said(reflectd(box, "help", "setup", "opencode"), 0, "reflectd setup opencode")
    said(reflectd(box, "help", "wyh"), 2, "did you mean `why`?")
    version = reflectd(box, "--version").stdout
    assert reflectd(box, "version").stdout == reflectd(box, "-V").stdout == version
    assert json.loads(reflectd(box, "version", "--json").stdout) == {"version": version.split()[1]}


def test_did_you_mean(box: Sandbox) -> None:
    """A misspelled verb or flag is answered with the nearest; what is like none, without."""
    said(reflectd(box, "statsu"), 2, "there is no verb 'statsu', did you mean `status`?", "reflectd help")
    said(reflectd(box, "service", "stauts"), 2, "did you mean `status`?")
    said(reflectd(box, "setup", "claudecode"), 2, "did you mean `claude-code`?")
    assert "did you mean" not in said(reflectd(box, "xyzzy"), 2, "there is no verb 'xyzzy'; `reflectd help`")
    said(reflectd(box, "judge", "--lsat"), 2, "unrecognized arguments: --lsat", "--last")


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["--nonsense"],
        ["status", "--nonsense"],
        ["serve", "--judge-timeout-s", "soon"],
        ["config", "--judge-mode", "maybe"],
        ["status", "--socket", "relative.sock"],
        ["status", "--socket", "/" + "x" * 200],
        ["off", "--session", "s", "--dir", "d"],
        ["watch", "--dir", "x", "--all"],
        ["watch", "--exec", "true", "--exec-timeout", "0"],
        ["cost", "--days", "0"],
        ["cost", "--days", "401"],
        ["completion"],
        ["completion", "tcsh"],
        ["service"],
        ["service", "restart"],
        ["service", "install", "now"],
        ["service", "status", "--dry-run"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(box: Sandbox, args: list[str]) -> None:
    """Exit code 2."""
    said(reflectd(box, *args), 2)


@pytest.mark.parametrize(
    ("args", "usage", "words"),
    [
        (["uninstall", "--nonsense"], "usage: reflectd uninstall", "unrecognized arguments: --nonsense"),
        (["playbook", "list", "--nonsense"], "usage: reflectd playbook list", "unrecognized arguments"),
        (["logs", "-n", "x"], "usage: reflectd logs", "-n/--lines: 'x' is no whole number"),
    ],
    ids=str,
)
def test_wrong_arguments_show_the_usage_of_their_verb(
    box: Sandbox, args: list[str], usage: str, words: str
) -> None:
    """Not the usage of the whole program, which has none of the verb's flags."""
    done = reflectd(box, *args)
    said(done, 2, words)
    assert done.stderr.startswith(usage)


PAGE = (REPO / "docs" / "exit-codes.md").read_text("utf-8")
ROWS = re.findall(r"^\| `reflectd (.+?)` \| (.+) \|$", PAGE.partition("## By command")[2], re.MULTILINE)
TRIED = [(command, int(code)) for command, code in ROWS if code.isdigit()]


def test_the_page_of_exit_codes_has_every_verb() -> None:
    """A row for each verb."""
    assert [command for command, codes in ROWS if not codes.isdigit()] == list(VERBS)


@pytest.mark.parametrize(("command", "code"), TRIED, ids=[command for command, _ in TRIED])
def test_exit_codes_are_as_the_page_says(box: Sandbox, command: str, code: int) -> None:
    """Without a daemon, in a folder without sessions."""
    assert len(TRIED) > 15
    said(reflectd(box, *command.split()), code)


def test_every_verb_stands_in_the_help_or_below_one_that_does() -> None:
    """Exactly once; an earlier spelling and a verb below another are no lines of their own."""
    listed = [verb for verbs in GROUPS.values() for verb in verbs]
    assert sorted([*listed, *(verb for verbs in BELOW.values() for verb in verbs)]) == sorted(VERBS)
    assert len(listed) <= 24
    assert {verb for verb, *_ in OLDER.values()} <= set(listed)


@pytest.mark.parametrize(
    "args", [["--help"], ["config"], ["config", "--json"], ["status", "--json"], ["logs"]], ids=" ".join
)
def test_nobody_reads_the_output(box: Sandbox, args: list[str]) -> None:
    """``reflectd … | head -0``: a closed pipe prints no error."""
    (box.state / "reflectd.log").write_text("a line\n" * 50_000)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "daemon", *args],
            env=box.env(PYTHONPATH=str(REPO)),
            cwd=box.project,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode in {0, 3, 141}
