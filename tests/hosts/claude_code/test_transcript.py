"""Claude Code's transcript file: read bit by bit, from the end, replaced, torn, late and huge."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.core.errors import Unavailable
from daemon.hosts.claude_code.branch import Bounds
from daemon.hosts.claude_code.transcript import Reach, TranscriptReader, transcript_of
from daemon.hosts.jsonl import BLOCK
from tests.support.hosts.claude_code_story import FOLDER, Story

if TYPE_CHECKING:
    from collections.abc import Callable

FAR = Reach(window=1 << 40)
QUIET = settings(suppress_health_check=[HealthCheck.too_slow])


def ours(_: str) -> bool:
    return True


def reader(path: Path, reach: Reach | None = None) -> TranscriptReader:
    return TranscriptReader(path, is_ours=ours, reach=reach)


def talk(n: int = 3, *, old: bool = False) -> Story:
    story = Story(old=old)
    for i in range(n):
        story.human(f"task {i}")
        story.bash(f"echo {i}", f"{i}")
        story.say(f"did {i}")
        story.stopped()
    return story


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_a_file_that_is_not_there_yet(path: Path) -> None:
    """At the first hooks there is no file: an empty transcript, and the lines once they are there."""
    live = reader(path)
    assert live.read("x").messages == ()
    assert not live.found
    path.write_bytes(b"")
    assert live.read().messages == ()
    path.write_bytes(talk().data())
    assert live.read("did 2").turn is not None
    assert live.found


def test_a_lagging_file_says_that_the_final_text_is_not_there(path: Path) -> None:
    """The Stop hook may come before the line: the text of an earlier turn is not taken for it."""
    story = talk(1)
    story.human("again")
    path.write_bytes(story.data())
    live = reader(path)
    live.read("did 0")
    assert not live.found
    story.say("did 0 \n")
    path.write_bytes(story.data())
    live.read("did 0")
    assert live.found
    live.read("something else")
    assert not live.found


@pytest.mark.parametrize("how", ["replaced", "truncated", "rewritten", "gone"])
def test_a_changed_file_is_read_anew(path: Path, how: str) -> None:
    """Rotation, truncation and rewriting in place are seen; nothing of the old file stays."""
    path.write_bytes(talk(4).data())
    live = reader(path)
    live.read()
    other = talk(8 if how == "rewritten" else 2, old=True)
    other.human("new")
    if how == "replaced":
        (path.parent / "new").write_bytes(other.data())
        (path.parent / "new").replace(path)
    elif how == "gone":
        path.unlink()
        assert live.read().messages == ()
        path.write_bytes(other.data())
    else:
        path.write_bytes(other.data())
    assert live.read() == transcript_of(other.data(), "f")


def test_what_is_no_file_is_refused(path: Path) -> None:
    """A FIFO is not waited for, a folder is not read, and what may not be read is said."""
    os.mkfifo(path)
    for bad in (path, path.parent, Path("/dev/zero"), Path("x\0y")):
        with pytest.raises(Unavailable):
            reader(bad).read()


def test_a_given_folder_counts(path: Path) -> None:
    """The hook knows the project; without it the first line does."""
    path.write_bytes(talk().data())
    assert TranscriptReader(path, is_ours=ours, directory="/project").read().directory == "/project"
    assert reader(path, Reach(window=500)).read().directory == FOLDER


def test_the_end_of_a_big_file_is_enough(path: Path) -> None:
    """A file of 300 MB (sparse) is not read for a task in its last lines."""
    with path.open("wb") as file:
        file.write(b'{"type":"api-request-blob","x":"')
        file.seek(300 << 20)
        file.write(b'"}\n' + talk(8).data())
    tracemalloc.start()
    try:
        found = reader(path).read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.messages == transcript_of(talk(8).data(), "f").messages
    assert peak < 8 << 20


def test_long_lines_and_blocks(path: Path) -> None:
    """Lines of a megabyte and more, bulky or not, across blocks."""
    story = talk(1)
    story.raw(type="file-history-snapshot", x="y" * (3 * BLOCK + 7))
    story.human("big")
    story.bash("cat", "z" * (2 * BLOCK))
    story.raw(type="api-request-blob", x="y" * (BLOCK - 100))
    story.say("done")
    path.write_bytes(story.data())
    found = reader(path).read("done")
    assert found == transcript_of(story.data(), "f")
    assert found.calls[0].cut > BLOCK


@pytest.mark.shows("I44")
def test_a_long_task_has_bounded_memory(path: Path) -> None:
    """100,000 lines of one task; the request and the newest calls stay."""
    with path.open("wb") as file:
        story = Story(old=True)
        story.human("never ends")
        for n in range(33_333):
            story.bash(f"echo {n}", "x" * 200)
            if not n % 100:
                file.write(story.data())
                story.lines.clear()
        file.write(story.data())
    assert path.stat().st_size > 30 << 20
    live = reader(path, Reach(window=1 << 40, bounds=Bounds(chars=1 << 20, lines=2_000)))
    found = live.read()
    assert found.task is not None
    assert found.task.text == "never ends"
    assert found.calls[-1].input == {"command": "echo 33332"}
    assert 1_000 <= len(found.calls) <= 2_000
    held = live._file._fold
    assert held is not None
    assert len(held._entries) <= 4_001
    assert len(held._places) <= 4_001


def test_only_what_was_appended_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn costs what it appended, whatever the size of the file."""
    story = talk(50)
    path.write_bytes(story.data())
    live = reader(path)
    live.read()
    size = path.stat().st_size
    story.human("more")
    story.say("done")
    path.write_bytes(story.data())
    asked: list[int] = []
    plain = os.preadv

    def counted(fd: int, buffers: list[memoryview], offset: int) -> int:
        asked.append(offset)
        return plain(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", counted)
    assert live.read("done").turn is not None
    assert live.found
    assert min(asked) >= size


# --- any story, any split, any window


def repeat_a_line(story: Story) -> None:
    """The host wrote a line twice; not one without a parent, which at a file's end looks like a new task."""
    line = story.lines[len(story.lines) // 2] if story.lines else {}
    if line.get("parentUuid"):
        story.lines.append(line)


VERBS: list[Callable[[Story], object]] = [
    lambda s: s.human("do it"),
    lambda s: s.human("do it", promptId="same"),
    lambda s: s.bash("pytest", "1 failed", 1),
    lambda s: s.tool("TodoWrite", {"todos": [{"content": "a", "status": "pending"}]}, "ok"),
    lambda s: s.say("Done."),
    lambda s: s.say("Cut", stop="max_tokens"),
    lambda s: s.stopped(),
    lambda s: s.user([{"type": "text", "text": "[Request interrupted by user]"}]),
    lambda s: s.user("<task-notification>rfl_0123456789abcdef0123</task-notification>"),
    lambda s: s.user("caveat", isMeta=True),
    lambda s: s.put(
        "attachment", attachment={"type": "queued_command", "prompt": "also", "commandMode": "prompt"}
    ),
    lambda s: s.put("system", parent=None, subtype="compact_boundary", compactMetadata={"trigger": "auto"}),
    lambda s: s.user("summary", isCompactSummary=True),
    lambda s: s.raw(type="api-request-blob", x="y" * 400),
    lambda s: s.raw(type="garbage"),
    repeat_a_line,
]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    story = Story(old=draw(st.booleans()))
    marks: list[str | None] = [None]
    for step in draw(st.lists(st.integers(-3, len(VERBS) - 1), min_size=3, max_size=40)):
        if step < 0:  # take something back
            story.tip = marks[max(0, len(marks) + step)]
        else:
            marks.append(story.tip)
            VERBS[step](story)
    return story


@QUIET
@given(story=stories(), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_any_split_into_appends_gives_the_same(story: Story, cuts: list[float]) -> None:
    """Reading bit by bit ends where reading at once does."""
    data = story.data()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        live, at = reader(path), 0
        for end in sorted({int(c * len(data)) for c in cuts} | {len(data)}):
            with path.open("ab") as file:
                file.write(data[at:end])
            at = end
            found = live.read()
        whole = reader(path, FAR).read()
    assert found == whole
    assert whole.messages == transcript_of(data, "s").messages


@QUIET
@given(story=stories(), window=st.integers(1, 3_000), cuts=st.lists(st.floats(0, 1), max_size=3))
def test_any_window_gives_the_same(story: Story, window: int, cuts: list[float]) -> None:
    """Looking from the end backwards finds the same task and the same earlier requests."""
    data = story.data()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        live, at = reader(path, Reach(window=window)), 0
        for end in sorted({int(c * len(data)) for c in cuts} | {len(data)}):
            with path.open("ab") as file:
                file.write(data[at:end])
            at = end
            found = live.read()
        whole = reader(path, FAR).read()
    assert found == whole


@pytest.mark.shows("I44")
@QUIET
@given(story=stories(), chars=st.integers(0, 4_000), lines=st.integers(1, 12), cut=st.floats(0, 1))
def test_thinning_does_not_depend_on_the_reads(story: Story, chars: int, lines: int, cut: float) -> None:
    """What is kept of a long task depends on its lines alone."""
    reach = Reach(window=1 << 40, bounds=Bounds(chars=chars, lines=lines))
    data = story.data()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        live = reader(path, reach)
        path.write_bytes(data[: int(cut * len(data))])
        live.read()
        path.write_bytes(data)
        assert live.read() == reader(path, reach).read()


@pytest.mark.shows("I36")
@QUIET
@given(noise=st.lists(st.binary(max_size=60), max_size=12), seed=st.randoms(use_true_random=False))
def test_any_bytes_are_read_without_harm(noise: list[bytes], seed: object) -> None:
    """Whatever the file holds, reading ends with a transcript."""
    lines = talk(2).data().split(b"\n")
    for i, junk in enumerate(noise):
        lines.insert((i * 7) % len(lines), junk.replace(b"\n", b"") + json.dumps(i).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(b"\n".join(lines))
        assert [m.text for m in reader(path).read("did 1").messages if m.human] == ["task 0", "task 1"]
