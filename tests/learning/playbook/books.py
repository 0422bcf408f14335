"""Playbooks for the tests of this folder and of the library, and hypothesis strategies for them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from daemon.learning.playbook.points import SECTION_SLUGS, empty

Json = dict[str, Any]
PATTERNS, OTHERS = "PATTERNS & APPROACHES", "OTHERS"
NAMES = st.sampled_from(["pat-001", "pat-002", "mis-001", "oth-001", "kpt_001", "kpt_002", "mine", ""])
TEXTS = st.text(min_size=1, max_size=40).filter(str.strip)
POINTS = st.fixed_dictionaries({"text": TEXTS}, optional={
    "name": NAMES, "helpful": st.integers(-3, 9), "harmful": st.integers(-3, 9),
    "score": st.integers(-9, 9) | st.none(), "tags": st.lists(st.text(max_size=3), max_size=2),
})  # fmt: skip
ENTRIES = st.lists(TEXTS | POINTS, max_size=8)
SECTIONS = st.dictionaries(
    st.sampled_from([*SECTION_SLUGS, "others", " Patterns & approaches ", "NEW"]), ENTRIES
)
LEGACY = st.fixed_dictionaries({}, optional={
    "version": st.just("1.0"), "last_updated": st.none() | st.just("2026-01-15T10:00:00"),
    "key_points": ENTRIES, "sections": SECTIONS, "score": st.integers(), "owner": st.text(max_size=3),
}).filter(lambda data: data.keys() & {"sections", "key_points"})  # fmt: skip
TAGS = st.lists(st.fixed_dictionaries({
    "name": NAMES, "tag": st.sampled_from(["helpful", "harmful", "neutral", "great", None]),
}), max_size=12)  # fmt: skip


def point(name: str, text: str, helpful: int = 0, harmful: int = 0) -> Json:
    return {"name": name, "text": text, "helpful": helpful, "harmful": harmful}


def book(*points: Json, **sections: list[Json]) -> Json:
    """A playbook: ``points`` are patterns, the others are given by their slugs."""
    made = empty()
    made["sections"][PATTERNS] = list(points)
    for slug, entries in sections.items():
        (section,) = (name for name, known in SECTION_SLUGS.items() if known == slug)
        made["sections"][section] = entries
    return made


def names(playbook: Json) -> list[str]:
    return [p["name"] for entries in playbook["sections"].values() for p in entries]


def said(playbook: Json) -> list[str]:
    return [p["text"] for entries in playbook["sections"].values() for p in entries]
