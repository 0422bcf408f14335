"""Past sessions of Codex: their files, their stops, a person's words."""

from __future__ import annotations

from pathlib import Path

from daemon.core.transcript import Said
from daemon.hosts.codex.past import files_of, said_in, stops_in
from daemon.hosts.codex.rollout import begun_by
from daemon.hosts.jsonl import Cursor

from .test_rollout import ONE, SESSION, TASK, TWO, aborted, answered, began, ended, meta, said, used


def write(folder: Path, *lines: str, name: str = SESSION) -> Path:
    day = folder / "sessions" / "2026" / "11" / "24"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"rollout-2026-11-24T10-00-00-{name}.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


FEEDBACK = said("<hook_prompt>x rfl_0123456789abcdef0123</hook_prompt>", ONE, ["unknown"], "harness", "h")
WHOLE = (
    meta(), *TASK, FEEDBACK, answered("Really done.", "a2"), used(), ended(ONE),
    began(TWO), said("No, use tabs", TWO, name="m2"), answered("Tabs.", "a3"), aborted(TWO),
)  # fmt: skip


def test_where_a_session_stopped(tmp_path: Path) -> None:
    """Each stop as it was, with what followed it."""
    stops = list(stops_in(write(tmp_path, *WHOLE)))
    assert [s.after for s in stops] == ["feedback", "person", "end"]
    assert [s.said for s in stops] == ["", "No, use tabs", ""]
    assert [s.transcript.turn.text for s in stops if s.transcript.turn] == ["Done.", "Really done.", "Tabs."]


def test_what_a_person_said(tmp_path: Path) -> None:
    """Their words with the agent's before them; a file that grew is read from where reading stopped."""
    heard: list[Said] = []
    path = write(tmp_path, *WHOLE)
    cursor = said_in(path, None, heard.append)
    assert [(s.text, s.prior) for s in heard] == [("Fix it", ""), ("No, use tabs", "Done.\n\nReally done.")]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join([began("t3"), said("Tabs, I said", "t3", name="m3")]) + "\n")
    heard.clear()
    assert isinstance(said_in(path, cursor, heard.append), Cursor)
    assert [(s.text, s.prior, s.interrupted) for s in heard] == [("Tabs, I said", "Tabs.", True)]
    heard.clear()
    said_in(write(tmp_path, meta(source="exec"), *TASK, name=SESSION[:-1] + "2"), None, heard.append)
    assert not heard, "a program asked"
    assert said_in(tmp_path / "none.jsonl", None, heard.append) is None


def test_whose_words_they_are_depends_on_the_turn(tmp_path: Path) -> None:
    """A program's turn in a session of the terminal, and a person's in one of ``codex exec``; also where only
    the lines before the cursor tell what began the turn.
    """
    heard: list[Said] = []
    by_program = (began(ONE, "exec"), said("No, use yarn", ONE, name="m1"), ended(ONE))
    by_person = (began(TWO, "user"), said("No, use tabs", TWO, name="m2"), ended(TWO))
    for source, turns in (("cli", (*by_person, *by_program)), ("exec", (*by_program, *by_person))):
        said_in(write(tmp_path, meta(source=source), *turns), None, heard.append)
    assert [s.text for s in heard] == ["No, use tabs", "No, use tabs"]
    path = write(tmp_path, meta(source="exec"), *by_person, began(ONE, "exec"))
    assert begun_by(path, ONE) == "exec"
    assert begun_by(path, TWO) == "user"
    assert begun_by(path, "t3") == ""
    heard.clear()
    cursor = said_in(path, None, heard.append)
    with path.open("a", encoding="utf-8") as file:
        file.write(by_program[1] + "\n")
    said_in(path, cursor, heard.append)
    assert [s.text for s in heard] == ["No, use tabs"]


def test_the_files_of_a_project(tmp_path: Path) -> None:
    """By the folder in their first lines; a sub-agent's file is no session."""
    mine = write(tmp_path, *WHOLE)
    write(tmp_path, meta(cwd="/home/ann/other"), name=SESSION[:-1] + "3")
    write(tmp_path, meta(parent_thread_id=SESSION), name=SESSION[:-1] + "4")
    env = {"CODEX_HOME": str(tmp_path)}
    assert files_of(Path("/home/ann/shop"), env) == [mine]
    assert files_of(Path("/home/ann"), env) != [mine]
