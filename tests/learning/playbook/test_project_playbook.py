"""A project's playbook: its file in every form, changes and revisions, where it is, what agents may be given
of it, and a person's word on its points.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from daemon.config import from_text, tighten
from daemon.core.errors import UserError
from daemon.core.given import known_as
from daemon.core.settings import Settings
from daemon.learning.playbook.points import add, apply, empty, migrated, said_in
from daemon.learning.playbook.project_playbook import (
    ACE,
    MOST_KNOWN,
    Edit,
    ProjectPlaybook,
    dumped,
    load,
    save,
    take_back,
    vouch,
)
from daemon.learning.rules.learned_rules import LearnedRules
from daemon.testing import FakeClock
from harness.machine.sandbox import REPO
from tests.learning.playbook.books import LEGACY, Json, book, names, point, said

OURS = REPO / ".reflection"
SCHEMA = Draft202012Validator(json.loads((OURS / "schemas" / "playbook.schema.json").read_text("utf-8")))
NOW = 1_760_000_000_000


# --- the file ----------------------------------------------------------------------------------------------


def test_the_sample_is_a_playbook_as_we_write_it() -> None:
    """Schema and sample agree with the code, byte for byte; a score and negative counts are refused."""
    Draft202012Validator.check_schema(SCHEMA.schema)
    path = OURS / "samples" / "playbook.json"
    loaded = load(path)
    assert (loaded.problem, loaded.told) == ("", ())
    assert dumped(loaded.playbook) == path.read_bytes()
    SCHEMA.validate(loaded.playbook)
    bad = [{"sections": {}}, {**empty(), "key_points": []}, book({**point("pat-001", "a"), "score": 1})]
    assert not any(map(SCHEMA.is_valid, [*bad, book(point("pat-001", " ")), book(point("pat-001", "a", -1))]))


@pytest.mark.shows("CON-ACE-004")
@given(data=LEGACY)
def test_everything_that_is_written_keeps_the_schema(data: Json) -> None:
    """Whatever it was made from."""
    SCHEMA.validate(json.loads(dumped(migrated(data).playbook)))


def test_an_edit_that_is_being_written_is_not_taken_for_a_broken_file(tmp_path: Path) -> None:
    """The file is read once more, a moment later."""
    path = tmp_path / "playbook.json"
    path.write_bytes(dumped(book(point("pat-001", "half")))[:40])

    def editor_goes_on(_: float) -> None:
        path.write_bytes(dumped(book(point("pat-001", "whole"))))

    assert said(load(path, sleep=editor_goes_on).playbook) == ["whole"]
    path.write_bytes(b"{")
    assert save(path, book(point("pat-001", "new")), NOW, sleep=editor_goes_on) is None
    assert [p.name for p in tmp_path.iterdir()] == ["playbook.json"]


# --- changes -----------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> ProjectPlaybook:
    (tmp_path / "work").mkdir()
    return ProjectPlaybook(tmp_path / "work", tmp_path / "state", FakeClock(), "")


def added(project: ProjectPlaybook, text: str) -> list[str]:
    """Add a pattern as a person does; the names after it."""
    with project.change() as edit:
        add(edit.playbook, text, "PATTERNS & APPROACHES", edit.names, said_in(edit.playbook))
        edit.what, edit.approved = f"added {text}", [text]
    return names(edit.playbook)


def removed(project: ProjectPlaybook, name: str) -> None:
    with project.change() as edit:
        edit.playbook |= apply(edit.playbook, [{"type": "DELETE", "target_id": name}])[0]


def nothing(project: ProjectPlaybook) -> Edit:
    with project.change() as edit:
        pass
    return edit


def test_a_change_is_written_approved_and_undone(project: ProjectPlaybook) -> None:
    """The whole way of a person's point."""
    assert added(project, "use types") == ["pat-001"]
    assert json.loads(project.path.read_bytes())["last_updated"].startswith("2023-11-14T22:13:20")
    assert project.known().is_approved("use types")
    assert (project.path.parent / ".gitignore").exists()
    (revision,) = project.history()
    assert (revision.what, revision.by) == ("added use types", "you")
    project.undo(0)
    assert not project.path.exists()
    assert project.read().playbook == book()


def test_no_name_is_given_twice(project: ProjectPlaybook) -> None:
    """Not after its point was removed, not after the file is gone, not to a text without a name."""
    added(project, "a")
    assert added(project, "b") == ["pat-001", "pat-002"]
    removed(project, "pat-002")
    assert added(project, "c") == ["pat-001", "pat-003"]
    project.path.unlink()
    assert added(project, "d") == ["pat-004"]
    project.path.write_text(json.dumps({"sections": {"PATTERNS & APPROACHES": ["bare"]}}))
    assert names(project.read().playbook) == ["pat-005"]


def test_a_change_of_nothing_writes_nothing(project: ProjectPlaybook, tmp_path: Path) -> None:
    """Neither the file nor a revision nor an approval."""
    assert nothing(project).revision is None
    assert list((tmp_path / "work").iterdir()) == []
    assert (project.history(), project.known().approved) == ([], {})


@pytest.mark.shows("I43")
def test_a_broken_file_is_kept_aside(project: ProjectPlaybook, tmp_path: Path) -> None:
    """The person is told where. A clone's link counts as broken: its target is neither read nor changed."""
    project.path.parent.mkdir()
    project.path.write_text("{")
    assert "can be used" in nothing(project).told[0]
    with project.change() as edit:
        add(edit.playbook, "a", "OTHERS", edit.names, set())
    assert "it is kept as playbook.json.corrupt-1700000000000" in edit.told[0]
    assert said(project.read().playbook) == ["a"]
    mine = tmp_path / "mine.json"
    mine.write_bytes(dumped(book(point("pat-001", "secret"))))
    project.path.unlink()
    project.path.symlink_to(mine)
    assert said(project.read().playbook) == []
    added(project, "a")
    assert said(json.loads(mine.read_bytes())) == ["secret"]


@pytest.mark.shows("LEARN-15")
@pytest.mark.parametrize(
    ("folder", "path", "why"),
    [
        ("home", "", "is no project"),
        ("clone", "", "is a link"),
        ("work", "link/playbook.json", "is a link"),
        ("work", "docs/deep/playbook.json", "is a link"),
    ],
)
def test_a_folder_that_can_have_no_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, path: str, why: str
) -> None:
    """The home folder, a `.reflection` that a clone made a link, and a link on the way to the file that was
    named, at whatever depth: nothing is read, written or undone.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("away", "home", "clone", "work/docs"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("clone/.reflection", "work/link", "work/docs/deep"):
        (tmp_path / name).symlink_to(tmp_path / "away")
    (tmp_path / "away" / "playbook.json").write_bytes(dumped(book(point("pat-001", "secret"))))
    project = ProjectPlaybook(tmp_path / folder, tmp_path / "state", FakeClock(), path)
    assert (why in project.read().problem, said(project.read().playbook)) == (True, [])
    for change in (lambda: added(project, "a"), lambda: project.undo(0)):
        with pytest.raises(UserError, match=why):
            change()
    assert [p.name for p in (tmp_path / "away").iterdir()] == ["playbook.json"]
    assert "secret" in (tmp_path / "away" / "playbook.json").read_text()
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.shows("REQ-REFL-006")
def test_an_edit_that_raises_changes_nothing(project: ProjectPlaybook) -> None:
    """A failure anywhere leaves the playbook as it was."""
    added(project, "a")
    before = project.path.read_bytes()
    with pytest.raises(KeyError), project.change() as edit:
        edit.playbook.pop("sections")["none"]
    assert project.path.read_bytes() == before


# --- where it is -------------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".claude").mkdir(parents=True)
    (folder / ACE).write_bytes(dumped(book(point("pat-001", "theirs", 3))))
    return folder


def opened(project: Path, setting: str = "") -> ProjectPlaybook:
    return ProjectPlaybook(project, project.parent / "state", FakeClock(), setting)


@pytest.mark.shows("I47")
@pytest.mark.parametrize(
    "value",
    [
        "/etc/playbook.json", "../playbook.json", "a/../../playbook.json", "./playbook.json", "CLAUDE.md",
        "package.json", ".claude/settings.json", ".claude/", "a//playbook.json", "a\n/playbook.json",
        "xplaybook.json",
    ],
)  # fmt: skip
def test_only_a_playbook_inside_the_project_can_be_named(value: str) -> None:
    """No file of the person's own can be named, nor one outside the project."""
    with pytest.raises(UserError, match=r"playbook.path must be a `playbook.json` inside the project"):
        from_text(f"[playbook]\npath = {json.dumps(value)}\n")
    assert from_text(f"[playbook]\npath = '{ACE}'\n").playbook.path == ACE


@pytest.mark.shows("LEARN-10")
def test_a_project_cannot_say_where_it_is() -> None:
    """Its settings file may have come with a clone."""
    settings, problems = tighten(Settings(), f"[playbook]\npath = '{ACE}'\n")
    assert settings.playbook.path == ""
    assert problems == [".reflection/config.toml: a project may not set playbook.path; ignored"]


def test_everything_happens_in_the_file_that_was_named(named: Path) -> None:
    """Points, names, revisions and undo; the other file keeps its own."""
    mine = opened(named)
    added(mine, "mine")
    before = mine.path.read_bytes()
    theirs = opened(named, ACE)
    assert theirs.path == named / ACE
    assert theirs.history() == []
    assert added(theirs, "new") == ["pat-001", "pat-002"]
    assert said(json.loads((named / ACE).read_bytes())) == ["theirs", "new"]
    assert [r.what for r in theirs.history()] == ["added new"]
    assert not (named / ".claude" / ".gitignore").exists()
    assert mine.path.read_bytes() == before
    theirs.undo(0)
    assert said(opened(named, ACE).read().playbook) == ["theirs"]
    assert [r.what for r in opened(named).history()] == ["added mine"]
    assert added(opened(named), "more") == ["pat-001", "pat-003"], "no name is given twice in a project"


@pytest.mark.shows("LEARN-15")
def test_a_file_that_is_a_link_is_refused(named: Path) -> None:
    """It may lead out of the project; its target is not read."""
    (named / ACE).rename(named.parent / "theirs.json")
    (named / ACE).symlink_to(named.parent / "theirs.json")
    found = opened(named, ACE).read()
    assert ("it is a link" in found.problem, said(found.playbook)) == (True, [])


# --- what agents may be given ------------------------------------------------------------------------------


@pytest.mark.shows("I44")
def test_a_model_sees_only_what_is_known_and_fine(project: ProjectPlaybook) -> None:
    """A text that nobody vouches for, and one that may not be offered any more, reach nobody. Of very many
    points the best are looked at; what harms, and what a rule says or a person dismissed, is not offered.
    """
    texts = ["one", "two", "See https://x.example/y.", "in the rules", "harms"]
    points = [point(f"pat-{i:03d}", text, 3 - i) for i, text in enumerate(texts, 1)]
    points[-1] |= {"helpful": 0, "harmful": 3}
    save(project.path, book(*points), NOW)
    Path(project.path.parent.parent, "AGENTS.md").write_text("- In the rules\n")
    project.approve(texts[2:])
    view = project.view({known_as("one")})
    assert names(view.known) == ["pat-001", "pat-004", "pat-005"]
    assert view.approved == {"pat-003", "pat-004", "pat-005"}
    assert [p["name"] for p in project.best({known_as("one"), known_as("two")})] == ["pat-001", "pat-002"]
    many = [point(f"pat-{i:04d}", f"text {i}", i) for i in range(MOST_KNOWN + 50)]
    save(project.path, book(*many), NOW)
    known = names(project.view({known_as(p["text"]) for p in many}).known)
    assert (len(known), known[0]) == (MOST_KNOWN, "pat-0050")


# --- a person's word on points ------------------------------------------------------------------------------


@pytest.fixture
def rules(tmp_path: Path) -> LearnedRules:
    """A project whose playbook came with it."""
    project = tmp_path / "work"
    project.mkdir()
    found = LearnedRules(project, tmp_path / "state", FakeClock())
    file = found.playbook.path
    file.parent.mkdir()
    file.write_bytes(dumped(book(point("pat-001", "Use pathlib."), point("pat-002", "See https://x.dev/a."))))
    return found


def test_another_text_than_was_seen_is_left_alone(rules: LearnedRules) -> None:
    """Neither vouched for nor removed; the same for a point that is gone."""
    playbook = rules.playbook
    for refused in (
        lambda: vouch(playbook, "pat-001", "Use os.path."),
        lambda: take_back(rules.playbook, rules.journal, "pat-001", "Use os.path."),
    ):
        with pytest.raises(UserError, match="pat-001 was edited while you were asked"):
            refused()
    with pytest.raises(UserError, match="pat-009 is not in the playbook any more"):
        take_back(rules.playbook, rules.journal, "pat-009", "Use pathlib.")
    assert rules.journal.read().journal["tombstones"] == []
