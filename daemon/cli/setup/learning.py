"""Whether reflectd learns: the question of ``reflectd setup``, and ``--learning on|off``.

It is off until a person says yes, also after an upgrade. Whoever never answered is asked once, on a terminal,
and is told before what it costs, where the text goes and what is written. The answer is one setting,
``playbook.enabled``, in the person's settings file: a no is one too. Ctrl-C and the end of input are no
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
from ...playbook.case import CURATOR_TOKENS, REFLECTOR_TOKENS
from ..judging import HOSTS, found, names
from ..terminal import NARROWEST_TEXT, attended, say, width
from .edit import check_editable, diff, read_text, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from datetime import datetime

SETTING: Final = "playbook.enabled"
USUAL: Final = (
    "asks a small model twice after a session in which something happened, with at most "
    f"{REFLECTOR_TOKENS:,} and {CURATOR_TOKENS:,} tokens."
)
"""As docs/cost.md says it; a test compares them."""
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
        enabled = self.settings.playbook.enabled
        return {"enabled": enabled, "answered": self.answered, "changed": bool(self.diff), **more}

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
    return SETTING in settings.sources


def in_words(settings: Settings) -> str:
    """Whether it learns, and what that may cost."""
    most = f"at most {settings.spend.learning_percent} % of what judging costs"
    if settings.playbook.enabled:
        return f"from judged sessions, for {most}"
    if is_answered(settings):
        return f"nothing ({SETTING}); `reflectd setup --learning on` lets it, for {most}"
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
    if chosen is None and not (args.json or args.dry_run or is_answered(settings)) and attended():
        try:
            chosen = _ask(settings, env)
        except (EOFError, KeyboardInterrupt):
            print("\nThat is no answer: it stays off, and the next `reflectd setup` asks again.")
    if chosen is None:
        return Outcome(settings, file)
    return _write(args, file, env, now, chosen=chosen)


def _ask(settings: Settings, env: Mapping[str, str]) -> bool:
    """The person's answer. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    say(
        "\nShall reflectd learn from your sessions? It looks back on those that were judged; what another "
        "session confirms is given to the next one. You see, edit and undo all of it: `reflectd playbook`.\n"
    )
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
            f"It {USUAL} In seven days that is at most {spend.learning_percent} % of what judging cost "
            "(spend.learning_percent); `reflectd cost --by purpose` shows it. Where only the rules judge it "
            "learns nothing and costs nothing.",
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
            "AGENTS.md.",
        ),
    ]


def _write(
    args: argparse.Namespace,
    file: Path,
    env: Mapping[str, str],
    now: Callable[[], datetime],
    *,
    chosen: bool,
) -> Outcome:
    """Set the value in the person's file, unless it is there or this is a dry run."""
    from ...files.toml_text import put

    section, _, key = SETTING.partition(".")
    old = read_text(file) if file.exists() else ""
    try:
        new = put(old, section, key, chosen)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    check_editable(file, force=args.force)
    settings = config.from_text(new, name=str(file), env=env)
    backup = None if args.dry_run or new == old else write(file, new.encode(), now)
    source, notes = settings.sources.get(SETTING, ""), list[str]()
    if source != str(file):
        notes.append(f"{source} in your environment counts more than {SETTING} = {toml(chosen)} in {file}")
    return Outcome(settings, file, diff(file, old, new), backup, tuple(notes))
