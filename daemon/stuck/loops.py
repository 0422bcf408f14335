"""Finds loops: does the agent make the same calls with the same outcomes again and again?

Each finished call becomes a ``Step``: a digest of the tool with its arguments, and one of the outcome without
times, process ids and the like. ``loop_at_end`` names the loop that a row of steps ends with: one call, or a
round of two to five. A step that brings something new ends every loop, so work that makes progress is never
one. Never raises. Linear time. Thresholds and reasons: ``design/stuck.md``.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..core.guards import Skip
from ..core.transcript import looks_up
from ..evidence.actions import AGENT_TOOLS, SHELL_TOOLS, WRITE_TOOLS, Check, Stash, Write, first_text
from ..redact import redact, redact_head

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.session import Session
    from ..core.transcript import ToolCall, Transcript

LoopKind = Literal["same_call", "cycle"]
Sort = Literal["act", "run", "check", "look", "probe", "wait"]

SIZE: Final = 128  # steps that are compared
LONGEST: Final = 5  # calls of a round
RECENT: Final = 64  # steps in which rounds are looked for that have lookups between them
# By sort: how often a call, and how often a round, must come with one outcome to be a loop.
PATIENCE: Final[dict[Sort, tuple[int, int]]] = {
    "act": (4, 3),
    "run": (30, 3),  # a command that works may be wanted many times: a benchmark, a stress test
    "look": (4, 3),
    "check": (8, 5),  # of a tool that is not known: it may make progress that its outcome does not show
    "probe": (12, 8),
    "wait": (30, 20),
}
MAX_NAME: Final = 120
MAX_SCRIPT: Final = 8_000
WHOLE: Final = 16_000  # longer outputs are cleaned only in their head and tail
HEAD: Final = 4_000
TAIL: Final = 8_000
FAULT_LINES: Final = 3
WENT_ON: Final = 2  # more repeats after the nudge: then the agent did not heed it


class Step(Struct, frozen=True):
    """One finished call.

    ``symbol``: equal for calls that count as the same one with the same outcome: of a failure it holds what
    the call was used on and the error, of any other call all arguments. ``what``: its name for people, in one
    line.
    """

    symbol: str
    tool: str
    sort: Sort = "act"
    failed: bool = False
    what: str = ""


class Loop(Struct, frozen=True):
    """One loop. ``what`` names the calls. ``count``: how often the call or the round came. ``key`` stays the
    same while the loop goes on.
    """

    kind: LoopKind
    what: str
    count: int
    key: str


def loop_in(transcript: Transcript) -> Loop | None:
    """The loop that a session is in at the end of its transcript; None where the agent ended its turn with
    words.
    """
    last = transcript.messages[-1] if transcript.messages else None
    spoke = last is not None and last.role == "assistant" and bool(last.text.strip()) and not last.calls
    if spoke and last is not None and last.finish == "stop" and not last.error:
        return None
    return loop_at_end(steps(transcript))


def steps(transcript: Transcript) -> tuple[Step, ...]:
    """The last ``SIZE`` steps since a person typed or the context was compacted, oldest first. Calls that
    still run are left out.
    """
    calls: list[ToolCall] = []
    for message in reversed(transcript.work):
        if message.human or message.summary or len(calls) >= SIZE:
            break
        if message.role == "assistant":
            calls += [c for c in reversed(message.calls) if c.status in {"completed", "error"}]
    return tuple(step_of(call) for call in reversed(calls[:SIZE]))


def loop_at_end(row: Sequence[Step]) -> Loop | None:
    """The loop at the end of the row, or None."""
    row = row[-SIZE:]
    symbols = [step.symbol for step in row]
    if not row or symbols[-1] not in symbols[:-1]:
        return None
    if loop := _rounds(row, symbols):
        return loop
    before: set[str] = set()
    acts: list[Step] = []  # a repeated look at something known neither hides a loop nor ends it
    looks = 0
    for step in row:
        known_look = step.sort == "look" and step.symbol in before
        before.add(step.symbol)
        looks = looks + 1 if known_look else 0
        if not known_look:
            acts.append(step)
    if looks > LONGEST or not acts or acts[-1].sort == "look":
        return None
    return _rounds(acts[-RECENT:], [step.symbol for step in acts[-RECENT:]])


def _rounds(row: Sequence[Step], symbols: Sequence[str]) -> Loop | None:
    end = len(symbols) - 1
    for period in range(1, LONGEST + 1):
        i = end
        while i >= period and symbols[i] == symbols[i - period]:
            i -= 1
        count = (end - i + period) // period
        if count < 3:
            continue
        members = row[len(row) - period :]
        if count < max(PATIENCE[step.sort][period > 1] for step in members):
            return None  # longer periods would only count the same rounds in another way
        return _named(members, count)
    return None


def _named(members: Sequence[Step], count: int) -> Loop:
    """The loop, named by the calls that act; its key is made of them too."""
    acts = [s for s in members if s.sort != "look"] or list(members)
    told = acts if len({s.symbol for s in acts}) == 1 and acts[0].failed else members
    names = list(dict.fromkeys(s.what for s in sorted(told, key=lambda s: (s.sort == "look", s.symbol))))
    what = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    kind: LoopKind = "same_call" if len({s.symbol for s in acts}) == 1 else "cycle"
    return Loop(kind, what, count, digest(*sorted({s.symbol for s in acts})))


def loop_text(loop: Loop) -> str:
    """The sentence for the agent that names the loop."""
    return (
        f"You repeat yourself: {loop.what} ({loop.count} times, with the same outcome). "
        "Doing it again will not change that: find out why, or try something else."
    )


def may_go_on(session: Session, loop: Loop | None) -> Skip | None:
    """May the agent be judged and prompted again? Not when it goes on with a loop that it was told of: that
    would only cost more tokens.
    """
    if (
        loop is None
        or not session.loop
        or loop.key != session.loop
        or loop.count < session.loop_count + WENT_ON
    ):
        return None
    tell = f"Stopped: the agent repeats itself although it was told: {loop.what}"
    return Skip("loop", f"still repeats itself: {loop.what}", final="stopped", tell=tell[:300])


# Steps


def step_of(call: ToolCall) -> Step:
    """The step of a finished call."""
    name = call.tool.lower()
    command = first_text(call.input, "command", "cmd") if name in SHELL_TOOLS else ""
    script = script_of(command) if command else Script(_sort(call.tool))
    failed = call.status == "error" or call.exit not in {0, None}
    path = first_text(call.input, *_PATHS)
    fault = fault_of(call.error or call.output) if failed and script.sort in {"act", "check"} else ""
    if fault:  # other flags and quotes make no other failure; another file, program or folder does
        folder = first_text(call.input, "workdir", "cwd")
        symbol = digest(name, script.head or script.target or path, folder, fault)
    else:
        given = {k: v for k, v in call.input.items() if not (command and k in _SILENT)}
        made = digest(name, " ".join(command.split()), _input(given))
        symbol = made + digest(
            call.printed if name in _EXACT else _output(call.printed), str(call.exit), str(call.cut)
        )
    shown = command or script.target or path or first_text(call.input, *_SHOWN)
    sort = script.sort
    if failed:
        sort = "act" if sort == "check" else sort
    elif command and sort in {"act", "check"} and not script.target:
        sort = "run"
    return Step(symbol, call.tool, sort, failed, _name(call.tool, shown))


def step_from_digests(tool: str, call: str, result: str, *, failed: bool) -> Step:
    """The step of a call of which only digests came: enough to suspect a loop, not enough to name it. So
    read the transcript and ask ``loop_in`` before telling anybody.
    """
    return Step(call + result, tool, _sort(tool), failed, tool[:MAX_NAME])


class Script(Struct, frozen=True):
    """A shell script: ``head`` is its program with verb and folder, ``target`` the first file that it
    writes.
    """

    sort: Sort
    head: str = ""
    target: str = ""


_SILENT: Final = frozenset({"command", "cmd", "description", "timeout"})  # of a shell call
_PATHS: Final = ("filePath", "file_path", "path", "notebook_path", "filename", "file")
_SHOWN: Final = ("pattern", "query", "url", "name", "title", "description", "subject", "prompt")
_EXACT: Final = frozenset({"read", "grep", "glob", "list", "ls", "notebookread"})  # print no times
_BACKGROUND: Final = frozenset({"bashoutput", "taskoutput", "agentoutput", "monitor", "wait", "sleep"})
_LOOK_TOOLS: Final = frozenset({"view", "websearch", "webfetch", "codesearch"})
_BROWSER: Final = re.compile(r"browser|playwright|puppeteer|chrome|screenshot|computer", re.IGNORECASE)
_PRESSES: Final = re.compile(
    r"click|press|key|scroll|type|fill|drag|hover|evaluate|wait|tab|back", re.IGNORECASE
)
_STATUS: Final = re.compile(
    r"status|state|job|run|build|deploy|poll|progress|queue|log|check|pipeline|workflow|health", re.IGNORECASE
)
_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "ls cat head tail grep egrep rg ag find fd tree stat file which type wc pwd echo printf sed awk jq "
        "yq diff cut sort uniq less cd pushd popd env whoami du date tr xargs basename dirname realpath test "
        "true nl export set"
    ).split()
)
_GIT_LOOKS: Final = frozenset(
    "status log diff show branch blame grep ls-files rev-parse remote describe tag".split()  # noqa: SIM905 -- as above
)
_WAITS: Final = frozenset({"sleep", "wait", "inotifywait", "watch"})
_PROBES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "kubectl oc aws gcloud az flyctl fly heroku vercel netlify argocd helm ps pgrep pidof lsof ss "
        "netstat nc ping nvidia-smi squeue sacct journalctl top uptime free df adb xcrun tmux screen dig "
        "nslookup pg_isready redis-cli"
    ).split()
)
_PROBING: Final = re.compile(
    r"\bgh (?:run|pr (?:checks|view|status)|workflow|api)\b|\bglab (?:ci|pipeline)\b"
    r"|\bdocker(?:[ -]compose)? (?:ps|logs|inspect|stats|port|top)\b"
    r"|\bsystemctl (?:[-\w=]{1,40} ){0,3}(?:status|is-)"
    r"|\b(?:curl|wget|http)\b[^\n|;&]{0,200}(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|health|ready|status|ping)"
    r"|\b(?:tail|cat|grep)\b[^\n|;&]{0,200}\.(?:log|out)\b|nohup\.out|\bgit ls-remote\b"
    r"|\bterraform (?:show|state)\b"
)
_WAITING: Final = re.compile(r"(?:^|\s)(?:--watch|--wait|watch|wait)(?:\s|$|=)")
_PREPARES: Final = frozenset({"", "cd", "export", "set", "source", ".", "echo", "mkdir", "sleep"})
_ALIASES: Final = {"i": "install", "add": "install", "t": "test"}


@lru_cache(maxsize=512)
def script_of(script: str) -> Script:
    """The sort of a shell script, by its first ``MAX_SCRIPT`` characters. One of no known sort counts as
    ``act``.
    """
    from ..evidence.commands import read_script  # hundreds of patterns, which no start needs
    from ..evidence.shell import program
    from ..evidence.shell import steps as shell_steps

    script = script[:MAX_SCRIPT]
    commands = [step.command or step.words for step in shell_steps(script)]
    named = [(program(words), words) for words in commands]
    names = {name for name, _ in named}
    actions = read_script(script)
    target = next((a.path for a in actions if isinstance(a, Write)), "")
    writes = bool(target) or any(isinstance(a, Stash) for a in actions)
    looks = not writes and all(_looks(name, words) for name, words in named)
    head = next((_head(name, words) for name, words in named if name not in _PREPARES), "")
    if folder := next((w[1] for n, w in named if n in {"cd", "pushd"} and len(w) > 1), ""):
        head = f"{head} in {folder}"  # the same command in many folders is a batch, not a loop
    sort: Sort = "act"
    if _WAITS & names or "tmux send-keys" in script or not (writes or looks or not _WAITING.search(script)):
        sort = "wait"
    elif not writes and (_PROBES & names or _PROBING.search(script)):
        sort = "probe"
    elif any(isinstance(a, Check) for a in actions):
        sort = "check"
    elif looks:
        sort = "look"
    return Script(sort, head, target)


def _looks(name: str, words: tuple[str, ...]) -> bool:
    if name == "git":
        return next((w for w in words[1:] if not w.startswith("-")), "") in _GIT_LOOKS
    return not name or name in _LOOKS


def _head(name: str, words: tuple[str, ...]) -> str:
    """``npm install`` for ``npm install -D x``."""
    verb = next((w for w in words[1:3] if re.fullmatch(r"[a-z][a-z:-]{0,20}", w)), "")
    return f"{name} {_ALIASES.get(verb, verb)}".strip()


def _sort(tool: str) -> Sort:
    name = tool.lower()
    if name in WRITE_TOOLS or name in SHELL_TOOLS or name in AGENT_TOOLS:
        return "act"
    if name in _BACKGROUND:
        return "wait"
    if _BROWSER.search(tool):  # each press of a key may change the page
        return "wait" if _PRESSES.search(tool) else "probe"
    if name in _LOOK_TOOLS or not looks_up(tool):
        return "look" if name in _LOOK_TOOLS else "check"
    return "probe" if name not in _EXACT and _STATUS.search(tool) else "look"


def _name(tool: str, shown: str) -> str:
    """``bash `npm test```, in at most ``MAX_NAME`` characters, without secrets."""
    tool = _line(tool[:40]) or "a tool"
    line = _line(redact(_line(redact_head(shown, 400)))).replace("`", "'") if shown else ""
    room = MAX_NAME - len(tool) - 3
    return f"{tool} `{line if len(line) <= room else line[: room - 1] + '…'}`" if line else tool


def _line(text: str) -> str:
    return " ".join(text.split())


# Digests: what counts as the same outcome. In doubt two outcomes are different.

_UNIT: Final = r"(?:ns|µs|us|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)"
_NUMBERS: Final = re.compile(
    r"(?<![\w.])(?:"
    r"\d{4}-\d\d-\d\d(?:[T _]\d\d[:_.]\d\d(?:[:_.]\d\d(?:[.,_]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
    rf"|(?:\d{{1,9}}(?:\.\d{{1,9}})?{_UNIT}){{1,4}}\b"
    r"|\d{1,9}(?:\.\d{1,9})? (?:ns|µs|us|ms|seconds?|secs?|s|minutes?|mins?|hours?)\b"
    r"|1\d{9}(?:\d{3})?(?!\d)"
    r")"
)
_NAMED: Final = (  # (a text that must occur, the pattern that is then removed)
    ("\x1b", re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")),
    ("id", re.compile(r"\b[Pp][IiGg]{1,2}[Dd]['\"]?[ =:#]{1,3}\d{1,10}")),
    ("process ", re.compile(r"\bprocess \d{1,10}")),
    ("seed", re.compile(r"\bseed['\"]?[ =:]{1,3}\d{1,20}")),
    ("tmp", re.compile(r"\btmp[._-]?[A-Za-z0-9_]{6,12}\b")),
    ("pytest-", re.compile(r"\bpytest-\d{1,6}\b")),
    ("0x", re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")),
    ("-", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("_", re.compile(r"\b(?:ses|msg|prt|call|toolu|req)_[A-Za-z0-9]{8,64}\b")),
    ("#", re.compile(r"^#\d{1,4} \d{1,6}\.\d{1,4} ", re.MULTILINE)),
    ("(cached)", re.compile(r"\(cached\)")),
    ("127.0.0.1:", re.compile(r"\b127\.0\.0\.1:\d{5}\b")),
)
_WEEKDAY: Final = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"(?: {1,2}\d{1,2})?"
)
_ERROR: Final = re.compile(  # the lines of a failure that tell it from another one
    r"error|fail|denied|not found|no such|could not|couldn't|cannot|can't|fatal|refused|rejected|exception"
    r"|invalid|unable|required|abort|multiple matches|has not been|timed? ?out|not logged|please run",
    re.IGNORECASE,
)


def digest(*parts: str) -> str:
    """16 hex digits for ``parts``; the same in every process."""
    return blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _steady(text: str) -> str:
    """``text`` without what differs from run to run. Other numbers, names and places in files stay."""
    for mark, noise in _NAMED:
        if mark in text:
            text = noise.sub("", text)
    text = _NUMBERS.sub("~", text)
    return _line(_WEEKDAY.sub("", text) if "~" in text else text)


def _output(text: str) -> str:
    """An output without noise. The middle of a very long one is not cleaned."""
    if len(text) <= WHOLE:
        return _steady(text)
    return f"{_steady(text[:HEAD])}\0{text[HEAD:-TAIL]}\0{_steady(text[-TAIL:])}"


def _input(given: Mapping[str, object]) -> str:
    try:
        return json.dumps(given, sort_keys=True, default=str, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):  # mixed keys, a circle, nested too deeply
        return digest(*sorted(f"{k}={v}" for k, v in given.items() if isinstance(v, str | int)), "odd")


def fault_of(text: str) -> str:
    """The lines of an error that say what it was, without noise; empty when they say too little."""
    lines = [line.strip() for line in re.sub("</?tool_use_error>", "", text[:HEAD]).splitlines()]
    told = [line[:400] for line in lines if line and _ERROR.search(line[:400])][:FAULT_LINES]
    fault = _steady("\n".join(told) or next(filter(None, lines), "")[:400])
    return fault if len(fault) >= 8 else ""
