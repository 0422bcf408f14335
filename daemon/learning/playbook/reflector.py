"""The reflector, what was the playbook worth in this session, and the extraction, new points and ratings in
one call: the case that each sees, the prompt, and the reply.

The daemon's reflector sees a task in at most ``REFLECTOR_TOKENS`` (``of_task``): how it ended, the person's
words, the agent's last ones, rows, log and changes, and the points that the session was given. The library's
sees all messages and the whole playbook (``of_messages``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...core.cuts import head_and_tail, tokens, within
from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt, Reply, Tier
from ...core.reply import BadForm, Talk, as_quoted, wanted_object
from ...core.template import divided
from ...core.transcript import Model
from .points import TAGS, line, lines_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ...core.evidence import Act, Evidence, FileChange
    from .points import Playbook, Point

# One question to a model about a playbook: the prompt, its one answer, and what could be read of it.
#
# A flow is ``Generator[Prompt, Reply, Outcome]`` with one call. A reply that can't be used, or a model that
# does not answer, ends with an empty output and the reason; nothing is asked twice, because learning must
# stay cheap. What is of another form is left out, and what is missing is empty: a part of an answer is
# worth something here.

Json = dict[str, Any]
Flow = Generator[Prompt, Reply, "Outcome"]
MAX_TOKENS: Final = 3_000  # of an answer
NONE: Final = "(none)"
TEXT: Final[dict[str, object]] = {"type": "string"}
_TOKEN: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_FENCE: Final = "```"


@dataclass(frozen=True, slots=True)
class Question:
    """How something is asked. ``nonce`` fences its untrusted text. ``template``: the prompt's. ``strict``:
    the reply must echo the nonce, as in the daemon. ``asked``: a person asked for it, which says what it is
    paid from.
    """

    nonce: str
    template: str
    session: str = ""
    model: Model | None = None
    tier: Tier = "fast"
    strict: bool = True
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A text that waited and is shown to be true by a row, a line of the log, or the person's words."""

    name: str
    cites: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a flow ended. ``output``: the plain dict of its form, empty when ``why`` says what failed.

    ``confirmed``: reflector only.
    """

    output: Json
    why: str = ""
    confirmed: tuple[Confirmed, ...] = ()
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return bool(self.why)


def prompt_of(
    question: Question, purpose: str, values: Mapping[str, str], schema: dict[str, object]
) -> Prompt:
    """First the rules, the same at each call, then the data."""
    system, text = divided(question.template, values)
    return Prompt(
        purpose=f"asked.{purpose}" if question.asked else purpose,
        tier=question.tier,
        system=system,
        text=text,
        session=question.session,
        model=question.model,
        nonce=question.nonce,
        schema=schema,
        max_tokens=MAX_TOKENS,
    )


Read = Callable[[Mapping[str, Any]], tuple[Json, tuple[Confirmed, ...]]]


def ask(prompt: Prompt, question: Question, keys: tuple[str, ...], read: Read) -> Flow:
    """One call and its answer. ``read``: the object of the reply → the output and what it confirms."""
    talk, nothing = Talk(), read({})[0]
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Outcome(nothing, f"no model answered: {e}")
    if reply is not None:
        try:
            output, confirmed = read(answer(reply, question.nonce, *keys, strict=question.strict))
        except BadReply as e:
            talk.broke(reply, prompt, e)
        else:
            return Outcome(output, "", confirmed, tuple(talk.replies))
    return Outcome(nothing, talk.why, (), tuple(talk.replies), tuple(talk.bad))


def answer(reply: Reply, nonce: str, *keys: str, strict: bool) -> Mapping[str, Any]:
    """The object in the reply. ``strict``: a reply in prose must echo the nonce and have all ``keys``.
    Raises ``BadReply``.
    """
    if strict:
        return wanted_object(reply, nonce, *keys, what="playbook")
    found = reply.data if reply.data is not None else extract_json(reply.text)
    if not isinstance(found, dict):
        raise BadReply("the reply holds no JSON object", raw=reply.text)
    return found


def text_in(data: Mapping[str, Any], name: str) -> str:
    """The field as a text, another value as JSON."""
    value = data.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def dicts_in(data: Mapping[str, Any], name: str) -> list[Json]:
    """The objects in a field that is a list."""
    value = data.get(name)
    return [dict(v) for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def closed(**properties: object) -> dict[str, object]:
    """The schema of a closed object whose fields are all required: what strict structured output wants."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(item: object) -> dict[str, object]:
    """The schema of a list."""
    return {"type": "array", "items": item}


# --- JSON in prose, for the library: in the daemon a reply must echo its nonce, because prose may hold an ---
# --- object that was only quoted ----------------------------------------------------------------------------


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The first JSON value that one of these finds, in this order and in linear time; None when none does
    (REQ-REFL-008).

    1. a fence with the tag ``json``; 2. a fence without a tag; 3. from a ``{`` to the ``}`` that closes it;
    4. the whole text.
    """
    for candidates in (_fenced(text, "json"), _fenced(text, ""), _balanced(text), iter((text,))):
        for candidate in candidates:
            try:
                found = json.loads(candidate.strip())
            except (ValueError, RecursionError):
                continue
            if found is not None:
                return found
    return None


def _fenced(text: str, tag: str) -> Iterator[str]:
    """What stands between fences that open with ``tag``, one after the other."""
    at = text.find(_FENCE)
    while at >= 0:
        start = at + len(_FENCE)
        end = text.find(_FENCE, start)
        if end < 0:
            return
        head = text[start : start + len("json")]
        if tag and head.lower() == tag:
            yield text[start + len(tag) : end]
        elif not tag and head.lower() != "json":
            yield text[start:end]
        at = text.find(_FENCE, end + len(_FENCE))


def _balanced(text: str) -> Iterator[str]:
    """Each outermost part in braces. Braces in quoted texts don't count."""
    depth, start, quoted = 0, 0, False
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if depth and kind == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif kind == "{":
            if not depth:
                start = token.start()
            depth += 1
        elif kind == "}" and depth:
            depth -= 1
            if not depth:
                yield text[start : token.end()]


REFLECTOR_TOKENS: Final = 10_000
ROW_CHARS: Final = 400
WORDS_CHARS: Final = 4_000  # of one message of the person
QUOTE_WORDS: Final = 5
MAX_TEXT: Final = 8_000
HEADING: Final = 12  # tokens of a heading and of the line ends around it, more than they are
_TAG: Final[dict[str, object]] = {"type": "string", "enum": list(TAGS)}
REFLECTION: Final = closed(
    nonce=TEXT,
    analysis=TEXT,
    bullet_tags=listed(closed(name=TEXT, tag=_TAG, rationale=TEXT)),
    confirmed=listed(closed(name=TEXT, cites=TEXT)),
)
EXTRACTION: Final = closed(
    nonce=TEXT,
    new_key_points=listed(TEXT),
    evaluations=listed(closed(name=TEXT, rating=_TAG)),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One session to learn from.

    ``quarantined``: the points that wait for confirmation, ``waiting`` their names. ``ids``: rows and lines
    of the log that can be cited, ``words``: what the person typed; a confirmation must name one of them.
    """

    question: Question
    points: str
    transcript: str
    cited: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    waiting: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


# --- the questions -----------------------------------------------------------------------------------------


def reflect(case: Case) -> Flow:
    """What was the playbook worth in this session? (REQ-REFL-003, REQ-REFL-006)

    ``{"analysis": text, "bullet_tags": [{"name", "tag", "rationale"}]}`` (REQ-REFL-004).
    """
    values = {**_values(case), "cited_ids": ", ".join(f"[{name}]" for name in case.cited) or NONE}
    if "{quarantined}" in case.question.template:
        values["quarantined"] = "\n".join(case.quarantined) or NONE

    def read(data: Mapping[str, Any]) -> tuple[Json, tuple[Confirmed, ...]]:
        output = {"analysis": text_in(data, "analysis"), "bullet_tags": dicts_in(data, "bullet_tags")}
        return output, confirmations(data, case)

    return (
        yield from ask(
            prompt_of(case.question, "reflect", values, REFLECTION),
            case.question,
            ("analysis", "bullet_tags"),
            read,
        )
    )


def extract(case: Case) -> Flow:
    """Which new points does the session teach, and which does it rate?

    ``{"new_key_points": [text or {"text", "section"}], "evaluations": [{"name", "rating"}]}``.
    """

    def read(data: Mapping[str, Any]) -> tuple[Json, tuple[Confirmed, ...]]:
        new = data.get("new_key_points")
        points = [p for p in new if isinstance(p, str | Mapping) and p] if isinstance(new, list) else []
        return {"new_key_points": points, "evaluations": dicts_in(data, "evaluations")}, ()

    prompt = prompt_of(case.question, "keypoints", _values(case), EXTRACTION)
    return (yield from ask(prompt, case.question, ("new_key_points", "evaluations"), read))


def _values(case: Case) -> dict[str, str]:
    return {"nonce": case.question.nonce, "transcript": case.transcript, "playbook": case.points}


def confirmations(data: Mapping[str, Any], case: Case) -> tuple[Confirmed, ...]:
    """The points that wait and that the reply confirms with something that is in this case."""
    found: dict[str, Confirmed] = {}
    for item in dicts_in(data, "confirmed"):
        name, cites = item.get("name"), item.get("cites")
        if isinstance(name, str) and isinstance(cites, str) and name in case.waiting and _has(case, cites):
            found.setdefault(name, Confirmed(name, cites[:MAX_TEXT]))
    return tuple(found.values())


def _has(case: Case, cites: str) -> bool:
    if cites.strip(" []().") in case.ids:
        return True
    wanted = as_quoted(cites)
    return len(wanted.split()) >= QUOTE_WORDS and any(wanted in as_quoted(text) for text in case.words)


# --- the case of a transcript, for the library -------------------------------------------------------------


def of_messages(
    question: Question, messages: Iterable[object], playbook: Playbook, cited: Iterable[str]
) -> Case:
    """The case of a transcript as the library is given it: nothing is cut."""
    said = "\n\n".join(f"{role}: {text}" for role, text in map(_said, messages) if text)
    return Case(question, lines_of(playbook) or NONE, said or "(nothing was said)", tuple(cited))


def _said(message: object) -> tuple[str, str]:
    """Role and text of a message. Blocks that are no texts (calls, results) are shown as JSON."""
    if not isinstance(message, Mapping):
        return "", ""
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else [content]
    shown = (" ".join(texts_of([b])) or json.dumps(b, ensure_ascii=False, default=str) for b in blocks if b)
    return str(message.get("role", "?")), "\n".join(text for text in shown if text)


# --- the case of a task that is over -----------------------------------------------------------------------


def of_task(
    question: Question,
    *,
    requests: Sequence[str],
    final: str,
    evidence: Evidence,
    ended: str,
    given: Sequence[Point],
    cited: Collection[str] = (),
    quarantined: Sequence[Point] = (),
    largest: int = REFLECTOR_TOKENS,
) -> Case:
    """The case of a task that is over, its prompt in at most ``largest`` tokens.

    ``requests``: what the person typed. ``ended``: how it ended, in words (verdict, reward, what was
    missing). ``given``: the points that the session was given; those in ``cited`` are marked.
    """
    room = largest - tokens(question.template) - tokens(" ".join(cited)) - 10 * HEADING
    shown = [(p["name"] not in cited, f"(cited) {line(p)}" if p["name"] in cited else line(p)) for p in given]
    blocks, left = dict[str, str](), room
    # the share of the room at most; the changes have what is left
    for name, share, items in (
        ("points", 0.3, shown),
        ("quarantined", 0.1, [(0, line(p)) for p in quarantined]),
        ("How it ended", 0.05, [(0, ended)]),
        ("What the person typed", 0.2, _requests(requests)),
        ("The agent's last words", 0.1, [(0, final)]),
        ("Facts that were computed from the calls", 0.1, _rows(evidence)),
        ("Log: every call in order", 0.4, _log(evidence.log)),
        ("Changes by file", 1.0, _changes(evidence.files)),
    ):
        most = left if name == "Changes by file" else min(left, int(room * share))
        blocks[name] = kept(items, most)
        left -= tokens(blocks[name]) if blocks[name] else 0
    points, waiting = blocks.pop("points"), blocks.pop("quarantined")
    return Case(
        question,
        points or NONE,
        "\n\n".join(f"{name}:\n{text or NONE}" for name, text in blocks.items()),
        tuple(cited),
        quarantined=tuple(waiting.splitlines()),
        waiting=frozenset(p["name"] for p in quarantined),
        ids=frozenset({row.id for row in evidence.rows} | {act.id for act in evidence.log if act.id}),
        words=tuple(requests),
    )


def _requests(requests: Sequence[str]) -> list[tuple[int, str]]:
    """The messages by number, further lines indented; the first and the last are kept first."""
    shown = ("\n  ".join(head_and_tail(text, WORDS_CHARS).splitlines()) for text in requests)
    found = [f"M{i}: {text}" for i, text in enumerate(shown, 1)]
    return [(0 if i in {0, len(found) - 1} else 1, text) for i, text in enumerate(found)]


def _rows(evidence: Evidence) -> list[tuple[int, str]]:
    return [
        (
            0 if row.open or row.outcome == "failed" else 1,
            f"{row.id} [{f'{row.kind} {row.outcome}'.strip()}] {head_and_tail(row.text, ROW_CHARS)}",
        )
        for row in evidence.rows
    ]


def _log(log: Sequence[Act]) -> list[tuple[int, str]]:
    return [(act.rank, "\n    ".join((f"{act.id} {act.text}".strip(), *act.said))) for act in log]


def _changes(files: Sequence[FileChange]) -> list[tuple[int, str]]:
    heads = [(0, f"{f.path} ({f.how}, +{f.added} -{f.removed})") for f in files]
    bodies = [(1, "\n".join(f"    {text}" for text in f.lines)) for f in files]
    return [item for pair in zip(heads, bodies, strict=True) for item in pair if item[1]]


def kept(items: Sequence[tuple[int, str]], most: int) -> str:
    """The items of the lowest ranks that fit into ``most`` tokens, the later ones of a rank first, in their
    order; and how many were left out. One item that is too long alone is cut.
    """
    if len(items) == 1:
        return within(items[0][1], most) if most > 0 else ""
    note = tokens(_left_out(len(items)))
    order = sorted(range(len(items)), key=lambda i: (items[i][0], -i))
    fit, room = set[int](), most - note
    for i in order:
        cost = tokens(f"{items[i][1]}\n")
        if cost <= room:
            fit.add(i)
            room -= cost
    shown = [text for i, (_, text) in enumerate(items) if i in fit]
    if (gone := len(items) - len(fit)) and most > note:
        shown.append(_left_out(gone))
    return "\n".join(shown)


def _left_out(number: int) -> str:
    return f"({number} left out: no room)"
