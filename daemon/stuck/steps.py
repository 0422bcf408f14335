"""A session as steps: one for each finished tool call and each text, small enough to compare thousands of
them.

Owns how a step gets its digests, its sort and its name. ``signals`` says whether steps form a loop. Never
raises: a call that can't be read becomes a step that equals no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from ..core.evidence import ending
from ..core.redact import redact, redact_head
from ..core.refusals import looks_up
from ..evidence.calls.actions import Check, Stash, Write
from ..evidence.calls.commands import read_script
from ..evidence.calls.prefixes import unwrap
from ..evidence.calls.shell import steps as shell_steps
from ..evidence.calls.tools import AGENT_TOOLS, SHELL_TOOLS, TODO_TOOLS, WRITE_TOOLS
from .digests import digest, fault_of, figures, of_input, of_output, sketch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.transcript import Message, ToolCall, Transcript

# What sort of thing a shell script does, so that a loop can be told from waiting and from work.
#
# It reads the script's text only. A script of no known sort counts as ``act``. Results are cached, because
# agents repeat scripts.

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
    commands = [unwrap(step.words)[0] or step.words for step in shell_steps(script)]
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


MAX_NAME: Final = 120
REPEATS: Final = 6  # equal sentences at the end of one text that make a loop
MAX_TAIL: Final = 8_000
SHORTEST: Final = 20  # characters of a sentence that counts

_SILENT: Final = frozenset({"description", "timeout"})  # arguments that don't change what a shell call does
_PATHS: Final = ("filePath", "file_path", "path", "notebook_path", "filename", "file")
_SHOWN: Final = ("pattern", "query", "url", "name", "title", "description", "subject", "prompt")
_PLANS: Final = re.compile(
    r"(?:^|_)(?:think|thinking|sequentialthinking|todo_?write|plan)(?:_|$)", re.IGNORECASE
)
_BROWSER: Final = re.compile(r"browser|playwright|puppeteer|chrome|screenshot|computer", re.IGNORECASE)
_ACTS_ON: Final = re.compile(
    r"click|press|key|scroll|type|fill|drag|hover|evaluate|wait|tab|back", re.IGNORECASE
)
_STATUS: Final = re.compile(
    r"status|state|job|run|build|deploy|poll|progress|queue|log|check|pipeline|workflow|health", re.IGNORECASE
)
_BACKGROUND: Final = frozenset({"bashoutput", "taskoutput", "agentoutput", "monitor", "wait", "sleep"})
_OWN_LOOKS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "read grep glob list ls webfetch websearch notebookread codesearch lsp view skill toolsearch"
    ).split()
)
_AGAIN: Final = re.compile(  # the text announces another round, so the agent has not ended
    r"\b(?:let me|let's|i'll|i will|i'm going to|i am going to)\b[^.!?\n]{0,80}"
    r"\b(?:again|once more|one more|another)\b[^\n]{0,60}$",
    re.IGNORECASE,
)
_EXACT: Final = frozenset(
    {"read", "grep", "glob", "list", "ls", "notebookread"}
)  # their outputs differ only when the outcome does
_BREAK: Final = re.compile(r"(?<=[.!?…])[ \t]+|\n+")


@dataclass(frozen=True, slots=True)
class Step:
    """One finished call, or one text.

    ``call``: digest of the tool and its arguments. ``result``: digest of the outcome without times and the
    like. ``what``: its name for people, in one line. ``target``: the file that it writes or reads, if it
    names one. ``size``: characters of input and outcome. ``fault``: for a failed call, a digest of the tool,
    of what it was used on and of the error. ``words``: the words of a text or a plan. ``closes``: this text
    ends a turn, with a report or a question.
    """

    kind: Literal["call", "text"]
    tool: str
    call: str
    result: str
    failed: bool = False
    writes: bool = False
    what: str = ""
    target: str = ""
    size: int = 0
    sort: Sort = "act"
    fault: str = ""
    words: frozenset[int] = frozenset()
    closes: bool = False


def step_of(call: ToolCall) -> Step:
    """The step of a finished call."""
    name = call.tool.lower()
    shell = name in SHELL_TOOLS
    command = _text(call, "command", "cmd") if shell else ""
    script = script_of(command) if command else Script(_sort(call.tool))
    said = f"{call.output}\n{call.error}" if call.error else call.output
    failed = call.status == "error" or call.exit not in {0, None}
    plan = script.sort == "plan"
    target = script.target or _text(call, *_PATHS)
    if shell:  # another space makes no other command; another folder does
        given = digest(" ".join(command.split()), of_input(call.input, _SILENT | {"command", "cmd"}))
    else:
        given = of_input(call.input)
    outcome = said if name in _EXACT else of_output(said)
    fault = fault_of(call.error or call.output) if failed else ""
    return Step(
        kind="call",
        tool=call.tool,
        call=digest(name, given),
        result=_progress(call) if plan and not failed else digest(outcome, str(call.exit), str(call.cut)),
        failed=failed,
        writes=not failed and (script.writes or name in WRITE_TOOLS),
        what=_named(call, command, target),
        target=target,
        size=len(said) + sum(len(v) for v in call.input.values() if isinstance(v, str)),
        sort=script.sort,
        fault=digest(name, script.head or _used_on(call, target), _text(call, "workdir", "cwd"), fault)
        if fault
        else "",
        words=sketch(_inside(call.input)) if plan else frozenset(),
    )


def step_from_digests(
    tool: str, call: str, result: str, *, failed: bool, writes: bool, sort: Sort | None = None
) -> Step:
    """The step of a call of which only digests came: enough to suspect a loop, not enough to name it.

    Without the command and its words there are more false alarms, and the loop has another key. So read the
    transcript and ask ``loop_in`` before telling anybody.
    """
    return Step(
        kind="call",
        tool=tool,
        call=call,
        result=result,
        failed=failed,
        writes=writes,
        what=tool[:MAX_NAME],
        sort=sort or _sort(tool),
        fault=digest(tool.lower(), result) if failed else "",
    )


def steps(transcript: Transcript) -> tuple[Step, ...]:
    """The steps since a person last typed or the last compaction, oldest first. After a compaction the agent
    must read again what it knew. Calls that still run are left out.
    """
    return last_steps(transcript, len(transcript.messages) * 1000 + 1000)


def last_steps(transcript: Transcript, most: int) -> tuple[Step, ...]:
    """The last ``most`` of ``steps``; the others are not computed."""
    found: list[Step] = []
    for message in reversed(transcript.work):
        if message.human or message.summary or len(found) >= most:
            break
        if message.role == "assistant":
            found.extend(reversed([*_said(message), *_called(message.calls, most)]))
    return tuple(reversed(found[:most]))


def _called(calls: Sequence[ToolCall], most: int) -> Iterator[Step]:
    done = [c for c in calls if c.status in {"completed", "error"}]
    return map(step_of, done[-most:])


def _said(message: Message) -> list[Step]:
    """The steps of a message's text: one, or one for each repetition when the text repeats itself."""
    text = message.text.strip()
    if not text:
        return []
    unit, times = _repeated(text)
    if times:
        return [_text_step(unit)] * times
    over = message.finish == "stop" and not message.calls and not message.error
    return [_text_step(text, closes=over and _accounts(text))]


def _accounts(text: str) -> bool:
    """Whether a text ends with a report or a question and does not announce another round."""
    return ending(text, "stop") in {"statement", "question"} and not _AGAIN.search(text[-300:])


def _text_step(text: str, *, closes: bool = False) -> Step:
    line = _line(redact(_line(redact_head(text, 400))))
    return Step(
        "text",
        "",
        digest("text", _line(text[:MAX_TAIL]).casefold()),
        figures(text),
        what=line if len(line) <= MAX_NAME else line[: MAX_NAME - 1] + "…",
        size=len(text),
        sort="text",
        words=sketch(text),
        closes=closes,
    )


def _repeated(text: str) -> tuple[str, int]:
    """What a text repeats at its end, and how often. Code blocks, quotes and tables don't count."""
    if len(text) < REPEATS * SHORTEST:
        return "", 0
    units, fenced = [], False
    for raw in _BREAK.split(text[-MAX_TAIL:]):
        unit = raw.strip()
        if unit.startswith(("```", "~~~")):
            fenced = not fenced
            units.append("")  # ends a repetition that stands before the code block
        elif unit and not fenced and not unit.startswith(("|", ">")) and not raw.startswith(("    ", "\t")):
            units.append(unit)
    for end in (len(units), len(units) - 1):  # the last one may be cut off
        for period in (1, 2, 3):
            times = _times(units, end, period)
            if times >= REPEATS:
                return " ".join(units[end - period : end]), min(times, 100)
    return "", 0


def _times(units: list[str], end: int, period: int) -> int:
    """How often the last ``period`` units before ``end`` are repeated in a row."""
    if end < period or sum(map(len, units[end - period : end])) < SHORTEST:
        return 0
    i = end - 1
    while i >= period and units[i] == units[i - period]:
        i -= 1
    return (end - 1 - i + period) // period


def _sort(tool: str) -> Sort:
    name = tool.lower()
    if name in WRITE_TOOLS or name in SHELL_TOOLS or name in AGENT_TOOLS:
        return "act"
    if name in _BACKGROUND:
        return "wait"
    if _PLANS.search(tool):
        return "plan"
    if _BROWSER.search(tool):  # each press of a key may change the page
        return "wait" if _ACTS_ON.search(tool) else "probe"
    if name in _OWN_LOOKS:
        return "look"
    if looks_up(tool):
        return "probe" if _STATUS.search(tool) else "look"
    return "other"


def _progress(call: ToolCall) -> str:
    """How far a todo list is: how many entries have ended and begun. Other words in it make no difference."""
    todos = call.input.get("todos")
    if call.tool.lower() not in TODO_TOOLS or not isinstance(todos, list):
        return ""
    ended = sum(isinstance(t, dict) and t.get("status") in {"completed", "cancelled"} for t in todos)
    begun = sum(isinstance(t, dict) and t.get("status") == "in_progress" for t in todos)
    return f"{ended} ended, {begun} begun"


def _inside(value: object, depth: int = 0) -> str:
    """All texts in an argument, without ids, statuses and names of fields."""
    if isinstance(value, str):
        return value[:2000]
    if depth > 4:
        return ""
    if isinstance(value, dict):
        inner = [
            v for k, v in list(value.items())[:50] if k not in {"status", "priority", "id", "activeForm"}
        ]
    elif isinstance(value, list | tuple):
        inner = list(value[:50])
    else:
        return ""
    return " ".join(t for v in inner if (t := _inside(v, depth + 1)))


def _text(call: ToolCall, *names: str) -> str:
    for name in names:
        value = call.input.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _used_on(call: ToolCall, target: str) -> str:
    """What the call was used on: the file, or the site of its address."""
    url = _text(call, "url")
    return target or "/".join(url[:300].split("/", 3)[:3])


def _named(call: ToolCall, command: str, target: str) -> str:
    shown = command or target or _text(call, *_SHOWN)
    line = _line(redact(_line(redact_head(shown, 400)))) if shown else ""
    room = MAX_NAME - len(call.tool[:40]) - 3
    line = line if len(line) <= room else line[: room - 1] + "…"
    tool = _line(call.tool[:40]) or "a tool"
    return f"{tool} `{line.replace('`', chr(39))}`" if line else tool


def _line(text: str) -> str:
    return " ".join(text.split())
