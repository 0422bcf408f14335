"""The report as one page: safe to share, and safe to open."""

from __future__ import annotations

import re
import stat
from html.parser import HTMLParser
from pathlib import Path

from harness.machine.sandbox import Sandbox
from tests.cli.backtest.corpus import session
from tests.support.hosts.claude_code_past import begun, kept
from tests.support.machine.command_line import reflectd, said

SECRET = "sk-ant-api03-1234567890abcdefghijKLMNOP"
HOSTILE = "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)> \"'&"


class Tags(HTMLParser):
    """The elements of a page, and whether each that was opened was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes += attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def hostile(box: Sandbox) -> None:
    """A session whose every text is markup, with a secret in it."""
    story = begun(box, 7)
    story.human(f"Fix {HOSTILE} with {SECRET} and run the tests")
    story.tool("Write", {"file_path": f"{story.cwd}/a.py", "content": "x"}, "ok")
    story.bash("pytest -q", f"1 failed: {HOSTILE} {SECRET}", code=1)
    story.say(f"Fixed {HOSTILE}")
    story.stopped()
    story.human(f"No, it still fails: {HOSTILE} {SECRET}")
    kept(box, story)


def page(box: Sandbox, *args: str) -> tuple[str, Path]:
    path = box.root / "report.html"
    said(reflectd(box, "backtest", "--html", path, *args), 0, "written: ")
    return path.read_text("utf-8"), path


def test_one_file_without_network_or_quotes(box: Sandbox) -> None:
    """Figures alone: no script, nothing that is fetched, no word of a session, no way to a folder."""
    hostile(box)
    session(box, 1, passed=True)
    text, path = page(box)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not tags.found & {"script", "img", "link", "iframe", "form", "a"}
    assert not re.search(r"https?:|url\(|@import", text)
    assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in tags.attributes)
    assert "alert" not in text
    assert str(box.project.parent) not in text
    assert f">{box.project.resolve().name}<" in text
    assert "2 sessions, 2 stops" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_quotes_are_text_without_secrets(box: Sandbox) -> None:
    """With --quotes what would have been sent is there, escaped and redacted."""
    hostile(box)
    text, _ = page(box, "--quotes")
    tags = Tags()
    tags.feed(text)
    assert not tags.found & {"script", "img"}
    assert "What would have been sent" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert SECRET not in text
    assert "Reflection-3: Task Incomplete" in text


def test_a_folder_that_is_not_there(box: Sandbox) -> None:
    """A page that can't be written is one line, and the code is 1."""
    session(box, 1)
    done = reflectd(box, "backtest", "--html", box.root / "none" / "report.html")
    said(done, 1, "reflectd: ", "report.html")
