"""Which prompts are in force: layers, what makes a file unusable, trust, and edits that are noticed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from daemon import paths
from daemon.core.errors import Unavailable, UserError
from daemon.core.question import fill
from daemon.files.prompts import (
    LIMIT,
    PROJECTS_KEPT,
    SLOTS,
    TRUST_LIMIT,
    Prompts,
    Trust,
    digest,
    read_project,
    watch,
)
from daemon.testing import FakeClock
from harness.machine.waiting import wait_until


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


# --- trust --------------------------------------------------------------------------------------------------


PROMPTS = {"judge": "be kind"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "trust.json"


def test_trust_is_kept_and_taken_back(file: Path, tmp_path: Path) -> None:
    """Another process sees it; only this folder and this content; the file is 0600."""
    clock = FakeClock()
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (False, "")
    assert Trust(file, clock).grant(tmp_path, PROMPTS) == ""
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (True, "")
    assert Trust(file, clock).trusts(tmp_path, {"judge": "be kind "}) == (False, "")
    assert Trust(file, clock).trusts(tmp_path / "sub", PROMPTS) == (False, "")
    assert Trust(file, clock).load()[0][str(tmp_path)].at == clock.ms
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    Trust(file, clock).revoke(tmp_path)
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (False, "")


@pytest.mark.shows("I51")
def test_the_digest_knows_which_text_is_whose() -> None:
    """Moving text from one prompt to another, or renaming one, is a change."""
    sets = [{"a": "b"}, {"b": "a"}, {"a": "b", "c": ""}, {"a": "", "c": "b"}, {'a", "b': ""}, {}]
    assert len({digest(s) for s in sets}) == len(sets)
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})


ENTRY = b'{"/p": {"sha256": "x", "at": 1}}'
CORRUPT = [
    *(b"", b"{", b"[]", b"\xff", b'{"projects": []}', b"[" * 100_000),
    *(b" " * (TRUST_LIMIT + 1), b'{"projects": ' + ENTRY + b"}"),
    b'{"projects": {"/p": {"sha256": "' + b"0" * 64 + b'"}}}',
]


@pytest.mark.shows("I43")
@pytest.mark.parametrize("data", CORRUPT, ids=range(len(CORRUPT)))
def test_a_corrupt_file_is_kept_aside_and_trusts_nothing(file: Path, tmp_path: Path, data: bytes) -> None:
    """A message says so; to trust again keeps the content under another name, and works."""
    file.parent.mkdir()
    file.write_bytes(data)
    trust = Trust(file, FakeClock())
    trusted, problem = trust.trusts(tmp_path, PROMPTS)
    assert (trusted, "no project is trusted" in problem) == (False, True)
    problem = trust.grant(tmp_path, PROMPTS)
    (aside,) = (path for path in file.parent.iterdir() if path != file)
    assert problem.endswith(aside.name)
    assert aside.name.startswith("trust.json.corrupt-")
    assert aside.read_bytes() == data
    assert trust.trusts(tmp_path, PROMPTS) == (True, "")


def test_a_file_that_cannot_be(file: Path, tmp_path: Path) -> None:
    """A folder or a file in the way trusts nothing, and a command fails with the folder's name."""
    file.mkdir(parents=True)
    trusted, problem = Trust(file, FakeClock()).trusts(tmp_path, PROMPTS)
    assert (trusted, "no project is trusted" in problem) == (False, True)
    (tmp_path / "other").write_text("a file")
    trust = Trust(tmp_path / "other" / "trust.json", FakeClock())
    with pytest.raises(Unavailable, match="other"):
        trust.grant(tmp_path, PROMPTS)
    assert trust.trusts(tmp_path, PROMPTS)[0] is False


def test_commands_at_once_lose_nothing(file: Path, tmp_path: Path) -> None:
    """Twenty at the same moment: what one wrote the others keep, so that no removal is undone."""
    folders = [tmp_path / str(n) for n in range(20)]
    work = [threading.Thread(target=Trust(file, FakeClock()).grant, args=(f, PROMPTS)) for f in folders]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert set(Trust(file, FakeClock()).load()[0]) == {str(f) for f in folders}


@pytest.mark.shows("I44")
def test_the_list_is_bounded(file: Path, tmp_path: Path) -> None:
    """A thousand projects are kept; the one trusted longest ago makes room."""
    clock = FakeClock()
    entries = {f"/p{n}": {"sha256": "0" * 64, "at": n} for n in range(PROJECTS_KEPT)}
    file.parent.mkdir()
    file.write_text(json.dumps({"projects": entries}))
    Trust(file, clock).grant(tmp_path, PROMPTS)
    kept = Trust(file, clock).load()[0]
    assert len(kept) == PROJECTS_KEPT
    assert "/p0" not in kept
    assert {"/p1", str(tmp_path)} <= kept.keys()


# --- edits --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[asyncio.Event]:
    """An event that is set at each change."""
    seen = asyncio.Event()
    task = asyncio.create_task(watch(folder, seen.set, appears_s=0.05))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()


async def noticed(seen: asyncio.Event, change: Callable[[], object]) -> None:
    """Repeat the change until it is noticed: nobody outside can know when a watch stands."""
    seen.clear()
    for _ in range(100):
        change()
        try:
            async with asyncio.timeout(0.3):
                await seen.wait()
        except TimeoutError:
            continue
        return
    raise AssertionError("a change was never noticed")


def edits(file: Path) -> Callable[[], object]:
    """Write something new, each time."""
    numbers = count()
    return lambda: file.write_text(str(next(numbers)))


async def test_edits_are_noticed(tmp_path: Path) -> None:
    """In a folder that is made later, in one below, in one made while watching."""
    folder = tmp_path / "config" / "reflectd"
    edit = edits(folder / "config.toml")
    async with watching(folder) as seen:
        await noticed(seen, lambda: (folder.mkdir(parents=True, exist_ok=True), edit()))
        for name in ("prompts", "later"):
            (folder / name).mkdir()
            await noticed(seen, edits(folder / name / "x.txt"))


async def test_a_folder_that_goes_and_comes_again(tmp_path: Path) -> None:
    """Both are noticed, and the new folder is watched, also when it has the old one's inode."""
    folder = tmp_path / "reflectd"
    folder.mkdir()
    edit = edits(folder / "judge.txt")
    async with watching(folder) as seen:
        await noticed(seen, edit)
        for _ in range(3):
            seen.clear()
            shutil.rmtree(folder)
            async with asyncio.timeout(60):
                await seen.wait()
            folder.mkdir()
            await noticed(seen, edit)


@pytest.mark.shows("I45")
def test_nothing_is_left_when_it_ends(tmp_path: Path) -> None:
    """Cancelled in the middle, no thread of it stays."""
    before = set(threading.enumerate())

    async def scenario() -> None:
        async with watching(tmp_path) as seen:
            await noticed(seen, edits(tmp_path / "x"))
            assert len(threading.enumerate()) > len(before)

    asyncio.run(scenario())
    wait_until(
        lambda: set(threading.enumerate()) <= before, what="end of its threads", seen=threading.enumerate
    )
