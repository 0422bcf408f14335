"""The demo's outcome as text for people. Colours only where somebody sees them (``NO_COLOR`` is heard)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from daemon.core.words import state_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

LABEL = 12
READERS = ("sessionId", "complete", "severity", "timestamp")
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "cyan": "36"}


def shown(found: Json) -> str:
    """Everything, in reading order."""
    return "\n".join(_Page(colour=_colour()).lines(found))


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class _Page:
    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._width = max(60, min(110, shutil.get_terminal_size((100, 24)).columns))

    def lines(self, found: Json) -> Iterator[str]:
        """The whole page."""
        yield self._styled("reflectd demo", "bold")
        yield f"A real session ({found['host']}), recorded once, was played to a real daemon on its socket."
        yield f"The judge is `{found['judge']}`: no model, no network, no key was used. It says what the"
        yield 'calls prove: a failed check sends the agent on. "Done" is for a model to say.'
        for number, this in enumerate(found["rounds"], 1):
            yield from self._round(number, this, found["request"] if number == 1 else "")
        yield from self._files(found["files"])
        yield from self._heading("What now")
        for command, why in found["next"].items():
            yield f"  {self._styled(f'{command:26}', 'bold')}{why}"
        yield ""
        yield self._styled(f"Took {found['seconds']} s. The daemon is stopped and its folder removed.", "dim")

    def _round(self, number: int, this: Json, request: str) -> Iterator[str]:
        verdict, order = this["verdict"], this["order"]
        yield from self._heading(f"Round {number}: the agent stops, and is judged")
        if request:
            yield from self._labelled("person", request)
        else:
            yield from self._labelled("person", "(nothing: the agent went on because of the feedback)")
        label = "agent"
        for done in this["said"]:
            if "text" in done:
                yield from self._labelled(label, f'says "{done["text"]}"', "bold")
            else:
                code = "" if done["exit"] is None else f" (exit code {done['exit']})"
                yield from self._labelled(label, f"{done['tool']}: {done['what']}{code}")
            label = ""
        label = "evidence"
        for row in this["evidence"]:
            proof = "  <- proves that something is open" if row["open"] else ""
            text = f"{row['id']:4}{row['kind']:14}{row['text']}{proof}"
            yield from self._labelled(label, text, "red" if row["open"] else "", hang=14)
            label = ""
        by = verdict["judge"]
        severity = "" if verdict["severity"] == "NONE" else f", severity {verdict['severity']}"
        yield from self._labelled(
            "verdict",
            f"{state_name(verdict['state'])}{severity} (judge: {by['provider']}, {by['ms']} ms)",
            "red" if verdict["state"] == "incomplete" else "green",
        )
        data = order["data"]
        if order["kind"] == "feedback":
            yield from self._labelled("order", "feedback, sent to the agent in the same session:")
            for line in data["text"].splitlines():
                yield from self._labelled("", f"| {line}", "cyan", hang=2)
        else:
            yield from self._labelled("order", f"{order['kind']}: {data['message']}", "green")

    def _files(self, files: Json) -> Iterator[str]:
        yield from self._heading("Files in the workspace's .reflection/")
        main = max((n for n in files if n.startswith("verdict_")), key=len)
        for name, content in files.items():
            if name == main:
                yield f"  {self._styled(name, 'bold')}  the verdict, for scripts"
                yield textwrap.indent(json.dumps(content, ensure_ascii=False, indent=2), "    ")
            elif name.startswith("verdict_"):
                short = {k: content[k] for k in READERS}
                yield f"  {self._styled(name, 'bold')}  the same under 8 characters, for speech and Telegram"
                yield f"    {json.dumps(short)} …"
            elif name.startswith("."):
                yield f"  {self._styled(name, 'bold')}  keeps these files out of the project's history"
                yield textwrap.indent(content.strip(), "    ")
            else:
                size = len(json.dumps(content, ensure_ascii=False))
                yield f"  {self._styled(name, 'bold')}  the whole evaluation, {size:,} characters"
                for key, value in content.items():
                    line = f"{key}: {json.dumps(value, ensure_ascii=False)}"
                    yield f"    {textwrap.shorten(line, self._width - 8, placeholder=' …')}"

    def _heading(self, text: str) -> Iterator[str]:
        yield ""
        yield self._styled(f"── {text} ".ljust(self._width, "─"), "bold")

    def _labelled(self, label: str, text: str, style: str = "", hang: int = 0) -> Iterator[str]:
        lines = textwrap.wrap(text, self._width - LABEL, subsequent_indent=" " * hang) or [""]
        for i, line in enumerate(lines):
            head = self._styled(f"{label if i == 0 else '':>{LABEL - 2}}  ", "dim")
            yield f"{head}{self._styled(line, style)}".rstrip()

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self._colour and style and text.strip() else text
