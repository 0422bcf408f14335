"""``reflectd completion bash|zsh|fish``: prints a script that completes verbs, flags, choices and session
ids.

The script is made from the parsers, so it knows exactly what they know. While a person types a session id,
the script asks the daemon for the ids it knows; it waits half a second at most, and says nothing when no
daemon answers. Exit code 0.
"""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...client import request
from ...core.errors import ReflectdError
from ...core.settings import SETTINGS
from ...paths import find_socket
from ..settings import add_flags, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASK_S = 0.5
LISTED = 50
SHELLS = ("bash", "zsh", "fish")
SESSIONS = "reflectd completion --sessions 2>/dev/null"
EPILOG = """to switch it on:
  bash   echo 'source <(reflectd completion bash)' >> ~/.bashrc
  zsh    echo 'source <(reflectd completion zsh)' >> ~/.zshrc     (after compinit)
  fish   reflectd completion fish > ~/.config/fish/completions/reflectd.fish"""
_SAFE = re.compile(
    r"[A-Za-z0-9_.-]{1,120}"
)  # bash expands what it completes, so ids with other characters are not offered
_KINDS = {"SESSION": "session", "DIR": "folder", "FILE": "file", "CASE": "file"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. With ``takes`` a value follows: one of ``choices``, or of a ``kind`` that can be
    completed.
    """

    names: tuple[str, ...]
    help: str
    takes: bool
    choices: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb (``setup``) or one below it (``setup opencode``): its flags and its other arguments."""

    words: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    choices: tuple[str, ...] = ()
    kind: str = ""
    below: tuple[str, ...] = field(default=())


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "completion",
        help="completion of verbs, flags and session ids for your shell",
        epilog=EPILOG,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=SHELLS, help="print the script for this shell")
    what.add_argument(
        "--sessions", action="store_true", help="print the ids of known sessions (the script asks)"
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script, or the session ids that it asks for."""
    if args.sessions:
        with suppress(ReflectdError):
            _, where = look(args)
            found = request(find_socket(where), "GET", f"/v1/sessions?limit={LISTED}", timeout_s=ASK_S)
            print("\n".join(s["session"] for s in found["sessions"] if _SAFE.fullmatch(s["session"])))
        return 0
    makers: dict[str, Callable[[list[Verb]], list[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print("\n".join(makers[args.shell](list(_verbs()))))
    return 0


def _verbs() -> Iterator[Verb]:
    from ..main import VERBS, build

    for name in VERBS:
        parser = next(a.choices[name] for a in build(name)._actions if isinstance(a.choices, dict))  # noqa: SLF001 - argparse has no other way in
        yield from _walk((name,), VERBS[name][1], parser)


def _walk(words: tuple[str, ...], text: str, parser: argparse.ArgumentParser) -> Iterator[Verb]:
    flags: list[Flag] = []
    choices: tuple[str, ...] = ()
    kind, below = "", dict[str, argparse.ArgumentParser]()
    for a in parser._actions:  # noqa: SLF001 - argparse has no other way in
        if isinstance(a, argparse._SubParsersAction):  # noqa: SLF001 - the same
            below = dict(a.choices)
        elif a.option_strings:
            options = tuple(str(c) for c in a.choices or ()) or _allowed(a)
            setting = SETTINGS.get(a.dest.removeprefix("set:"))
            said = setting.doc if setting else (a.help or "").replace("%%", "%")
            flags.append(Flag(tuple(a.option_strings), said, a.nargs != 0, options, _kind(a)))
        else:
            choices += _named(a) or tuple(str(c) for c in a.choices or ())
            kind = kind or _kind(a)
    yield Verb(words, text, tuple(flags), choices, kind, tuple(below))
    for name, inner in below.items():
        yield from _walk((*words, name), inner.description or name, inner)


def _named(action: argparse.Action) -> tuple[str, ...]:
    """What an argument names that the parser leaves to the verb: a setting, or another verb."""
    from ..main import VERBS

    return {"KEY": tuple(SETTINGS), "VERB": tuple(VERBS)}.get(str(action.metavar), ())


def _allowed(action: argparse.Action) -> tuple[str, ...]:
    """The values that a setting may have. The parser accepts any text, and ``config`` checks it."""
    setting = SETTINGS.get(action.dest.removeprefix("set:"))
    if setting is None:
        return ()
    return ("true", "false") if isinstance(setting.default, bool) else setting.choices


def _kind(action: argparse.Action) -> str:
    named = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.option_strings == ["--session"]:
        return "session"
    setting = SETTINGS.get(action.dest.removeprefix("set:"))
    if setting is not None and setting.form == "path":
        return "file"
    return _KINDS.get(named, "")


# --- bash ----------------------------------------------------------------------------------------

_BASH = """# reflectd completion for bash (works with 3.2 and later)
_reflectd() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= word flags= words= kind= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$at $word" in
@ENTER@
    esac
  done
  case "$at" in
@VERBS@
  esac
  case "$at $prev" in
@VALUES@
  esac
  if [[ $cur == -* ]]; then words=$flags kind=; fi
  case $kind in
    session) words="$words $(@SESSIONS@)" ;;
    folder) local IFS=$'\\n'; COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames 2>/dev/null; return ;;
    file) local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null; return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _reflectd reflectd"""


def _bash(verbs: list[Verb]) -> list[str]:
    enter, about, values = [], [], []
    tops = " ".join(v.words[0] for v in verbs if len(v.words) == 1)
    about.append(f'    "") words="{tops}" flags="--help --version" ;;')
    for v in verbs:
        at, parent = " ".join(v.words), " ".join(v.words[:-1])
        enter.append(f'      "{parent} {v.words[-1]}") at="{at}" ;;')
        flags = " ".join(name for f in v.flags for name in f.names)
        words = " ".join((*v.below, *v.choices))
        about.append(f'    "{at}") words="{words}" flags="{flags}" kind={v.kind} ;;')
        for f in v.flags:
            if f.takes:
                match = " | ".join(f'"{at} {name}"' for name in f.names)
                values.append(f'    {match}) words="{" ".join(f.choices)}" flags= kind={f.kind} ;;')
    parts = {"ENTER": enter, "VERBS": about, "VALUES": values, "SESSIONS": [SESSIONS]}
    return [_fill(_BASH, parts)]


# --- zsh -----------------------------------------------------------------------------------------

_ZSH = """#compdef reflectd
# reflectd completion for zsh
_reflectd_sessions() {
  local -a found
  found=(${(f)"$(@SESSIONS@)"})
  (( $#found )) && compadd -a found
}
_reflectd() {
  local curcontext=$curcontext state line
  _arguments -C '(- *)--help[show the help]' '(- *)--version[print the version]' '1: :->verb' '*:: :->rest'
  case $state in
    verb)
      local -a verbs
      verbs=(
@TOPS@
      )
      _describe verb verbs ;;
    rest)
      case $line[1] in
@VERBS@
      esac ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _reflectd "$@"; else compdef _reflectd reflectd; fi"""
_ZSH_KINDS = {"session": ":session:_reflectd_sessions", "folder": ":folder:_files -/", "file": ":file:_files"}


def _zsh(verbs: list[Verb]) -> list[str]:
    tops = [f"        {_quoted(f'{v.words[0]}:{v.help}')}" for v in verbs if len(v.words) == 1]
    lines = []
    for v in (v for v in verbs if len(v.words) == 1):
        inner = [
            w for w in verbs if w.words[:1] == v.words
        ]  # with the verbs below this one, whose flags may stand anywhere
        flags = {name: f for w in inner for f in w.flags for name in f.names}
        arguments = [_quoted(_zsh_flag(name, f)) for name, f in flags.items()]
        words = (*v.below, *v.choices)
        if words:
            arguments.append(_quoted(f"1:{v.words[0]}:({' '.join(words)})"))
        elif v.kind:
            arguments.append(_quoted(f"1{_ZSH_KINDS[v.kind]}"))
        lines.append(f"        {v.words[0]}) _arguments {' '.join(arguments)} ;;")
    return [_fill(_ZSH, {"TOPS": tops, "VERBS": lines, "SESSIONS": [SESSIONS]})]


def _zsh_flag(name: str, f: Flag) -> str:
    text = "".join(c for c in f.help if c not in "[]:\\")
    value = f":value:({' '.join(f.choices)})" if f.choices else _ZSH_KINDS.get(f.kind, ":value:")
    return f"{name}[{text}]{value if f.takes else ''}"


# --- fish ----------------------------------------------------------------------------------------


def _fish(verbs: list[Verb]) -> list[str]:
    tops = [v.words[0] for v in verbs if len(v.words) == 1]
    none = f"not __fish_seen_subcommand_from {' '.join(tops)}"
    lines = ["# reflectd completion for fish", "complete -c reflectd -f"]
    lines += [f"complete -c reflectd -n {_quoted(none)} -l {name}" for name in ("help", "version")]
    for v in verbs:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in v.words)
        if len(v.words) == 1:
            lines.append(f"complete -c reflectd -n {_quoted(none)} -a {v.words[0]} -d {_quoted(v.help)}")
        if v.below:
            lines.append(f"complete -c reflectd -n {_quoted(seen)} -a {_quoted(' '.join(v.below))}")
        for what in _fish_values(v.choices, v.kind):
            lines.append(f"complete -c reflectd -n {_quoted(seen)}{what}")
        for f in v.flags:
            names = "".join(f" -l {n[2:]}" if n.startswith("--") else f" -s {n[1:]}" for n in f.names)
            takes = "" if not f.takes else " -r" if f.kind == "file" else " -x"
            values = "".join(_fish_values(f.choices, f.kind))
            lines.append(
                f"complete -c reflectd -n {_quoted(seen)}{names}{takes}{values} -d {_quoted(f.help)}"
            )
    return lines


def _fish_values(choices: tuple[str, ...], kind: str) -> Iterator[str]:
    if choices:
        yield f" -a {_quoted(' '.join(choices))}"
    elif kind == "session":
        yield f" -a {_quoted(f'({SESSIONS})')}"
    elif kind == "folder":
        yield " -a '(__fish_complete_directories)'"
    elif kind == "file":
        yield " -F"


def _quoted(text: str) -> str:
    """For a POSIX shell, zsh and fish alike."""
    return "'" + " ".join(text.split()).replace("\\", "").replace("'", "'\\''") + "'"


def _fill(template: str, parts: dict[str, list[str]]) -> str:
    for name, lines in parts.items():
        template = template.replace(f"@{name}@", "\n".join(lines))
    return template
