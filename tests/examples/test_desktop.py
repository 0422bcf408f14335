"""``desktop.py`` before a ``notify-send`` and an ``osascript`` that keep their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.running import calls, run, stand_in, verdict

TEXTS = [
    'a "quoted" one, it\'s `here`',
    "--expire-time=0",
    "-",
    "$(touch owned); rm -rf ~ | cat && x",
    '" & (do shell script "touch owned") & "',
    "two\nlines\r\nand\ta tab",
    "😀 👩\u200d👩\u200d👧 日本語 ä",
    "100 % %s \\",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_is_an_argument(tmp_path: Path, text: str) -> None:
    """Quotes, dashes, line ends and emoji arrive as one argument of their own, and run nothing."""
    what = verdict("incomplete", missing=[{"item": text}], directory=f"/x/{text.replace('/', ' ')}")
    env = stand_in(tmp_path / "bin", "notify-send") | {"HOME": str(tmp_path)}
    done = run("desktop.py", what, **env)
    assert (done.returncode, done.stderr) == (0, "")
    (call,) = calls(tmp_path / "bin")
    one_line = " ".join(text.split())
    assert call["args"] == [
        "--app-name=reflectd",
        "--",
        f"{one_line}: not finished",
        one_line.replace("&", "&amp;").replace("\\", "\\\\"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]


def test_markup_is_shown_not_obeyed(tmp_path: Path) -> None:
    """A body may hold markup, and notify-send reads backslashes: both arrive as they were written."""
    what = verdict("incomplete", missing=[{"item": '<img src="x"/> & C:\\new'}])
    env = stand_in(tmp_path / "bin", "notify-send")
    assert run("desktop.py", what, **env).returncode == 0
    assert calls(tmp_path / "bin")[0]["args"][-1] == '&lt;img src="x"/&gt; &amp; C:\\\\new'


@pytest.mark.parametrize("text", TEXTS)
def test_osascript_gets_arguments_not_a_script(tmp_path: Path, text: str) -> None:
    """The script is always the same; texts are its arguments, and none can be taken for an option."""
    what = verdict("incomplete", missing=[{"item": text}], directory=f"/x/{text.replace('/', ' ')}")
    env = stand_in(tmp_path / "bin", "osascript")
    done = run("desktop.py", what, "--program", "osascript", **env)
    assert (done.returncode, done.stderr) == (0, "")
    args = calls(tmp_path / "bin")[0]["args"]
    one_line = " ".join(text.split())
    assert args[:6] == [
        "-e",
        "on run argv",
        "-e",
        "display notification (item 2 of argv) with title (item 1 of argv)",
        "-e",
        "end run",
    ]
    assert args[6:] == [f"reflectd: {one_line}: not finished", f" {one_line}"]


def test_all_items_and_a_limit(tmp_path: Path) -> None:
    """``--details all`` is one line each; a body has an end."""
    items = [{"item": f"item {n} " + "x" * 200} for n in range(50)]
    env = stand_in(tmp_path / "bin", "notify-send")
    assert run("desktop.py", verdict("incomplete", missing=items), "--details", "all", **env).returncode == 0
    assert run("desktop.py", verdict("complete"), **env).returncode == 0
    long, short = (call["args"] for call in calls(tmp_path / "bin"))
    assert long[-1].splitlines()[1].startswith("item 1 ")
    assert len(long[-1]) <= 1000
    assert short[-2:] == ["shop: done", ""]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('Cannot autolaunch D-Bus')", "notify-send ended with 1: Cannot autolaunch D-Bus"),
        ("import time; time.sleep(600)", "longer than 1 s"),
    ],
)
def test_what_goes_wrong_is_told(tmp_path: Path, body: str, words: str) -> None:
    """One line, exit code 1; a program that hangs is ended."""
    done = run("desktop.py", verdict(), "--timeout", "1", **stand_in(tmp_path / "bin", "notify-send", body))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert words in done.stderr


def test_without_the_program(tmp_path: Path) -> None:
    """It says what to install."""
    done = run("desktop.py", verdict(), PATH=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "apt-get install libnotify-bin" in done.stderr
