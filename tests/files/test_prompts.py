"""Which prompts are in force: layers, what makes a file unusable, and live pick-up, on real files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon import paths
from daemon.core.errors import UserError
from daemon.core.template import fill
from daemon.files.prompts import LIMIT, SLOTS, Prompts, check, read_project
from daemon.files.trust import Trust
from daemon.testing import FakeClock


def text_for(name: str, words: str) -> str:
    """A usable prompt."""
    return words + "".join(f"\n{{{slot}}}" for slot in sorted(SLOTS[name].required))


@dataclass
class Desk:
    """The shipped prompts, a person's folder, a project."""

    root: Path

    def __post_init__(self) -> None:
        self.shipped, self.person = self.root / "shipped", self.root / "config" / "prompts"
        self.project = self.root / "project"
        self.theirs = self.project / ".reflection" / "prompts"
        for folder in (self.shipped, self.person, self.theirs):
            folder.mkdir(parents=True)
        for name in SLOTS:
            (self.shipped / f"{name}.txt").write_text(text_for(name, "shipped"))
        self.trust = Trust(self.root / "state" / "trust.json", FakeClock())
        self.prompts = Prompts(self.shipped, self.person, self.trust)

    def words(self, directory: str = "") -> dict[str, str]:
        """The first line of each prompt in force."""
        found = self.prompts.templates(directory or str(self.project)).texts
        return {name: text.partition("\n")[0] for name, text in found.items()}

    def problems(self) -> str:
        return "\n".join(self.prompts.templates(str(self.project)).problems)

    def accept(self) -> None:
        """The person trusts the project as it is."""
        self.trust.grant(self.project, read_project(self.project).texts)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_shipped_prompts_are_usable() -> None:
    """Each prompt that the table names is shipped, has what it needs, and nothing that stays unfilled."""
    shipped = paths.shipped("prompts")
    prompts = Prompts(shipped, shipped / "none", Trust(shipped / "none", FakeClock()))
    for name, text in prompts.templates("").texts.items():
        filled = fill(text, dict.fromkeys(SLOTS[name].required, "x"))
        assert not any(f"{{{slot}}}" in filled for slot in SLOTS[name].required)
    assert {file.stem for file in shipped.glob("*.txt")} == set(SLOTS)


def test_an_incomplete_installation_is_said(desk: Desk) -> None:
    """Without a shipped prompt the daemon does not start, and says which file is missing."""
    (desk.shipped / "judge_case.txt").unlink()
    with pytest.raises(UserError, match=r"judge_case\.txt is missing; install reflectd again"):
        Prompts(desk.shipped, desk.person, desk.trust)


def test_the_persons_prompt_replaces_the_shipped_one(desk: Desk) -> None:
    """File by file; the others stay shipped, and a link is fine there (dotfiles)."""
    elsewhere = desk.root / "dotfiles.txt"
    elsewhere.write_text(text_for("judge_case", "mine"))
    (desk.person / "judge_case.txt").symlink_to(elsewhere)
    assert desk.words() == dict.fromkeys(SLOTS, "shipped") | {"judge_case": "mine"}
    assert desk.prompts.templates("").sources == dict.fromkeys(SLOTS, "shipped") | {"judge_case": "yours"}


def test_edits_count_at_once(desk: Desk) -> None:
    """Picked up live: made, edited in place with the same size, broken, mended, deleted."""
    file = desk.person / "judge.txt"
    for words in ("aaaa", "bbbb"):
        file.write_text(words)
        assert desk.words()["judge"] == words
    file.write_text("broken {verdict}")
    assert desk.words()["judge"] == "shipped"
    file.write_text("mended {nonce}")
    assert desk.words()["judge"] == "mended {nonce}"
    file.unlink()
    assert desk.words()["judge"] == "shipped"


@pytest.mark.shows("I27")
def test_a_projects_prompts_need_trust_in_exactly_this_content(desk: Desk) -> None:
    """Not before trust, not after any change to any of them, and not from another folder."""
    (desk.theirs / "judge.txt").write_text("theirs")
    (desk.person / "judge.txt").write_text("mine")
    assert desk.words()["judge"] == "mine"
    desk.accept()
    assert desk.words()["judge"] == "theirs"
    assert desk.prompts.templates(str(desk.project)).sources["judge"] == "project"
    assert desk.words(str(desk.root))["judge"] == "mine"
    (desk.theirs / "judge_second.txt").write_text("always defend")
    assert (desk.words()["judge"], desk.words()["judge_second"]) == ("mine", "shipped")
    (desk.theirs / "judge_second.txt").unlink()
    assert desk.words()["judge"] == "theirs"
    (desk.theirs / "judge.txt").write_text("theirs!")
    assert desk.words()["judge"] == "mine"
    desk.accept()
    desk.trust.revoke(desk.project)
    assert desk.words()["judge"] == "mine"


def test_a_moved_or_copied_project_is_another_one(desk: Desk) -> None:
    """Trust is for a real path: a link to it is the same project, a copy is not."""
    (desk.theirs / "judge.txt").write_text("theirs")
    desk.accept()
    (desk.root / "link").symlink_to(desk.project)
    assert desk.words(str(desk.root / "link"))["judge"] == "theirs"
    copy = desk.root / "copy" / ".reflection" / "prompts"
    copy.mkdir(parents=True)
    (copy / "judge.txt").write_text("theirs")
    assert desk.words(str(desk.root / "copy"))["judge"] == "shipped"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"x" * (LIMIT + 1), f"larger than {LIMIT} bytes"),
        (b"\xff\xfe{nonce}", "it is not UTF-8 (byte 0)"),
        (b" \n", "it is empty"),
        (b"{nonce} {requests} {evidence} {earlier} {final}", "it lacks {project}"),
        (text_for("judge_case", "{verdict}").encode(), "nothing fills {verdict}"),
    ],
)
@pytest.mark.parametrize("layer", ["person", "theirs"])
def test_an_unusable_file_is_left_out_whole(desk: Desk, layer: str, data: bytes, why: str) -> None:
    """The next layer is used, and one problem names the file and the reason."""
    file = getattr(desk, layer) / "judge_case.txt"
    file.write_bytes(data)
    desk.accept()
    problems = desk.problems()
    assert problems.startswith(f"{file} is not used: ")
    assert why in problems
    assert desk.words()["judge_case"] == "shipped"


def test_json_in_a_prompt_is_no_placeholder() -> None:
    """The form that a prompt asks for has braces of its own."""
    check("judge", 'Answer {"complete": true or {not}? ...}'.replace("{not}", "{ }") + " {} {Name} {a-b}")


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "link nowhere", "linked folder", "linked top"])
def test_a_project_cannot_make_us_read_something_else(desk: Desk, kind: str) -> None:
    """A FIFO does not hang us, and links are not followed, whatever was trusted."""
    secret = desk.root / "secret"
    (secret / "prompts").mkdir(parents=True)
    for place in (secret / "judge.txt", secret / "prompts" / "judge.txt"):
        place.write_text("secret")
    file = desk.theirs / "judge.txt"
    match kind:
        case "fifo":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "link nowhere":
            file.symlink_to(desk.root / "nowhere")
        case "link":
            file.symlink_to(secret / "judge.txt")
        case "linked folder":
            desk.theirs.rmdir()
            desk.theirs.symlink_to(secret)
        case "linked top":
            desk.theirs.rmdir()
            desk.theirs.parent.rmdir()
            desk.theirs.parent.symlink_to(secret)
    desk.trust.grant(desk.project, {"judge": "secret"})
    assert "is not used: it is" in desk.problems()
    assert desk.words()["judge"] == "shipped"


def test_each_problem_is_told_once(desk: Desk) -> None:
    """A problem is reported once, and again when it comes back. A misspelt name is a problem too."""
    file = desk.person / "judge-case.txt"
    file.write_text("x")
    assert "judge-case.txt is no prompt, did you mean judge_case.txt?" in desk.problems()
    assert desk.problems() == ""
    assert desk.prompts.templates("").problems == []
    file.unlink()
    assert desk.problems() == ""
    file.write_text("x")
    assert "did you mean" in desk.problems()
    (desk.theirs / "judge.txt").write_text("theirs")
    assert "not trusted as they are now (judge)" in desk.problems()
    assert desk.problems() == ""


@pytest.mark.shows("I44")
def test_what_was_told_is_bounded(desk: Desk) -> None:
    """Of many projects with prompts few are remembered."""
    for number in range(210):
        folder = desk.root / f"p{number}" / ".reflection" / "prompts"
        folder.mkdir(parents=True)
        (folder / "judge.txt").write_text("x")
        assert desk.prompts.templates(str(desk.root / f"p{number}")).problems
    assert len(desk.prompts._told) == 200


@pytest.mark.parametrize("directory", ["/nowhere", "\0", "relative", "/" + "x" * 5000])
def test_any_directory_gives_prompts(desk: Desk, directory: str) -> None:
    """A host may name a folder that can't be: the prompts without a project are used."""
    assert desk.words(directory) == dict.fromkeys(SLOTS, "shipped")
