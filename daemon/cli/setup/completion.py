"""``reflectd completion bash|zsh|fish``: prints a short script that completes verbs, flags and values.

At each Tab the script asks ``reflectd completion words -- WORD...``, which looks at the parser of the verb
that was typed.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...core.settings import SETTINGS
from ..settings import add_flags

if TYPE_CHECKING:
    from collections.abc import Iterator

EPILOG = """to switch it on:
  bash   echo 'source <(reflectd completion bash)' >> ~/.bashrc
  zsh    echo 'source <(reflectd completion zsh)' >> ~/.zshrc     (after compinit)
  fish   reflectd completion fish > ~/.config/fish/completions/reflectd.fish"""
_KINDS = {"DIR": ":folder", "FILE": ":file", "CASE": ":file"}
SCRIPTS = {
    "bash": r"""# reflectd completion for bash (works with 3.2 and later)
_reflectd() {
  local line IFS=$'\n'
  COMPREPLY=()
  for line in $(reflectd completion words -- "${COMP_WORDS[@]:1:$COMP_CWORD}" 2>/dev/null); do
    case $line in
      :folder) COMPREPLY=($(compgen -d -- "${COMP_WORDS[COMP_CWORD]}")); compopt -o filenames 2>/dev/null ;;
      :file) COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); compopt -o filenames 2>/dev/null ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _reflectd reflectd""",
    "zsh": r"""#compdef reflectd
# reflectd completion for zsh
_reflectd() {
  local line; local -a found
  for line in "${(@f)$(reflectd completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :folder) _files -/; return ;;
      :file) _files; return ;;
      ?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe reflectd found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _reflectd "$@"; else compdef _reflectd reflectd; fi""",
    "fish": r"""# reflectd completion for fish
function __reflectd_words
  set -l words (commandline -opc) (commandline -ct | string collect --allow-empty)
  for line in (reflectd completion words -- $words[2..-1] 2>/dev/null)
    switch $line
      case ':folder'
        __fish_complete_directories (commandline -ct)
      case ':file'
        __fish_complete_path (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c reflectd -f -a '(__reflectd_words)'""",
}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("completion", epilog=EPILOG)
    parser.add_argument("shell", choices=(*SCRIPTS, "words"), help="print the script for this shell")
    parser.add_argument("words", nargs="*", metavar="WORD", help="what was typed (the script asks)")
    add_flags(parser, run)


def run(args: argparse.Namespace) -> int:
    """Print the script, or what may stand for the last of the words: a line each, a tab before its help."""
    if args.shell != "words":
        print(SCRIPTS[args.shell])
        return 0
    *before, last = args.words or [""]
    for word, text in _words(before, last):
        if word.startswith((last, ":")):
            print(f"{word}\t{text}" if text and not word.startswith(":") else word)
    return 0


def _words(before: list[str], last: str) -> Iterator[tuple[str, str]]:
    """The words that may follow, with their help; ``:folder`` and ``:file`` are the shell's own."""
    from ..main import build
    from ..verbs import BELOW, OLDER, VERBS

    if not before or before == ["help"]:
        flags = {"--help": "explain reflectd", "--version": "print the version"}
        yield from flags.items() if last.startswith("-") else ((name, VERBS[name][1]) for name in VERBS)
        return
    below = BELOW.get(before[0], ())
    if before[1:2] and before[1] in below:
        before = before[1:]
    elif len(before) == 1:
        yield from ((name, VERBS[name][1]) for name in below)
    verb = OLDER.get(before[0], before[:1])[0]
    if verb not in VERBS or verb == "daemon":
        return
    parser = _parser(build(verb), [verb, *before[1:]])
    if parser is None:
        return
    actions = parser._actions  # noqa: SLF001 - argparse has no other way in
    for action in actions:
        if before[-1] in action.option_strings and action.nargs != 0:
            yield from _values(action)
            return
    for action in actions:
        if not last.startswith("-"):
            yield from () if action.option_strings else _values(action)
        elif action.option_strings:
            setting = SETTINGS.get(action.dest.removeprefix("set:"))
            text = setting.doc if setting else (action.help or "").replace("%%", "%")
            yield from ((name, " ".join(text.split())) for name in action.option_strings)


def _parser(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser | None:
    """The parser of the verb that the words name, and of the one below it; None for an unknown verb."""
    for word in words:
        below = next((a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)  # noqa: SLF001 - the same
        if below is None:
            break
        if word in below:
            parser = below[word]
        elif not word.startswith("-"):
            return None
    return parser


def _values(action: argparse.Action) -> Iterator[tuple[str, str]]:
    """The values of an argument: its choices, a setting, or a file of the shell's."""
    setting = SETTINGS.get(action.dest.removeprefix("set:"))
    named = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    kind = _KINDS.get(named, "")
    words: tuple[object, ...] = tuple(action.choices or ())
    if setting is not None:
        words = words or (("true", "false") if isinstance(setting.default, bool) else setting.choices)
        kind = ":file" if setting.form == "path" else kind
    yield from ((str(word), "") for word in (*words, *(SETTINGS if named == "KEY" else ())))
    if kind:
        yield kind, ""
