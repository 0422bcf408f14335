"""Whether reflectd learns: the question of ``reflectd setup``, and ``--learning on|off``.

It is off until a person says yes, also after an upgrade. Whoever never answered is asked once, on a terminal,
and is told before what it costs, where the text goes and what is written. One answer is two settings in the
person's file, ``playbook.enabled`` for points and ``memory.enabled`` for lessons: a no is one too. Who gave
one of them before is asked about the other. Ctrl-C and the end of input are no
answer: nothing is written, and the next ``setup`` asks again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from ... import config, paths
from ...core.errors import UserError
from ...core.settings import Settings, toml
from ...core.words import HOSTS
from ...learning.playbook.curator import CURATOR_TOKENS
from ...learning.playbook.reflector import REFLECTOR_TOKENS
from ..judging import found, names
from ..terminal import NARROWEST_TEXT, attended, say, width
from .edit import check_editable, diff, read_text, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

POINTS: Final = "playbook.enabled"
LESSONS: Final = "memory.enabled"
SETTINGS: Final = (POINTS, LESSONS)
USUAL: Final = (
    "asks a small model twice after a session in which something happened, with at most "
    f"{REFLECTOR_TOKENS:,} and {CURATOR_TOKENS:,} tokens."
)
"""As docs/cost.md says it; a test compares them."""
FAILED: Final = (
    "It asks a small model once after a task that ended badly, with at most 5,000 tokens, and once for each "
    "task that you give in a project that has lessons, with at most 10,000."
)
"""Likewise."""
INDENT, WIDTH = "     ", 101


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the settings say now, and what was written, or would be."""

    settings: Settings
    file: Path
    diff: str = ""
    backup: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether a person said yes or no."""
        return is_answered(self.settings)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        backup = str(self.backup) if self.backup else None
        more = {"file": str(self.file), "diff": self.diff, "backup": backup, "warnings": self.notes}
        points, lessons = self.settings.playbook.enabled, self.settings.memory.enabled
        return {
            "enabled": points,
            "lessons": lessons,
            "answered": self.answered,
            "changed": bool(self.diff),
            **more,
        }

    def lines(self, *, dry_run: bool) -> list[str]:
        """For a person."""
        told = self.diff.splitlines() if dry_run else []
        told.append(f"  learns: {in_words(self.settings)}")
        if self.backup:
            told.append(f"  backup: {self.backup} (copy it back to undo)")
        return told + [f"  note:   {note}" for note in self.notes]


def add_flag(parser: argparse.ArgumentParser, dest: str = "learning") -> None:
    """Register ``--learning``."""
    text = "whether it learns from judged sessions (asked once on a terminal; otherwise nothing is changed)"
    parser.add_argument("--learning", choices=("on", "off"), dest=dest, help=text)


def is_answered(settings: Settings) -> bool:
    """Whether a person said yes or no."""
    return not unanswered(settings)


def unanswered(settings: Settings) -> tuple[str, ...]:
    """Those of the two settings that nobody decided."""
    return tuple(key for key in SETTINGS if key not in settings.sources)


def in_words(settings: Settings) -> str:
    """Whether it learns, and what that may cost."""
    most = f"at most {settings.spend.learning_percent} % of what judging costs"
    points, lessons = settings.playbook.enabled, settings.memory.enabled
    left = unanswered(settings)
    if points or lessons:
        what = "from judged sessions" if points else "lessons from tasks that ended badly"
        other, name = (LESSONS, "lessons") if points else (POINTS, "points")
        asked = "; nobody was asked yet about " + name + ": `reflectd setup` asks" if other in left else ""
        return f"{what}, for {most}{'' if points and lessons else asked or f'; no {name} ({other})'}"
    if not left:
        return f"nothing ({POINTS}, {LESSONS}); `reflectd setup --learning on` lets it, for {most}"
    return f"nothing, and nobody was asked yet: `reflectd setup` says what it costs ({most}) and asks"


def decide(
    args: argparse.Namespace, wanted: str | None, env: Mapping[str, str], now: Callable[[], datetime]
) -> Outcome | str:
    """Take the answer from ``--learning`` or the person, and write it. A text when the settings are wrong.
    Raises ``UserError``, ``Unavailable`` and ``OSError``.
    """
    file = paths.config_file(env)
    try:
        settings = config.load(env, file)
    except UserError as error:
        return f"the daemon will not start with these settings: {error}"
    chosen = None if wanted is None else wanted == "on"
    keys: tuple[str, ...] = SETTINGS
    if chosen is None and not (args.json or args.dry_run or is_answered(settings)) and attended():
        try:
            chosen, keys = _ask(settings, env), unanswered(settings)
        except (EOFError, KeyboardInterrupt):
            print("\nThat is no answer: it stays off, and the next `reflectd setup` asks again.")
    if chosen is None:
        return Outcome(settings, file)
    return _write(args, file, env, now, keys, chosen=chosen)


def _ask(settings: Settings, env: Mapping[str, str]) -> bool:
    """The person's answer. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    asks = unanswered(settings)
    points = (
        "It looks back on those that were judged; what another session confirms is given to the next one. "
        "You see, edit and undo all of it: `reflectd playbook`. "
    )
    lessons = (
        "It draws a lesson from each task that ended badly, and a small model chooses which of them an agent "
        "is given for a task: `reflectd memory`."
    )
    told = (points if POINTS in asks else "") + (lessons if LESSONS in asks else "")
    say(f"\nShall reflectd learn from your sessions? {told}\n")
    room = max(min(width(sys.stdout), WIDTH) - len(INDENT), NARROWEST_TEXT)
    for title, text in _about(settings, env):
        print(f"  {title}")
        for line in wrap(text, room):
            print(f"{INDENT}{line}")
    while True:
        answer = input("\nLearn? [y/N; Enter is no, and you are not asked again] ").strip().lower()
        if answer in {"", "n", "no", "y", "yes"}:
            return answer in {"y", "yes"}
        print("Type y or n.")


def _about(settings: Settings, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """What it costs, where the text goes, and what is written."""
    spend = settings.spend
    try:
        judging = found(settings, env, by_host=True)
    except UserError:
        judging = {}
    who = "; ".join(f"{HOSTS[host]}: {names(j)}" for host, j in judging.items())
    return [
        (
            "what it costs",
            f"It {USUAL} {FAILED} In seven days that is at most {spend.learning_percent} % of what judging "
            "cost (spend.learning_percent); `reflectd cost --by purpose` shows it. Where only the rules "
            "judge it learns nothing and costs nothing.",
        ),
        (
            "where the text goes",
            "To the provider that judges, with known secrets taken out, and nowhere else. "
            f"{f'Now that is {who}. ' if who else ''}The case of each judged turn is kept in your state "
            "folder until it was learned from, for seven days at most.",
        ),
        (
            "what is written",
            "The playbook of the project, .reflection/playbook.json, and nothing else: no CLAUDE.md and no "
            "AGENTS.md. Lessons stay in your state folder.",
        ),
    ]


def _write(
    args: argparse.Namespace,
    file: Path,
    env: Mapping[str, str],
    now: Callable[[], datetime],
    keys: Iterable[str],
    *,
    chosen: bool,
) -> Outcome:
    """Set the values in the person's file, unless they are there or this is a dry run."""
    from ...files.toml_text import put

    old = read_text(file) if file.exists() else ""
    new = old
    try:
        for key in keys:
            section, _, name = key.partition(".")
            new = put(new, section, name, chosen)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    check_editable(file, force=args.force)
    settings = config.from_text(new, name=str(file), env=env)
    backup = None if args.dry_run or new == old else write(file, old, new, now)
    notes = [
        f"{source} in your environment counts more than {key} = {toml(chosen)} in {file}"
        for key in keys
        if (source := settings.sources.get(key, "")) != str(file)
    ]
    return Outcome(settings, file, diff(file, old, new), backup, tuple(notes))
