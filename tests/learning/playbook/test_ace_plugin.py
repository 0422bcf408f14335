"""Playbooks of the ACE plugin, in each form that its versions wrote: they load, and it reads what we write.

``written`` writes them as the plugin does: indented by two, other letters as they are, a local time without a
zone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.api.playbook import SECTION_SLUGS, format_playbook, load_playbook, save_playbook
from tests.learning.playbook.books import Json, point, said

TEXTS = ["Use type hints", "Prefer pathlib → always", "テストを先に書く"]
FLAT: dict[str, list[Any]] = {
    "texts": list(TEXTS),
    "names": [{"name": f"kpt_{i:03d}", "text": t} for i, t in enumerate(TEXTS, 1)],
    "scores": [{"name": f"kpt_{i:03d}", "text": t, "score": i - 2} for i, t in enumerate(TEXTS, 1)],
    "scores and tags": [
        {"name": f"kpt_{i:03d}", "text": t, "score": 0, "tags": ["python"], "embedding": [0.5]}
        for i, t in enumerate(TEXTS, 1)
    ],
    "counters": [point(f"kpt_{i:03d}", t, i, 1) for i, t in enumerate(TEXTS, 1)],
    "mixed": [TEXTS[0], {"name": "kpt_002", "text": TEXTS[1], "score": 4}, point("kpt_003", TEXTS[2], 2, 2)],
}
SECTIONS: dict[str, list[Json]] = {name: [] for name in SECTION_SLUGS} | {
    "PATTERNS & APPROACHES": [point("pat-001", TEXTS[0], 5, 1), point("pat-004", TEXTS[1])],
    "OTHERS": [point("kpt_001", TEXTS[2], 0, 2)],
}


def written(path: Path, **fields: Any) -> Path:
    data = {"version": "1.0", "last_updated": "2026-02-18T14:30:00.123456", **fields}
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False), "utf-8")
    return path


def is_read_by_the_plugin(path: Path) -> bool:
    """What its reader relies on: exactly the five sections, four fields in each point, no old keys."""
    data = json.loads(path.read_text("utf-8"))
    points = [p for entries in data["sections"].values() for p in entries]
    types = {"name": str, "text": str, "helpful": int, "harmful": int}
    return (list(data["sections"]), "key_points" in data) == (list(SECTION_SLUGS), False) and all(
        {field: type(p[field]) for field in types} == types and "score" not in p for p in points
    )


@pytest.mark.shows("QG-ACE-001")
@pytest.mark.parametrize("form", FLAT)
def test_qg_ace_001_every_flat_form_loads_and_stays(tmp_path: Path, form: str) -> None:
    """Texts, names and counts arrive in OTHERS, and a save changes nothing more."""
    path = written(tmp_path / "playbook.json", key_points=FLAT[form])
    found = load_playbook(path)
    assert said(found) == TEXTS
    assert [p["name"] for p in found["sections"]["OTHERS"]] == ["kpt_001", "kpt_002", "kpt_003"]
    save_playbook(found, path)
    assert load_playbook(path) == found
    assert is_read_by_the_plugin(path)


@pytest.mark.shows("CON-ACE-004", "QG-ACE-001")
def test_qg_ace_001_sections_load_and_stay(tmp_path: Path) -> None:
    """Today's form of the plugin is ours, byte for byte but for the time."""
    path = written(tmp_path / "playbook.json", sections=SECTIONS)
    before = path.read_text("utf-8").replace("2026-02-18T14:30:00.123456", "")
    found = load_playbook(path)
    assert found["sections"] == SECTIONS
    save_playbook(found, path)
    assert path.read_text("utf-8").replace(found["last_updated"], "").rstrip("\n") == before
    assert is_read_by_the_plugin(path)
    assert "[pat-001] helpful=5 harmful=1 :: Use type hints\n[pat-004]" in format_playbook(found)
