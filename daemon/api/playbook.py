"""The playbook as a library: ``from reflectd.api.playbook import …``. Plain dicts, no daemon (docs/api.md).

An unusable item (a tag for a missing point, a wrong operation) is one line on stderr and left out. The
functions that ask a model never raise: without an answer their result is empty.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from ..core.errors import UserError
from ..core.given import CITED
from ..core.policy import BASE_DELAY, MAX_RETRIES
from ..learning.playbook import points
from ..learning.playbook.points import SECTION_SLUGS
from .asking import Asking, nonce, tell, template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


__all__ = [
    "BASE_DELAY",
    "CITED",
    "MAX_RETRIES",
    "SECTION_SLUGS",
    "apply_bullet_tags",
    "apply_structured_operations",
    "extract_cited_ids",
    "extract_json",
    "extract_keypoints",
    "format_playbook",
    "generate_keypoint_name",
    "load_playbook",
    "load_template",
    "prune_harmful",
    "run_curator",
    "run_deduplication",
    "run_reflector",
    "save_diagnostic",
    "save_playbook",
    "update_playbook_data",
]

Json = dict[str, Any]
Name = Literal["reflector", "curator", "keypoints"]
_TEXTS = {"text": "text", "thinking": "thinking", "reasoning": "text"}
"""Kind of a block of content → the key of its text. A tool's input and output are nobody's citation."""
_told: set[tuple[str, str]] = set()  # files that are no playbooks, or were read in another form: once each


# --- files -------------------------------------------------------------------------------------------


def load_playbook(path: str | Path) -> Json:
    """The playbook in the file, in today's form: ``{"version", "last_updated", "sections"}``.

    An empty one when the file is missing or no playbook. A file that is no playbook, points with another name
    and entries that are left out are told once on stderr. Never raises.
    """
    from ..learning.playbook.project_playbook import load

    loaded = load(path)
    if (str(path), loaded.mark) not in _told:
        _told.add((str(path), loaded.mark))
        tell([f"{loaded.problem}; it is kept aside at the next save"] if loaded.problem else [])
        tell(f"{path}: {line}" for line in loaded.told)
    return loaded.playbook


def save_playbook(playbook: Json, path: str | Path) -> None:
    """Write the playbook, all or nothing, with ``last_updated`` set to now (UTC), in ``playbook`` too.

    A file that was no playbook is kept as ``<name>.corrupt-<ms>``. Raises ``Unavailable`` when the file
    system refuses, ``ValueError`` and ``TypeError`` when ``playbook`` is no playbook, JSON can't hold it, or
    it would be too large to be loaded (64 MiB); the file stays as it was then.
    """
    from ..learning.playbook.project_playbook import save

    now = time.time_ns() // 1_000_000
    whole, told = points.migrated(playbook)
    saved_at = datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="microseconds")
    aside = save(path, whole | {"last_updated": saved_at}, now)
    playbook["last_updated"] = saved_at
    tell(f"{path}: {line}" for line in told)
    if aside is not None:
        tell([f"{path} was no playbook; it is kept as {aside.name}"])


def load_template(name: str) -> str:
    """The text of a prompt, such as ``"reflector.txt"`` (also without ``.txt``): the person's own, else the
    one that comes with reflectd. Raises ``UserError`` when there is no such prompt.
    """
    return template(name, Asking())


def save_diagnostic(content: str, name: str) -> str | None:
    """Keep a text for a person to look at, without secrets, in the folder ``diagnostics`` of the state folder
    (0600; the newest 50 stay). Returns the path, None when it can't be written. Never raises.
    """
    import os

    from ..log import save_diagnostic as save
    from ..paths import resolve
    from ..redact import redact

    try:
        state_dir = Asking().settings().daemon.state_dir
        folder = resolve(os.environ, state_dir=state_dir, connects=False).diagnostics
    except UserError:
        return None
    kept = save(folder, f"{name}-{time.time_ns() // 1_000_000}", redact(str(content)))
    return None if kept is None else str(kept)


# --- values ------------------------------------------------------------------------------------------


def extract_cited_ids(messages: Iterable[object]) -> list[str]:
    """The ids in brackets in the assistant's messages, each once, in order (REQ-REFL-001). Content is a text
    or a list of blocks. Other items are passed over.
    """
    said = (m.get("content") for m in messages if isinstance(m, Mapping) and m.get("role") == "assistant")
    return list(
        dict.fromkeys(name for content in said for text in _texts(content) for name in CITED.findall(text))
    )


def _texts(content: object) -> Iterator[str]:
    """The words of a message's content: the text itself, or the texts and thoughts of its blocks."""
    for block in content if isinstance(content, list | tuple) else (content,):
        text = block
        if isinstance(block, Mapping) and block is not content:
            text = block.get(_TEXTS.get(str(block.get("type", "text")), ""))
        if isinstance(text, str):
            yield text


def format_playbook(playbook: Json) -> str:
    """The text for an agent: the points under their sections, in the template ``playbook.txt``. "" without
    points.
    """
    lines = points.lines_of(_usable(playbook))
    return load_template("playbook.txt").replace("{key_points}", lines) if lines else ""


def generate_keypoint_name(section_entries: Iterable[Any], slug: str) -> str:
    """The next name in a section: one above the highest that begins with ``slug``, such as ``pat-004``."""
    names = (e.get("name") for e in section_entries if isinstance(e, dict))
    taken = [name for name in names if isinstance(name, str)]
    return points.Names(taken, points.highest(taken)).take(slug)


def apply_bullet_tags(playbook: Json, bullet_tags: Any) -> Json:  # noqa: ANN401 - what a model said
    """Count the tags (``{"name", "tag", "rationale"}``), each once, in place. Returns the same playbook
    (REQ-REFL-007).
    """
    tell(points.apply_tags(_usable(playbook), bullet_tags))
    return playbook


def update_playbook_data(playbook: Json, extraction_result: Mapping[str, Any]) -> Json:
    """Add the new points (texts, or ``{"text", "section"}``), count the evaluations (``{"name", "rating"}``),
    prune; in this order, in place. Returns the same playbook.
    """
    names, said = points.names_of(_usable(playbook)), points.said_in(playbook)
    new = extraction_result.get("new_key_points")
    for item in new if isinstance(new, list | tuple) else ():
        point: Mapping[str, Any] = item if isinstance(item, Mapping) else {"text": item}
        text, section = point.get("text"), point.get("section", points.OTHERS)
        if points.add(playbook, text, section, names, said) is None:
            tell([f"{points.short(text)} is no new point: left out"])
    tell(points.apply_tags(playbook, extraction_result.get("evaluations"), "rating"))
    points.prune(playbook)
    return playbook


def prune_harmful(playbook: Json) -> Json:
    """Drop the points with ``harmful >= 3 and harmful > helpful``, in place. Returns the same playbook."""
    points.prune(_usable(playbook))
    return playbook


def run_deduplication(playbook: Json) -> Json:
    """Points with the same text become the first of them, with the sum of the counters; in place. Returns the
    same playbook.
    """
    points.deduplicate(_usable(playbook))
    return playbook


def apply_structured_operations(playbook: Json, operations: Any) -> Json:  # noqa: ANN401 - what a model said
    """A copy of the playbook with a curator's operations applied, at most ten, in their order. ``playbook``
    stays as it is.
    """
    changed, skipped = points.apply(points.migrated(playbook).playbook, operations)
    tell(skipped)
    return changed


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value in a model's text, by the four strategies of REQ-REFL-008; None when all fail."""
    from ..learning.playbook.questions import extract_json as found_in

    return found_in(text)


def _usable(playbook: Json) -> Json:
    """The same dict, in today's form: another one is brought into it in place, and the changes are told."""
    whole, told = points.migrated(playbook or points.empty())
    if told or whole != playbook:
        playbook.clear()
        playbook.update(whole)
        tell(told)
    return playbook


# --- models ------------------------------------------------------------------------------------------


async def run_reflector(messages: Any, playbook: Json, cited_ids: Any) -> Json:  # noqa: ANN401 - anything may come
    """The value of the playbook in a session: ``{"analysis": text, "bullet_tags": [{"name", "tag",
    "rationale"}]}``; empty values when no model answers. Never raises (REQ-REFL-003 to 006).
    """
    return await asked(Asking(), "reflector", playbook, messages, cited=cited_ids)


async def run_curator(reflector_output: Any, playbook: Json) -> Json:  # noqa: ANN401 - as above
    """The changes to make: ``{"reasoning": text, "operations": [{"type", …}]}``; empty values when no model
    answers. Never raises.
    """
    return await asked(Asking(), "curator", playbook, reflector_output)


async def extract_keypoints(messages: Any, playbook: Json) -> Json:  # noqa: ANN401 - as above
    """New points and ratings in one call: ``{"new_key_points": [text], "evaluations": [{"name",
    "rating"}]}``; empty lists when no model answers. Never raises.
    """
    return await asked(Asking(), "keypoints", playbook, messages)


async def asked(asking: Asking, name: Name, playbook: Json, data: Any, cited: Any = ()) -> Json:  # noqa: ANN401
    """The output of one question about the playbook; empty when anything fails (INV-REFL-002). ``data``:
    messages, or a reflector's output. Nothing of it is cut.
    """
    import msgspec

    from ..core.question import Question, ask
    from ..learning.playbook import questions as q

    forms: Mapping[Name, type[q.Reflection | q.Curation | q.Extraction]]
    forms = {"reflector": q.Reflection, "curator": q.Curation, "keypoints": q.Extraction}
    form = forms[name]
    reply, why, raw = form(), "", ""
    try:
        book = points.migrated(playbook).playbook
        if name == "curator":
            slots = q.of_points(q.reflection_of(data), book)
        else:
            slots = {"playbook": points.lines_of(book) or q.NONE, "transcript": _transcript(data)}
        slots |= {"cited_ids": ", ".join(f"[{each}]" for each in cited) or q.NONE, "quarantined": q.NONE}
        question = Question(
            name,
            slots,
            form,
            purpose={"reflector": "reflect", "curator": "curate"}.get(name, name),
            max_tokens=q.MAX_TOKENS,
            tier="reflect",
            nonce=nonce(),
            parts=True,
            find=q.extract_json,
        )
        answer = await asking.run(ask(question, {name: template(name, asking)}))
        reply, why, raw = answer.reply or reply, answer.why, "\n".join(bad.raw for bad in answer.bad)
    except Exception as error:  # noqa: BLE001 - a session's end must not fail because of what it taught
        why = f"{type(error).__name__}: {error}"
    if why:
        tell([f"{name}: {why}"])
        with suppress(UserError):  # wrong settings were told above
            if asking.settings().log.level == "debug":
                save_diagnostic(f"{why}\n{raw}", name)
    output: Json = msgspec.to_builtins(reply)
    return {key: value for key, value in output.items() if key not in {"nonce", "confirmed"}}


def _transcript(messages: Iterable[object]) -> str:
    """All that the messages hold. Blocks that are no texts (calls, results) are shown as JSON."""
    said = []
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        blocks = content if isinstance(content, list | tuple) else [content]
        shown = [" ".join(_texts([b])) or json.dumps(b, ensure_ascii=False, default=str) for b in blocks if b]
        if shown and isinstance(message, Mapping):
            said.append(f"{message.get('role', '?')}: " + "\n".join(shown))
    return "\n\n".join(said) or "(nothing was said)"
