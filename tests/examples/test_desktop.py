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


def told(folder: Path, text: str, *args: str, program: str = "notify-send") -> list[str]:
    """The arguments of the program when this text is an item and the folder's name."""
    what = verdict("incomplete", missing=[{"item": text}], directory=f"/x/{text.replace('/', ' ')}")
    done = run("desktop.py", what, *args, **stand_in(folder / "bin", program), HOME=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["bin"]
    (call,) = calls(folder / "bin")
    arguments: list[str] = call["args"]
    return arguments


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_is_an_argument(tmp_path: Path, text: str) -> None:
    """Quotes, dashes, line ends and emoji arrive as one argument of their own, and run nothing."""
    line = " ".join(text.split())
    title, body = f"{line}: not finished", line.replace("&", "&amp;").replace("\\", "\\\\")
    assert told(tmp_path, text) == ["--app-name=reflectd", "--", title, body]


def test_markup_is_shown_not_obeyed(tmp_path: Path) -> None:
    """A body may hold markup, and notify-send reads backslashes: both arrive as they were written."""
    what = verdict("incomplete", missing=[{"item": '<img src="x"/> & C:\\new'}])
    env = stand_in(tmp_path / "bin", "notify-send")
    assert run("desktop.py", what, **env).returncode == 0
    assert calls(tmp_path / "bin")[0]["args"][-1] == '&lt;img src="x"/&gt; &amp; C:\\\\new'


SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


@pytest.mark.parametrize("text", TEXTS)
def test_osascript_gets_arguments_not_a_script(tmp_path: Path, text: str) -> None:
    """The script is always the same; texts are its arguments, and none can be taken for an option."""
    args = told(tmp_path, text, "--program", "osascript", program="osascript")
    line = " ".join(text.split())
    assert args[:6] == [word for part in SCRIPT for word in ("-e", part)]
    assert args[6:] == [f"reflectd: {line}: not finished", f" {line}"]


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
