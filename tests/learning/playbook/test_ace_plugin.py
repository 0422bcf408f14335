"""Playbooks of the ACE plugin, in each form that it wrote: they load, and it reads what we write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.api.playbook import SECTION_SLUGS, format_playbook, load_playbook, save_playbook
from tests.learning.playbook.books import Json, point, said

TEXTS = ["Use type hints", "Prefer pathlib → always", "テストを先に書く"]
NAMES = [{"name": f"kpt_{i:03d}", "text": text} for i, text in enumerate(TEXTS, 1)]
FLAT: dict[str, list[Any]] = {
    "texts": list(TEXTS),
    "names": NAMES,
    "scores and tags": [entry | {"score": 0, "tags": ["python"], "embedding": [0.5]} for entry in NAMES],
    "mixed": [TEXTS[0], NAMES[1] | {"score": 4}, point("kpt_003", TEXTS[2], 2, 2)],
}
SECTIONS: dict[str, list[Json]] = {name: [] for name in SECTION_SLUGS} | {
    "PATTERNS & APPROACHES": [point("pat-001", TEXTS[0], 5, 1), point("pat-004", TEXTS[1])],
    "OTHERS": [point("kpt_001", TEXTS[2], 0, 2)],
}


@pytest.mark.shows("CON-ACE-004", "QG-ACE-001")
@pytest.mark.parametrize("form", [*FLAT, "sections"])
def test_qg_ace_001_every_form_loads_and_stays(tmp_path: Path, form: str) -> None:
    """Texts, names and counts arrive, a save changes nothing more, and the plugin's reader finds what it
    relies on: the five sections, four fields in each point, no old keys. Today's form of the plugin is ours,
    byte for byte but for the time.
    """
    path = tmp_path / "playbook.json"
    points = {"key_points": FLAT[form]} if form in FLAT else {"sections": SECTIONS}
    data = {"version": "1.0", "last_updated": "2026-02-18T14:30:00.123456", **points}
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False), "utf-8")
    before = path.read_text("utf-8")
    found = load_playbook(path)
    assert sorted(said(found)) == sorted(TEXTS)
    save_playbook(found, path)
    assert load_playbook(path) == found
    written = json.loads(path.read_text("utf-8"))
    assert (list(written["sections"]), "key_points" in written) == (list(SECTION_SLUGS), False)
    types = {"name": str, "text": str, "helpful": int, "harmful": int}
    for p in (p for entries in written["sections"].values() for p in entries):
        assert ({field: type(p[field]) for field in types}, "score" in p) == (types, False)
    if form in FLAT:
        assert [p["name"] for p in written["sections"]["OTHERS"]] == ["kpt_001", "kpt_002", "kpt_003"]
        return
    assert written["sections"] == SECTIONS
    time = written["last_updated"]
    assert path.read_text("utf-8").replace(time, data["last_updated"]).rstrip("\n") == before
    assert "[pat-001] helpful=5 harmful=1 :: Use type hints\n[pat-004]" in format_playbook(found)
