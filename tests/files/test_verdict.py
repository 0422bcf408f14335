"""The ``.reflection/`` files that others read: atomic, private, in the right folder, fresh when due."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from daemon.core.errors import Unavailable
from daemon.core.verdict import FinalState, Missing, Severity, Verdict
from daemon.files.verdict import CASES_KEPT, Judging, VerdictFiles, alias_object, verdict_object
from daemon.paths import resolve

AT = 1_700_000_000_000
SESSION = "ses_abcdEFGHijkl"
KEY = "sk-ant-api03-" + "Ab1" * 20


def verdict(state: FinalState = "complete", **changes: object) -> Verdict:
    return replace(Verdict(SESSION, "msg_1", "msg_2", state, AT), **changes)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def files(home: Path) -> VerdictFiles:
    where = resolve({"HOME": str(home), "REFLECTD_STATE_DIR": str(home / "state")})
    return VerdictFiles(where.fallback_reflection, home)


def read(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text("utf-8"))
    return found


def all_files(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}


def test_private(files: VerdictFiles, work: Path) -> None:
    """0600 in a folder of ours, whatever the umask and the file that was there."""
    (work / ".reflection").mkdir()
    path = work / ".reflection" / f"verdict_{SESSION}.json"
    path.write_text("{}")
    path.chmod(0o666)
    old = os.umask(0)
    try:
        files.final(verdict(), str(work), collides=False)
        files.case(SESSION, AT, {"x": 1}, str(work))
    finally:
        os.umask(old)
    for file in (work / ".reflection").glob("*.json"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


UNUSABLE = (
    "missing",
    "home",
    "root",
    "relative",
    "empty",
    "file",
    "blocked",
    "link",
    "home_link",
    "long",
    "nul",
)


@pytest.mark.parametrize("kind", UNUSABLE)
def test_where_the_workspace_can_not_be_used(files: VerdictFiles, home: Path, work: Path, kind: str) -> None:
    """Gone, ``$HOME``, ``/``, read-only or a trap: its files are in the state folder, nothing elsewhere."""
    (home / "elsewhere").mkdir()
    (work / "a-file").write_text("x")
    (work / "to-home").symlink_to(home)
    directory = {
        "missing": str(home / "gone"),
        "home": str(home),
        "root": "/",
        "relative": "work",
        "empty": "",
        "file": str(work / "a-file"),
        "long": "/" + "x" * 300,
        "nul": f"{work}\0",
        "home_link": str(work / "to-home"),
    }.get(kind, str(work))
    if kind == "blocked":  # as read-only does for anyone but root: the folder can't be made
        (work / ".reflection").write_text("in the way")
    if kind == "link":
        (work / ".reflection").symlink_to(home / "elsewhere")
    before = all_files(home)
    path = files.final(verdict(), directory, collides=False)
    assert path.is_relative_to(home / "state" / "workspaces")
    assert read(path)["session"] == SESSION
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {f for f in all_files(home) if not f.startswith("state/")} == before
    assert not Path("/.reflection").exists()


@pytest.mark.parametrize("removable", [True, False], ids=["disk full", "read-only"])
def test_nothing_older_stays_where_the_workspace_refuses_the_verdict(
    files: VerdictFiles, work: Path, monkeypatch: pytest.MonkeyPatch, removable: bool
) -> None:
    """The workspace's file says `judging`, and then its disk is full or read-only: nobody waits for ever."""
    begun = files.begun(Judging(SESSION, "msg_1", "msg_2", AT), str(work))
    assert begun.parent == work / ".reflection"
    own, opens = str(work / ".reflection"), os.open

    def refuse(path: str, flags: int, mode: int = 0o777, **more: Any) -> int:
        if str(path).startswith(own) and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opens(path, flags, mode, **more)

    def keep(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", refuse)
        if removable:
            path = files.final(verdict(), str(work), collides=False)
            assert read(path)["state"] == "complete"
            assert not list(begun.parent.glob("verdict_*"))
            return
        broken.setattr(Path, "unlink", keep)
        with pytest.raises(Unavailable, match="out of date"):
            files.final(verdict(), str(work), collides=False)
    assert files.final(verdict(), str(work), collides=False) == begun
    assert read(begun)["state"] == "complete"


def test_a_link_in_place_of_the_file(files: VerdictFiles, work: Path, home: Path) -> None:
    """A link that a clone brought along is replaced, and what it points at is not touched."""
    target = home / "precious"
    target.write_text("precious")
    (work / ".reflection").mkdir()
    for name in (SESSION, SESSION[:8]):
        (work / ".reflection" / f"verdict_{name}.json").symlink_to(target)
    files.final(verdict(), str(work), collides=False)
    assert target.read_text() == "precious"
    assert read(work / ".reflection" / f"verdict_{SESSION}.json")["complete"] is True


HOSTILE = [
    "../../escape", "/etc/passwd", "..", ".", "a/b/c", "nul\0", "line\nbreak", "💥💥", "x" * 5_000, "con:",
    "-rf", "",
]  # fmt: skip


@pytest.mark.parametrize("session", HOSTILE, ids=ascii)
def test_hostile_session_ids_stay_inside(files: VerdictFiles, work: Path, home: Path, session: str) -> None:
    """Bad input: a session id is a name from outside; its files stay in the folder and hold the true id."""
    v = verdict(session=session)
    path = files.final(v, str(work), collides=False)
    files.case(session, AT, {"x": 1}, str(work))
    assert path.parent == work / ".reflection"
    assert read(path)["session"] == session
    assert all(f.startswith("work/.reflection/") for f in all_files(home))


LOW = verdict("complete", severity=Severity.LOW)
PROMPTING = verdict("incomplete", will_prompt=True)
STALE = [verdict(state) for state in get_args(FinalState) if state != "complete"]


@pytest.mark.shows("I22", "I23")
@pytest.mark.parametrize(
    ("v", "collides", "fresh"),
    [
        *((v, False, True) for v in (verdict("complete"), LOW, PROMPTING)),
        *((v, True, False) for v in (verdict("complete"), PROMPTING)),
        *((v, False, False) for v in (*STALE, Judging(SESSION, "msg_1", "msg_3", AT))),
    ],
)
def test_when_the_alias_is_fresh(v: Verdict | Judging, collides: bool, fresh: bool) -> None:
    """Readers of the 8-character alias hear of complete, and of incomplete with feedback."""
    full, alias = verdict_object(v), alias_object(v, collides=collides)
    assert full["timestamp"] == AT
    assert alias["timestamp"] == (AT if fresh else 0)
    assert alias["complete"] is (fresh and full["complete"])
    assert (alias["sessionId"], alias["session"]) == (SESSION[:8], SESSION)


@pytest.mark.shows("I22")
def test_an_old_complete_is_never_fresh_for_a_new_turn(files: VerdictFiles, work: Path) -> None:
    """``judging`` replaces both files at once; every round has its own time."""
    folder = work / ".reflection"
    files.final(verdict("complete"), str(work), collides=False)
    files.begun(Judging(SESSION, "msg_3", "msg_4", AT + 5), str(work))
    full, alias = read(folder / f"verdict_{SESSION}.json"), read(folder / f"verdict_{SESSION[:8]}.json")
    judging = {"state": "judging", "complete": False, "timestamp": AT + 5, "turn": "msg_4"}
    assert full | judging == full
    assert (alias["complete"], alias["timestamp"]) == (False, 0)
    files.final(verdict("incomplete", at=AT + 9, will_prompt=True), str(work), collides=False)
    assert read(folder / f"verdict_{SESSION[:8]}.json")["timestamp"] == AT + 9


@pytest.mark.shows("I44")
def test_the_newest_200_cases_are_kept(files: VerdictFiles, work: Path) -> None:
    """200 cases a project and 20 a session, the oldest go; settings and other files stay."""
    folder = work / ".reflection"
    folder.mkdir()
    mine = ("config.toml", "notes_1700000000000.txt", "playbook.json")
    for name in mine:
        (folder / name).write_text("{}")
        os.utime(folder / name, (1, 1))
    for n in range(CASES_KEPT + 20):
        path = files.case(f"ses_{n:03d}", AT + n, {"n": n}, str(work))
        os.utime(path, ns=(n * 10**9, n * 10**9))
    files.case("ses_last", AT + 999, {}, str(work))
    cases = sorted(p.name for p in folder.glob("ses_*.json"))
    assert len(cases) == CASES_KEPT
    assert cases[0] == f"ses_021_{AT + 21}.json"
    for n in range(25):
        files.case("ses_long", AT + 1_000 + n, {"n": n}, str(work))
    long = sorted(p.name for p in folder.glob("ses_long_*.json"))
    assert (len(long), long[0]) == (20, f"ses_long_{AT + 1_005}.json"), "the newest 20 of a session"
    assert len(list(folder.glob("ses_*.json"))) == CASES_KEPT
    assert all((folder / name).exists() for name in mine)


@pytest.mark.shows("I44")
def test_cases_are_bounded_in_bytes(files: VerdictFiles, work: Path) -> None:
    """50 MB of cases a project."""
    big = {"text": "x" * 9_000_000}
    for n in range(8):
        path = files.case(f"ses_{n}", AT + n, big, str(work))
        os.utime(path, ns=(n * 10**9, n * 10**9))
    kept = [p.stat().st_size for p in (work / ".reflection").glob("ses_*.json")]
    assert sum(kept) <= 50_000_000
    assert len(kept) == 5


@pytest.mark.parametrize("cloned", [False, True])
def test_git_sees_the_settings_and_nothing_of_a_run(files: VerdictFiles, work: Path, cloned: bool) -> None:
    """``git add .`` takes the settings, and no verdict, case or temporary file; in a clone's folder too."""
    folder = work / ".reflection"
    if cloned:
        folder.mkdir()
    files.final(verdict(), str(work), collides=False)
    files.case(SESSION, AT, {}, str(work))
    (folder / ".reflectd-0123456789abcdef.tmp").write_text("left by a kill -9")
    for name in ("config.toml", "playbook.json"):
        (folder / name).write_text("")
    git = ["git", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    status = [*git, "status", "--porcelain", "--untracked-files=all"]
    listed = subprocess.run(status, check=True, capture_output=True, text=True)
    shown = {".reflection/config.toml", ".reflection/playbook.json"}
    assert {line[3:] for line in listed.stdout.splitlines()} == shown


@pytest.mark.shows("I46")
def test_secrets_are_taken_out(files: VerdictFiles, work: Path) -> None:
    """Whatever stands in a verdict or a case, no key reaches a file."""
    missing = (Missing(f"rotate {KEY}", f"export API_KEY={KEY}"),)
    said = {
        "feedback": f"set {KEY}",
        "missing": missing,
        "next_actions": (f"curl -H 'Authorization: Bearer {KEY}'",),
    }
    files.final(verdict("incomplete", reason=f"because {KEY}", **said), str(work), collides=False)
    content = {
        "case": {"final": KEY, KEY: 1, "rows": [[{"text": f"x {KEY}"}]]},
        "prompts": [{"purpose": "judge", "system": KEY, "text": KEY}],
        "password": KEY,
    }
    files.case(SESSION, AT, content, str(work))
    for name in all_files(work):
        assert KEY not in (work / name).read_text("utf-8"), name


@pytest.mark.shows("I44")
def test_verdicts_of_forgotten_sessions_go(files: VerdictFiles, work: Path) -> None:
    """A verdict file lives as long as its session, 90 days; younger ones and other files stay."""
    folder = work / ".reflection"
    folder.mkdir()
    for name, days in (("verdict_ses_old.json", 91), ("verdict_ses_new.json", 89), ("notes.json", 400)):
        path = folder / name
        path.write_text("{}")
        then = path.stat().st_mtime - days * 86_400
        os.utime(path, (then, then))
    files.case("ses_a", 1_700_000_000_000, {}, str(work))
    left = ["notes.json", "ses_a_1700000000000.json", "verdict_ses_new.json"]
    assert sorted(p.name for p in folder.glob("*.json")) == left
