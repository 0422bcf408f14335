"""What sort of thing a shell script does, so that a loop can be told from waiting and from work.

It reads the script's text only. A script of no known sort counts as ``act``. Results are cached, because
agents repeat scripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from ..evidence.calls.actions import Check, Stash, Write
from ..evidence.calls.commands import read_script
from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps

Sort = Literal["act", "check", "other", "look", "probe", "wait", "plan", "text"]
MAX_CACHED: Final = 2_000
MAX_READ: Final = 8_000

_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "ls cat head tail grep egrep rg ag ack find fd tree stat file which type wc pwd echo printf sed awk "
        "jq yq diff cut sort uniq less more bat cd pushd popd env whoami du date tr xargs basename dirname "
        "realpath test true nl column tac export set"
    ).split()
)
_GIT_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "status log diff show branch blame grep ls-files rev-parse remote describe tag shortlog ls-tree "
        "reflog"
    ).split()
)
_WAITS: Final = frozenset({"sleep", "wait", "inotifywait", "watch"})
_PROBES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "kubectl oc aws gcloud az flyctl fly heroku vercel netlify argocd helm ps pgrep pidof lsof ss "
        "netstat nc ping nvidia-smi squeue sacct journalctl top uptime free df adb xcrun tmux screen dig "
        "nslookup host pg_isready redis-cli"
    ).split()
)
_PROBING: Final = re.compile(
    r"\bgh (?:run|pr (?:checks|view|status)|workflow|api)\b|\bglab (?:ci|pipeline)\b"
    r"|\bdocker(?:[ -]compose)? (?:ps|logs|inspect|stats|port|top)\b"
    r"|\bsystemctl (?:[-\w=]{1,40} ){0,3}(?:status|is-)"
    r"|\b(?:curl|wget|http|nc)\b[^\n|;&]{0,200}(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|health"
    r"|ready|status|ping)"
    r"|\b(?:tail|cat|grep)\b[^\n|;&]{0,200}\.(?:log|out)\b|nohup\.out|\bgit ls-remote\b"
    r"|\bterraform (?:show|state)\b"
)
_WAITING: Final = re.compile(r"(?:^|\s)(?:--watch|--wait|watch|wait)(?:\s|$|=)")


@dataclass(frozen=True, slots=True)
class Script:
    """What a script does. ``head``: its program, with verb and folder. ``target``: the first file that it
    writes.
    """

    sort: Sort
    writes: bool = False
    head: str = ""
    target: str = ""


def script_of(script: str) -> Script:
    """What ``script`` does, by its first ``MAX_READ`` characters."""
    return _known(script) if len(script) <= MAX_CACHED else _read(script[:MAX_READ])


@lru_cache(maxsize=512)
def _known(script: str) -> Script:
    return _read(script)


def _read(script: str) -> Script:
    commands = [unwrap(step.words)[0] or step.words for step in steps(script)]
    names = [words[0].rsplit("/", 1)[-1] if words else "" for words in commands]
    actions = read_script(script)
    written = next((a.path for a in actions if isinstance(a, Write)), "")
    writes = bool(written) or any(isinstance(a, Stash) for a in actions)
    head = next((h for n, w in zip(names, commands, strict=True) if (h := _head(n, w))), "")
    folders = [w[1] for n, w in zip(names, commands, strict=True) if n in {"cd", "pushd"} and len(w) > 1]
    if folders:  # the same command in many folders is a batch, not a loop
        head = f"{head} in {folders[0]}"
    looks = all(_looks(n, w) for n, w in zip(names, commands, strict=True))
    sort: Sort = "act"
    if (
        _WAITS & set(names)
        or "tmux send-keys" in script
        or (not writes and not looks and _WAITING.search(script))
    ):
        sort = "wait"
    elif not writes and (_PROBES & set(names) or _PROBING.search(script)):
        sort = "probe"
    elif any(isinstance(a, Check) for a in actions):
        sort = "check"
    elif looks and not writes:
        sort = "look"
    return Script(sort, writes, head, written)


def _looks(name: str, words: tuple[str, ...]) -> bool:
    if name == "git":
        return next((w for w in words[1:] if not w.startswith("-")), "") in _GIT_LOOKS
    return not name or name in _LOOKS


def _head(name: str, words: tuple[str, ...]) -> str:
    """``npm install`` for ``npm install -D x``; empty for a command that only prepares others."""
    if not name or name in {"cd", "export", "set", "source", ".", "echo", "mkdir", "sleep"}:
        return ""
    verb = next((w for w in words[1:3] if re.fullmatch(r"[a-z][a-z:-]{0,20}", w)), "")
    return f"{name} {_ALIASES.get(verb, verb)}".strip()


_ALIASES: Final = {"i": "install", "add": "install", "t": "test"}
