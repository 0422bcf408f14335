"""Who shall judge Claude Code's sessions: the question of ``reflectd setup claude-code``, and ``--judge``.

Asks only on a terminal, and writes one setting, ``judge.claude_code``, into the person's settings file; with
a key in the environment also its variable's name and its address. Other hosts keep their judge. A judge that
is not set up is refused before anything is written. No key is ever asked for or shown. Ctrl-C and the end of
input leave everything as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ... import config, paths
from ...core.errors import UserError
from ...core.policy import Judging
from ...core.settings import Settings
from ...keys import VARIABLES, Keys, load_keys
from ..judging import cost, found, lost_login, missing, names, who_judges
from ..terminal import NARROWEST_TEXT, attended, say, width
from .edit import check_editable, diff, read_text, write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from datetime import datetime

HOST: Final = "claude-code"
SETTING: Final = "judge.claude_code"
CHOICES: Final = ("claude-cli", "anthropic", "openai", "offline")
USUAL: Final = "A stop usually takes one call of about 2,000 tokens and an answer."
"""As docs/cost.md says it; a test compares them."""
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
INDENT, WIDTH = "     ", 101


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who judges now, and what was written, or would be."""

    judging: Judging
    settings: Settings
    file: Path
    diff: str = ""
    backup: Path | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        backup = str(self.backup) if self.backup else None
        more = {"file": str(self.file), "diff": self.diff, "backup": backup, "warnings": self.notes}
        return {**self.judging._asdict(), "changed": bool(self.diff), **more}

    def lines(self, *, dry_run: bool) -> list[str]:
        """For a person: what was written, how to undo it, and who judges."""
        found = [f"  judge:  {who_judges(HOST, self.judging)}{cost(self.judging, self.settings)}"]
        if self.diff:
            back = (
                f"{self.backup} (copy it back to undo)"
                if self.backup
                else "none: delete the new file to undo"
            )
            found = [*self.diff.splitlines(), *found, *([] if dry_run else [f"  backup: {back}"])]
        return found + [f"  note:   {note}" for note in self.notes]


@dataclass(frozen=True, slots=True)
class _Known:
    """The settings of this environment, and which judges are set up."""

    settings: Settings
    keys: Keys
    there: frozenset[str]
    env: Mapping[str, str]

    @property
    def now(self) -> Judging:
        """Who judges as things stand."""
        return found(self.settings, self.env, by_host=True)[HOST]


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Register ``--judge``."""
    text = "who judges Claude Code's sessions (asked on a terminal; otherwise nothing is changed)"
    parser.add_argument("--judge", choices=CHOICES, help=text)


def check(args: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Refuse a judge that can't be chosen, before anything is written. Raises ``UserError``."""
    if args.judge and (args.remove or args.undo):
        raise UserError("give --judge alone, without --remove and --undo")
    if args.judge:
        known = _know(env)
        if args.judge not in known.there:
            raise UserError(f"{_lacks(known, args.judge)}. Nothing was changed")
        _edited(args, known, args.judge)


def decide(
    args: argparse.Namespace, env: Mapping[str, str], now: Callable[[], datetime]
) -> Outcome | str | None:
    """Take the answer from ``--judge`` or the person, and write it. None when the plugin is removed; a text
    when the settings are wrong. Raises ``UserError``, ``Unavailable`` and ``OSError``.
    """
    if args.remove or args.undo:
        return None
    try:
        known = _know(env)
    except UserError as error:
        return f"the daemon will not start with these settings: {error}"
    chosen = args.judge
    asks = not (chosen or args.json or args.dry_run) and attended()
    if asks:
        try:
            chosen = _ask(known)
        except (EOFError, KeyboardInterrupt):
            print("\nThe plugin is set up. Who judges was not changed.")
    if not chosen:
        notes = _login_notes(known.settings, known.now, env)
        return Outcome(known.now, known.settings, paths.config_file(env), notes=notes)
    return _write(args, known, chosen, now)


def _know(env: Mapping[str, str]) -> _Known:
    from ...llm.select import there

    settings = config.load(env, paths.config_file(env))
    keys = load_keys(env, settings)
    return _Known(settings, keys, there(settings, keys, env), env)


def _lacks(known: _Known, chosen: str) -> str:
    """What is missing and what to do, for the person's file or environment."""
    what = missing(HOST, chosen)
    if chosen == "openai" and not known.settings.openai.base_url:
        file = paths.config_file(known.env)
        what += (
            f". For a server on this machine write into {file}, with its own address and model: "
            '[openai] base_url = "http://127.0.0.1:11434/v1" and model = "…"'
        )
    return what


def _ask(known: _Known) -> str:
    """The person's choice; "" keeps what is in force. Raises ``EOFError`` and ``KeyboardInterrupt``."""
    print("\nWho shall judge Claude Code's sessions? Claude Code lends its model to no hook.\n")
    room = max(min(width(sys.stdout), WIDTH) - len(INDENT), NARROWEST_TEXT)
    for number, name in enumerate(CHOICES, 1):
        title, text = _about(known, name)
        lacks = "" if name in known.there else " [not set up]"
        say(f"  {number}  {title}{lacks}\n{indent(chr(10).join(wrap(text, room)), INDENT)}")
    print(f"\nIn force now: {names(known.now)}")
    while True:
        answer = input("1, 2, 3 or 4? Enter keeps what is in force: ").strip()
        chosen = dict(zip("1234", CHOICES, strict=True)).get(answer, answer)
        if not chosen or chosen in known.there & set(CHOICES):
            return chosen
        say(f"{_lacks(known, chosen)}." if chosen in CHOICES else "Type one of the four numbers.")


def _about(known: _Known, name: str) -> tuple[str, str]:
    """A title, and what the choice costs, where the text goes and what it misses."""
    s = known.settings
    cap = f"at most {s.spend.cents_per_day / 100:.2f} USD a day (spend.cents_per_day)"
    match name:
        case "claude-cli":
            return "your own Claude Code, by `claude -p`", (
                f"No key. It uses up the limits of your Claude plan. {USUAL} Whether a plan may be used like "
                "that is between you and Anthropic. `reflectd cost` shows what it used."
            )
        case "anthropic":
            return "Anthropic's API, with a key", (
                f"The text of the session, with known secrets taken out, is sent to {_to(name, known)}. You "
                f"pay for each call, {cap}. {USUAL} The key is read from ANTHROPIC_API_KEY, whose name "
                "and address are then written into your settings, or from the file that anthropic.key_file "
                "names; a service reads only the file."
            )
        case "openai":
            return "a server that speaks OpenAI's API, such as Ollama or llama.cpp (openai.base_url)", (
                "If it runs on this machine, nothing leaves the machine. Else the text of the session, with "
                f"known secrets taken out, is sent there. Now that would be {_to(name, known)}."
            )
        case _:
            return "the rules, without a model", (
                "No cost, and nothing leaves the machine. They miss much: without a model reflectd claims "
                "only what it can show, and stays quiet about most turns. `make eval-judge` measures how "
                "much they miss; design/judge.md has the figures."
            )


def _to(name: str, known: _Known) -> str:
    """Where the text of a session is sent."""
    address = known.keys.apis[name].base_url
    if address in {"", VARIABLES[name].official}:
        return "Anthropic" if name == "anthropic" else "OpenAI"
    parts = urlsplit(address)
    return f"{parts.netloc.rpartition('@')[2]}{', this machine' if parts.hostname in LOCAL else ''}"


def _edited(args: argparse.Namespace, known: _Known, chosen: str) -> tuple[Path, str, str]:
    """The person's file, its text, and its text with the choice. Raises ``UserError`` and ``Unavailable``."""
    from ...files.toml_text import put

    file = paths.config_file(known.env)
    old = read_text(file) if file.exists() else ""
    new = old
    try:
        for name, value in {SETTING: chosen, **_recorded(known, chosen)}.items():
            section, _, key = name.partition(".")
            new = put(new, section, key, value)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    check_editable(file, force=args.force)
    return file, old, new


def _recorded(known: _Known, chosen: str) -> dict[str, str]:
    """Which variable holds the key and which address gets it, so that a daemon that a host starts may use
    them. Nothing where a file holds the key, or where the server that was set needs none.
    """
    if chosen not in VARIABLES:
        return {}
    api = known.settings.apis[chosen]
    usual = VARIABLES[chosen]
    if (
        api.key_file
        or (api.base_url and api.key_env != usual.key)
        or not known.env.get(usual.key, "").strip()
    ):
        return {}
    address = known.env.get(usual.address, "").strip().rstrip("/") or usual.official
    return {f"{chosen}.key_env": usual.key, f"{chosen}.base_url": address}


def _write(args: argparse.Namespace, known: _Known, chosen: str, now: Callable[[], datetime]) -> Outcome:
    """Set the value in the person's file, unless it is there or this is a dry run."""
    file, old, new = _edited(args, known, chosen)
    settings = config.from_text(new, name=str(file), env=known.env)
    judging = found(settings, known.env, by_host=True)[HOST]
    notes = (*_notes(settings, chosen), *_login_notes(settings, judging, known.env))
    backup = None if args.dry_run or new == old else write(file, old, new, now)
    return Outcome(judging, settings, file, diff(file, old, new), backup, notes)


def _notes(settings: Settings, chosen: str) -> list[str]:
    """What may make the daemon judge otherwise than was chosen."""
    notes = []
    if (source := settings.sources.get(SETTING, "")).startswith("REFLECTD_"):
        notes.append(f"{source} in your environment counts more than the file")
    api = settings.apis.get(chosen)
    if api is not None and api.key_env:
        notes.append(
            f"the key in {api.key_env}, in the environment of what starts the daemon, goes to "
            f"{api.base_url}; a service does not see it and needs {chosen}.key_file"
        )
    return notes


def _login_notes(settings: Settings, judging: Judging, env: Mapping[str, str]) -> tuple[str, ...]:
    """That the judge `claude-cli` will have no login."""
    if "claude-cli" not in judging.asked:
        return ()
    way = lost_login(env, settings.claude_cli.token_file)
    return (way,) if way else ()
