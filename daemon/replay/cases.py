"""Files to cases (a saved case, a labelled case, a session of opencode or Claude Code), and a case judged
outside the daemon: the same flow, policy and decision, and nothing is sent.

The evidence is computed anew, so that a changed rule shows. Reads bytes, never files. A file that can't be
used raises ``UserError`` with the fault, its place and the remedy.
"""

from __future__ import annotations

import secrets
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import log
from ..clock import SystemClock
from ..core.errors import BadReply, UserError
from ..core.guards import Limits, may_judge_messages
from ..core.ports import drive
from ..core.session import Session
from ..core.transcript import Transcript
from ..core.verdict import JudgedBy
from ..engine.calls import Calls
from ..hosts.claude_code.transcript import is_transcript, transcript_of
from ..hosts.codex import rollout as codex
from ..hosts.opencode.past import parse_export
from ..judge.case import PROMPT_TOKENS, Case, make_case
from ..judge.decide import Decision, Round, decide, skip
from ..judge.flow import Opinion, SecondLook, always, judge
from ..store.ledger import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.llm import Prompt, Reply
    from ..core.ports import Provider
    from ..core.question import Texts

Expect = Literal["complete", "incomplete", "awaiting_user"]
Json = dict[str, Any]
T = TypeVar("T")
VERSION: Final = 1
FORMS: Final = (
    "a case that the daemon saved (<folder>/.reflection/<session>_<time>.json), a labelled case "
    "(see tests/data/judge/README.md), what `opencode export SESSION` prints, or a transcript of Claude Code "
    "(~/.claude/projects/<folder>/<session>.jsonl)"
)


class Label(Struct, frozen=True):
    """A person's label on a case: the right verdict. ``by``: the labeller."""

    expect: Expect
    why: str = ""
    by: str = ""


class Loaded(Struct, frozen=True):
    """A case that can be judged, and what the file says about it besides. ``decided``: what a guard says of a
    turn that the daemon would not have judged either.
    """

    case: Case
    label: Label | None = None
    name: str = ""
    split: str = ""
    decided: Decision | None = None


def load(data: bytes, name: str, templates: Callable[[str], Texts]) -> Loaded:
    """The case in ``data``; ``name`` is what errors call it. ``templates`` gives the prompts in force for the
    session's directory: the file's own are never used.

    Each load gets a fresh nonce: the one that fenced the text before may be in the text by now.
    """
    if codex.is_rollout(data):
        return of_transcript(codex.transcript_of(data, PurePath(name).stem), name, templates)
    if is_transcript(data):
        return of_transcript(transcript_of(data, PurePath(name).stem), name, templates)
    found = _json(data, name)
    fence = secrets.token_hex(8)
    if isinstance(found, dict) and "version" in found:
        if found["version"] != VERSION:
            version = str(found["version"])[:20]
            raise UserError(f"{name}: a case of version {version}; this reflectd reads version {VERSION}")
        if "case" in found:
            return _saved(found, name, templates, fence)
        if "transcript" in found:
            return _labelled(found, name, templates, fence)
    elif isinstance(found, list) or (isinstance(found, dict) and "messages" in found):
        try:
            transcript = parse_export(found)
        except BadReply as e:
            raise UserError(f"{name}: not an exported session: {e}") from None
        return Loaded(_make(transcript, name, templates, fence), name=name)
    raise UserError(f"{name} is none of these: {FORMS}")


def of_transcript(
    transcript: Transcript, name: str, templates: Callable[[str], Texts], project: str = ""
) -> Loaded:
    """The case of a session's last turn, guarded as in the daemon. Raises ``UserError`` if none is over."""
    case = _make(transcript, name, templates, secrets.token_hex(8), project=project)
    session, limits = Session(id=case.session, task=case.task, turn=case.turn), Limits()
    no = may_judge_messages(session, transcript, limits)
    decided = skip(session, case.turn, no, case.at, limits) if no is not None else None
    if no is not None and decided is None:
        raise UserError(f"{name}: nothing to judge: {no.reason}")
    return Loaded(case, name=name, decided=decided)


def _saved(found: Json, name: str, templates: Callable[[str], Texts], nonce: str) -> Loaded:
    """``.reflection/<session>_<epoch ms>.json``, with a label if a person gave it one."""
    stored = found["case"]
    if not isinstance(stored, dict):
        raise UserError(f"{name}: `case` is not an object")
    filled = {**stored, "templates": templates(""), "nonce": nonce, "evidence": {}}
    case = _convert(filled, Case, name, "case")
    if case.transcript is None:
        raise UserError(f"{name}: `case.transcript` is missing, so there is nothing to judge by")
    case = _make(
        case.transcript,
        name,
        templates,
        nonce,
        at=case.at,
        open_items=case.open_items,
        project=case.project,
        prompt_tokens=case.prompt_tokens,
    )
    return Loaded(case, _label(found, name), name, _text(found, "split"))


def _labelled(found: Json, name: str, templates: Callable[[str], Texts], nonce: str) -> Loaded:
    transcript = _convert(found["transcript"], Transcript, name, "transcript")
    case = _make(transcript, name, templates, nonce, project=_text(found, "project"))
    return Loaded(case, _label(found, name), name, _text(found, "split"))


def _label(found: Json, name: str) -> Label | None:
    return None if found.get("label") is None else _convert(found["label"], Label, name, "label")


def _make(
    transcript: Transcript,
    name: str,
    templates: Callable[[str], Texts],
    nonce: str,
    *,
    at: int = 0,
    open_items: tuple[str, ...] = (),
    project: str = "",
    prompt_tokens: int = PROMPT_TOKENS,
) -> Case:
    task, turn = transcript.task, transcript.turn
    if task is None:
        raise UserError(f"{name}: no message that a person typed is in it, so there is nothing to judge by")
    if turn is None:
        raise UserError(f"{name}: the agent has not answered in it, so there is nothing to judge")
    return make_case(
        transcript,
        at=at or turn.completed or turn.at,
        nonce=nonce,
        templates=templates(transcript.directory),
        open_items=open_items,
        project=project,
        prompt_tokens=prompt_tokens,
    )


def _json(data: bytes, name: str) -> object:
    if not data.strip():
        raise UserError(f"{name} is empty")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        said = "nested too deeply" if isinstance(e, RecursionError) else str(e)
        raise UserError(f"{name} is not valid JSON: {said}") from None


def _convert(value: object, form: type[T], name: str, where: str) -> T:
    try:
        return msgspec.convert(value, form)
    except (msgspec.ValidationError, RecursionError) as e:
        said = "nested too deeply" if isinstance(e, RecursionError) else str(e).replace("`$", f"`{where}")
        raise UserError(f"{name}: `{where}` can't be read: {said}") from None


def _text(found: Json, key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


class Replayed(Struct, frozen=True):
    case: Case
    opinion: Opinion
    decision: Decision
    calls: tuple[Entry, ...]


async def replay(
    case: Case,
    *providers: Provider,
    timeout_s: float = 180.0,
    limits: Limits | None = None,
    second_look: SecondLook = always,
) -> Replayed:
    """Judge ``case`` with the first of ``providers`` that answers. A failure ends unscored."""
    clock, entries = SystemClock(), list[Entry]()
    calls = Calls(providers, clock, log.get("replay"), entries.append)
    limits = limits or Limits()

    async def ask(prompt: Prompt, left_s: float) -> Reply:
        return await calls.ask(prompt, left_s, limits)

    started = clock.monotonic()
    opinion = await drive(judge(case, second_look=second_look), ask, clock, timeout_s)
    if not opinion.provider:
        opinion = replace(opinion, provider=providers[0].name)
    ms = int((clock.monotonic() - started) * 1000)
    session = Session(id=case.session, task=case.task, turn=case.turn, phase="judging")
    decision = decide(Round(session, case, limits, case.at, JudgedBy(ms=ms)), opinion)
    return Replayed(case, opinion, decision, tuple(entries))
