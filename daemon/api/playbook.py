"""The playbook as a library: ``from reflectd.api.playbook import …``. Plain dicts, no daemon (docs/api.md).

What can't be used (a tag for a point that is not there, a wrong operation) is one line on stderr and left
out. The functions that ask a model never raise: without an answer their result is empty.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..core.errors import UserError
from ..core.given import CITED
from ..core.policy import BASE_DELAY, MAX_RETRIES
from ..learning.playbook import curator, points, reflector
from ..learning.playbook import reflector as questions
from ..learning.playbook.points import SECTION_SLUGS
from ..learning.playbook.reflector import Question
from .asking import Asking, nonce, tell, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ..learning.playbook.reflector import Flow

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
_told: set[tuple[str, str]] = set()  # files that are no playbooks and missing models: each is told once


# --- files -------------------------------------------------------------------------------------------


def load_playbook(path: str | Path) -> Json:
    """The playbook in the file, in today's form: ``{"version", "last_updated", "sections"}``.

    An empty one when the file is missing or no playbook. A file that is no playbook, points with another name
    and entries that are left out are told once on stderr. Never raises.
    """
    from ..learning.playbook.project_playbook import load

    found = load(path)
    if found.problem and (str(path), found.mark) not in _told:
        _told.add((str(path), found.mark))
        tell([f"{found.problem}; it is kept aside at the next save"])
    elif found.told and (str(path), found.mark) not in _told:
        _told.add((str(path), found.mark))
        tell([f"{path}: {line}" for line in found.told])
    return found.playbook


def save_playbook(playbook: Json, path: str | Path) -> None:
    """Write the playbook, all or nothing, with ``last_updated`` set to now (UTC), in ``playbook`` too.

    A file that was no playbook is kept as ``<name>.corrupt-<ms>``. Raises ``Unavailable`` when the file
    system refuses, ``ValueError`` and ``TypeError`` when ``playbook`` is no playbook, JSON can't hold it, or
    it would be too large to be loaded (64 MiB); the file stays as it was then.
    """
    from ..learning.playbook.project_playbook import save

    now = time.time_ns() // 1_000_000
    found = points.migrated(playbook)
    saved_at = datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="microseconds")
    aside = save(path, found.playbook | {"last_updated": saved_at}, now)
    playbook["last_updated"] = saved_at
    tell([f"{path}: {line}" for line in found.told])
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
        folder = resolve(
            os.environ, state_dir=Asking().settings().daemon.state_dir, connects=False
        ).diagnostics
    except UserError:
        return None
    found = save(folder, f"{name}-{time.time_ns() // 1_000_000}", redact(str(content)))
    return None if found is None else str(found)


# --- values ------------------------------------------------------------------------------------------


def extract_cited_ids(messages: Iterable[object]) -> list[str]:
    """The ids in brackets in the assistant's messages, each once (REQ-REFL-001). Content is a text or a list
    of blocks.
    """
    return points.cited_ids(messages)


def format_playbook(playbook: Json) -> str:
    """What an agent is given: the points under their sections, in the template ``playbook.txt``. "" without
    points.
    """
    return points.offered(_usable(playbook), load_template("playbook.txt"))


def generate_keypoint_name(section_entries: Iterable[Any], slug: str) -> str:
    """The next name in a section: one above the highest that begins with ``slug``, such as ``pat-004``."""
    return points.next_name(section_entries, slug)


def apply_bullet_tags(playbook: Json, bullet_tags: Any) -> Json:  # noqa: ANN401 - what a model said
    """Count the tags (``{"name", "tag", "rationale"}``), each once, in place. Returns the same playbook
    (REQ-REFL-007).
    """
    tell(points.apply_tags(_usable(playbook), bullet_tags))
    return playbook


def update_playbook_data(playbook: Json, extraction_result: Mapping[str, Any]) -> Json:
    """Add the new points, count the evaluations, prune; in place. Returns the same playbook."""
    tell(points.update(_usable(playbook), extraction_result))
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
    applied = curator.apply(points.migrated(playbook).playbook, operations)
    tell(applied.skipped)
    return applied.playbook


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value in a model's text, by the four strategies of REQ-REFL-008; None when all fail."""
    return questions.extract_json(text)


# --- models ------------------------------------------------------------------------------------------


async def run_reflector(messages: Any, playbook: Json, cited_ids: Any) -> Json:  # noqa: ANN401 - anything may come
    """What the playbook was worth in a session: ``{"analysis": text, "bullet_tags": [{"name", "tag",
    "rationale"}]}``; empty values when no model answers. Never raises (REQ-REFL-003 to 006).
    """
    return await reflected(Asking(), messages, playbook, cited_ids)


async def run_curator(reflector_output: Any, playbook: Json) -> Json:  # noqa: ANN401 - as above
    """What is to be changed: ``{"reasoning": text, "operations": [{"type", …}]}``; empty values when no model
    answers. Never raises.
    """
    return await curated(Asking(), reflector_output, playbook)


async def extract_keypoints(messages: Any, playbook: Json) -> Json:  # noqa: ANN401 - as above
    """New points and ratings in one call: ``{"new_key_points": [text], "evaluations": [{"name",
    "rating"}]}``; empty lists when no model answers. Never raises.
    """
    return await extracted(Asking(), messages, playbook)


async def reflected(asking: Asking, messages: Any, playbook: Json, cited_ids: Any) -> Json:  # noqa: ANN401
    """``run_reflector``, with somebody to ask."""

    def flow(question: Question, book: Json) -> Flow:
        return reflector.reflect(reflector.of_messages(question, messages, book, cited_ids))

    return await _asked(asking, "reflector", flow, playbook, {"analysis": "", "bullet_tags": []})


async def curated(asking: Asking, reflector_output: Any, playbook: Json) -> Json:  # noqa: ANN401
    """``run_curator``, with somebody to ask."""

    def flow(question: Question, book: Json) -> Flow:
        return curator.curate(curator.curation(question, reflector_output, book))

    return await _asked(asking, "curator", flow, playbook, {"reasoning": "", "operations": []})


async def extracted(asking: Asking, messages: Any, playbook: Json) -> Json:  # noqa: ANN401
    """``extract_keypoints``, with somebody to ask."""

    def flow(question: Question, book: Json) -> Flow:
        return reflector.extract(reflector.of_messages(question, messages, book, ()))

    return await _asked(asking, "keypoints", flow, playbook, {"new_key_points": [], "evaluations": []})


async def _asked(
    asking: Asking, name: str, flow: Callable[[Question, Json], Flow], playbook: Json, nothing: Json
) -> Json:
    """The output of the flow that is made of the question and the playbook; ``nothing`` when anything
    fails (INV-REFL-002).
    """
    why, raw = "", ""
    try:
        question = Question(nonce(), template(name, asking), tier="reflect", strict=False)
        outcome = await asking.run(flow(question, points.migrated(playbook).playbook))
        if not outcome.failed:
            return outcome.output
        why, raw = outcome.why, "\n".join(bad.raw for bad in outcome.bad)
    except Exception as error:  # noqa: BLE001 - a session's end must not fail because of what it taught
        why = f"{type(error).__name__}: {error}"
    tell([f"{name}: {why}"])
    try:
        if asking.settings().log.level == "debug":
            save_diagnostic(f"{why}\n{raw}", name)
    except Exception:  # noqa: BLE001, S110 - wrong settings were told above
        pass
    return nothing


def _usable(playbook: Json) -> Json:
    """The same dict, in today's form: another one is brought into it in place, and the changes are told."""
    found = points.migrated(playbook or points.empty())
    if found.told or found.playbook != playbook:
        playbook.clear()
        playbook.update(found.playbook)
        tell(found.told)
    return playbook
