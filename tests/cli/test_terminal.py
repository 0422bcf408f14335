"""What a terminal is given: ``terminal`` wraps."""

from __future__ import annotations

import sys

import pexpect
import pytest

from daemon.cli.terminal import fold, hang
from daemon.core.settings import SETTINGS
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import PATIENCE_S
from tests.support.machine.command_line import case_files, environment, judged, reflectd, said


@pytest.mark.parametrize(
    ("text", "hang", "lines"),
    [
        ("  by  a b", "      ", ["  by  a b"]),
        (
            "  by  one two three four five six",
            "      ",
            ["  by  one two three", "      four five six"],
        ),
        (
            "  by  one /a/path/that/is/long three",
            " " * 6,
            ["  by  one", "      /a/path/that/is/long", "      three"],
        ),
        ("日本語 日本語日本語 日本語", "", ["日本語 日本語日本語", "日本語"]),
        ("\x1b[33mone two three four five six\x1b[0m", "", ["\x1b[33mone two three four", "five six\x1b[0m"]),
        ("", "  ", [""]),
    ],
)
def test_a_line_is_wrapped_below_its_text(text: str, hang: str, lines: list[str]) -> None:
    """Between words; a path that can be copied is not cut, wide characters count twice and colours not."""
    found = fold(text, 20, hang)
    assert found == lines
    assert fold(text, 0, hang) == [text]


@pytest.mark.parametrize(
    ("line", "below"),
    [("reflectd: no daemon runs", 0), ("  judge   the rules", 10), ("  one two", 6), (f"{'x' * 40}  y", 0)],
)
def test_where_a_line_goes_on(line: str, below: int) -> None:
    """Below what its label explains, where there is room for it."""
    assert hang(line, 60) == " " * below


class Screen:
    """One command on a terminal of 80 x 24; ``text`` is what it wrote until it ended. A question is answered
    with Enter.
    """

    def __init__(self, box: Sandbox, *args: str, **env: str) -> None:
        child = pexpect.spawn(
            sys.executable,
            ["-m", "daemon", *args],
            env={"TERM": "xterm", **environment(box, **env)},  # type: ignore[arg-type]
            cwd=str(box.project),
            dimensions=(24, 80),
            timeout=PATIENCE_S,
            encoding="utf-8",
        )
        try:
            self.text = ""
            while child.expect([pexpect.EOF, r"\[y/N[^\]]*\] "]):
                self.text += f"{child.before}{child.after}"
                child.sendline()
            self.text = f"{self.text}{child.before}".replace("\r\n", "\n")
        finally:
            child.close()
        self.code = child.exitstatus


@pytest.mark.full("a pseudo-terminal is driven")
def test_colours_only_on_a_terminal(box: Sandbox) -> None:
    """``status`` and ``config``; not with ``NO_COLOR``, on a dumb terminal, or into a pipe."""
    with Daemon(box):
        for verb in ("status", "config"):
            assert "\x1b[" in Screen(box, verb).text
            for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                assert "\x1b" not in Screen(box, verb, **env).text
            assert "\x1b" not in said(reflectd(box, verb), 0)


@pytest.mark.full("a pseudo-terminal is driven")
def test_every_line_of_every_verb_fits_the_screen(box: Sandbox) -> None:
    """At 80 columns; only a path that can be copied is longer. Into a pipe each setting is one line."""
    with Daemon(box) as daemon:
        judged(box, daemon, "ses_58c3f0d91ffeHq2L", request="Add a login page with tests " * 6)
        (case,) = case_files(box, "ses_58c3f0d91ffeHq2L")
        said(reflectd(box, "dispute", "--should-be", "complete", "--why", "it was done " * 9), 0)
        for args in (
            ["status"],
            ["why"],
            ["why", "--full"],
            ["cost"],
            ["cost", "--by", "session"],
            ["config"],
            ["config", "--changed"],
            ["doctor"],
            ["dispute", "list"],
            ["judge", str(case), "--verbose"],
            ["setup", "--status"],
            ["start"],
            ["why", "ses_nobody"],
            ["dispute", "--should-be", "incomplete"],
            ["service", "status"],
            ["uninstall", "--dry-run"],
            ["setup", "opencode"],
            ["setup", "opencode", "--frobnicate", "--and-more"],
            ["history", "--dir", str(box.home)],
            ["config", "set", "judge.mode", "observe"],
            ["config", "set", "judge.mode", "act"],
            ["off"],
            ["off"],
        ):
            lines = Screen(box, *args, NO_COLOR="1").text.splitlines()
            wide = [x for x in lines if len(x) > 80 and not x.startswith("Everything: /")]
            assert [x for x in wide if " " in x.strip()] == [], args
            assert len(lines) > 1 or args[0] in {"start", "history"} or args[-1] == "ses_nobody", args
    stopped = "reflectd is not running; hosts will not start it until `reflectd start`\n"
    narrow = Screen(box, "stop", COLUMNS="40").text
    assert narrow == "reflectd is not running; hosts will not\n  start it until `reflectd start`\n"
    assert said(reflectd(box, "stop"), 0) == stopped
    piped = said(reflectd(box, "config"), 0).splitlines()
    assert [x.split()[0] for x in piped] == list(SETTINGS)


def test_a_command_stays_on_one_line_where_it_fits() -> None:
    """So it can be copied; a longer one is broken between words, as any text."""
    text = "see `reflectd config set judge.mode observe` for that"
    assert fold(text, 42) == ["see", "`reflectd config set judge.mode observe`", "for that"]
    assert fold(text, 24) == ["see `reflectd config set", "judge.mode observe` for", "that"]
