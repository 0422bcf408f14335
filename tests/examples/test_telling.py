"""What the example scripts say about a verdict, seen through ``--dry-run``."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from daemon.core.verdict import FinalState
from tests.examples.running import CONSUMERS, run, stand_in, verdict

SCRIPTS = ("speak.py", "telegram.py", "desktop.py")
SENT = {"feedback_sent": True}
ABORTED = {"reason": "guard:aborted"}
STUCK = {"reason": "stuck: the same call again"}


def said(what: Any, *args: str, script: str = "telegram.py") -> str:
    done = run(script, what, "--dry-run", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("state", "more", "words"),
    [
        ("complete", {}, "shop: done\n"),
        ("incomplete", {}, "shop: not finished"),
        ("incomplete", SENT, ""),
        ("awaiting_user", {}, "shop: your turn"),
        ("stopped", {"reason": "guard:same_items"}, "shop: stopped, not finished"),
        ("stopped", ABORTED, ""),
        ("stopped", STUCK, "shop: stuck"),
        ("unscored", {"reason": "unscored: no reply"}, "shop: the agent stopped, nobody could judge it"),
        ("error", {"reason": "guard:host_error"}, "shop: stopped by an error"),
        ("skipped", {}, ""),
        ("judging", {}, ""),
        ("a state of tomorrow", {}, ""),
    ],
)
def test_what_is_said_by_default(script: str, state: str, more: dict[str, Any], words: str) -> None:
    """Quiet while work goes on, when the person is there, and about what nobody knows."""
    text = said(verdict(state, **more), script=script)
    assert text.startswith(words) if words else text == ""


def test_every_state_has_words() -> None:
    """Each final state of the daemon can be told, in every language, in words of its own."""
    for lang in ("en", "de", "es", "fr"):
        states = get_args(FinalState)
        options = ("--states", ",".join(states), "--lang", lang, "--details", "none")
        texts = [said(verdict(state, reason="judged"), *options) for state in states]
        assert len({*texts, ""}) == len(states) + 1, texts
        more = [("incomplete", SENT, "sent_back"), ("stopped", ABORTED, "aborted"), ("error", STUCK, "stuck")]
        for state, change, name in more:
            text = said(verdict(state, **change), *options, "--states", name)
            assert text.startswith("shop: ")
            assert text not in texts


def test_the_person_chooses_what_is_told() -> None:
    """``--states`` tells these and no others; ``sent_back`` is not ``incomplete``."""
    options = ("--states", "awaiting_user, sent_back")
    assert said(verdict("complete"), *options) == ""
    assert said(verdict("incomplete"), *options) == ""
    assert said(verdict("awaiting_user"), *options).startswith("shop: your turn")
    assert "the agent goes on" in said(verdict("incomplete", **SENT), *options)


def test_details() -> None:
    """None, the first open item, or all; without items the feedback, else the reason in words."""
    two = verdict("incomplete", missing=[{"item": "tests fail", "cites": "E1"}, {"item": "no docs"}])
    for details, lines in (("none", []), ("first", ["tests fail"]), ("all", ["tests fail", "no docs"])):
        text = said(two, "--details", details)
        assert text == "\n- ".join(["shop: not finished", *lines]) + "\n"
    assert "do it" in said(verdict("stopped", missing=[], feedback="do it", reason="guard:max_attempts"))
    assert "max attempts" in said(verdict("stopped", missing=[], feedback="", reason="guard:max_attempts"))
    assert said(verdict("complete", missing=[], feedback="well done")) == "shop: done\n"


@pytest.mark.parametrize("script", SCRIPTS)
def test_only_the_folders_name_is_said(script: str) -> None:
    """Privacy: neither the path, nor the title, nor ids are told."""
    text = said(verdict("incomplete"), "--details", "all", script=script)
    found = verdict("incomplete")
    private = ["/home", "a title", found["session"], found["task"], found["turn"]]
    assert [word for word in private if word in text] == []


@pytest.mark.parametrize("folder", ["", "/", "..", "\x00", 7, None, {"a": 1}])
def test_a_strange_folder(folder: Any) -> None:
    """Bad input: there is always a name in front."""
    text = said(verdict(directory=folder))
    assert text.endswith(": done\n")
    assert not text.startswith(":")


def test_texts_cannot_drive_a_terminal() -> None:
    """Control characters, hidden text, lone surrogates and line ends are taken out; emoji stay."""
    evil = "\x1b]0;owned\x07 \u202eabc\u2066 \ud800 one\ntwo\t😀 \x9b2J"
    text = said(verdict("incomplete", missing=[{"item": evil}], directory=f"/x/{evil}"))
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\u2066", "\x9b", "\t"}
    assert "one two 😀" in text
    assert text.count("\n") == 2


DATA = [
    *(b"", b"null", b"[]", b"{}", b"{" * 100_000, b"[" * 100_000, b"\xff\xfe\xfd", b'{"state": "complete"'),
    b'{"state": "complete", "timestamp": ' + b"9" * 10_000 + b"}",
    b'{"state": "complete", "x": "' + b"y" * 4_000_000 + b'"}',
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("data", DATA, ids=lambda data: repr(data[:20]))
def test_what_is_no_verdict(script: str, data: bytes) -> None:
    """Bad input: one line, exit code 2, nothing told."""
    done = run(script, data, "--dry-run")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"{script}: stdin is not a verdict")


@pytest.mark.parametrize(
    "change",
    [
        {"missing": None},
        {"missing": "x"},
        {"missing": [1, None, {"item": None}, {}]},
        {"missing": [], "feedback": {"a": [1]}, "reason": None},
        {"missing": [{"item": "x" * 3_000_000}]},
        {"state": ["incomplete"]},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_a_strange_verdict(change: dict[str, Any]) -> None:
    """Bad input: what has a state is told as far as it can be, within bounds."""
    assert len(said(verdict("incomplete") | change, "--details", "all")) < 500


ARGUMENTS = [
    "--states complete,finished",
    "--lang xx",
    "--timeout 0",
    "--timeout nan",
    "--nonsense",
    "--states=",
]


@pytest.mark.parametrize("args", ARGUMENTS)
def test_wrong_arguments(args: str) -> None:
    """Exit code 2, and what is allowed."""
    done = run("telegram.py", verdict(), "--dry-run", *args.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "telegram.py: error:" in done.stderr


FAULTS = [
    (
        "desktop.py",
        "notify-send",
        "sys.exit('Cannot autolaunch D-Bus')",
        "ended with 1: Cannot autolaunch D-Bus",
    ),
    ("desktop.py", "notify-send", "import time; time.sleep(600)", "longer than 1 s"),
    ("speak.py", "espeak-ng", "sys.exit('no such thing')", "espeak-ng ended with 1: no such thing"),
    (
        "speak.py",
        "espeak-ng",
        "sys.exit(print('ALSA lib\\nerror: No such', file=sys.stderr))",
        "no sound device",
    ),
    ("speak.py", "espeak-ng", "import time; time.sleep(600)", "longer than 1 s"),
    ("speak.py", "espeak-ng", "import os; os.kill(os.getpid(), 9)", "espeak-ng ended with -9"),
    ("desktop.py", "", "", "apt-get install libnotify-bin"),
    ("speak.py", "", "", "apt-get install espeak-ng"),
]


@pytest.mark.parametrize(("script", "program", "body", "words"), FAULTS)
def test_what_goes_wrong_is_told(tmp_path: Path, script: str, program: str, body: str, words: str) -> None:
    """One line, exit code 1; a program that hangs is ended, one that is missing is named with its package."""
    env = stand_in(tmp_path / "bin", program, body) if program else {"PATH": str(tmp_path)}
    done = run(script, verdict(), "--timeout", "1", **env, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert words in done.stderr


def test_the_scripts_are_as_the_readme_says() -> None:
    """Executable, readable by Python 3.9, and importing nothing that has to be installed."""
    modules = {path.stem for path in CONSUMERS.glob("*.py")}
    stdlib = sys.stdlib_module_names
    for path in CONSUMERS.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert {name.partition(".")[0] for name in names} <= stdlib | modules
        assert os.access(path, os.X_OK) is (path.name in SCRIPTS)
    page = (CONSUMERS / "README.md").read_text("utf-8")
    for script in SCRIPTS:
        shown = run(script, b"", "--help").stdout
        options = set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--exec"}
        assert [o for o in options if f"`{o}" not in page] == []
