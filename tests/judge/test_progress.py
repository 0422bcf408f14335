"""What a case says of a task's progress."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from daemon.core.evidence import FileChange, Row
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.core.verdict import Missing
from daemon.judge.case import Case
from daemon.judge.decide import progress
from daemon.testing import make_case

CHECK = Row(
    "E1", "check", "test at A2: `make test` failed: 2 failed in 0.31 s; failed tests: a; test_b", "failed",
    command="make test", detail="2 failed in 0.31 s", open=True,
)  # fmt: skip


def case(*rows: Row, files: tuple[FileChange, ...] = ()) -> Case:
    made = make_case()
    return replace(made, evidence=replace(made.evidence, rows=rows, files=files))


@pytest.mark.shows("I8")
def test_another_wording_with_the_same_cites_is_the_same_item() -> None:
    """The judge rewords; the row it cites has another number in the next round."""
    first = progress(case(CHECK), (Missing("the tests fail", "E1"),))
    moved_on = case(Row("E1", "ending", "a statement"), replace(CHECK, id="E2"))
    again = progress(moved_on, (Missing("two tests are still red", "E2: see above"),))
    assert first.items == again.items == ("check make test",)


def test_a_quote_of_the_request_is_compared_without_case_and_marks() -> None:
    """An item that cites the request is known by the quote, one that cites nothing by its own words."""
    quotes = (Missing("a", "Make test must pass."), Missing("b", "`make test` must pass"))
    assert len({progress(case(), (q,)).items for q in quotes}) == 1
    assert progress(case(), (Missing("Do it."),)).items == ("do it",)


def test_times_are_no_news_and_results_are() -> None:
    """The same failure in another time says nothing new, nor do our own remarks on it; one failure less and
    another failed test do.
    """
    slower = replace(CHECK, detail="2 failed in 0.47 s")
    remark = replace(
        CHECK, text=CHECK.text.replace(" failed:", " failed (it failed too without the changes):")
    )
    fewer = replace(CHECK, detail="1 failed in 0.31 s")
    other = replace(CHECK, text=CHECK.text.replace("test_b", "test_c"))
    first, *later = (progress(case(row), ()).checks for row in (CHECK, slower, remark, fewer, other))
    assert [checks == first for checks in later] == [True, True, False, False]


def test_a_fresh_secret_is_no_news() -> None:
    """A check that prints another token at each run, and a command that has one, say the same again."""
    first, again = (
        progress(case(row), (Missing("red", "E1"),))
        for row in (
            replace(
                CHECK,
                detail=f"1 failed [redacted:jwt-{n}:40-characters]",
                command=f"make t K=[redacted:jwt-{n}:40-characters]",
            )
            for n in (1, 3)
        )
    )
    assert first == again


def test_the_net_change_counts() -> None:
    """What was tried and taken back leaves the files as they were; a command may have changed its file."""
    edited = FileChange("a.py", "edited", ("A1",), 1, 0, ("+ x",))
    assert progress(case(files=(edited,)), ()).files != progress(case(), ()).files
    again = replace(edited, by=("A1", "A4", "A5"))
    assert progress(case(files=(edited,)), ()).files == progress(case(files=(again,)), ()).files
    ran, reran = (FileChange("a.py", "by_command", by) for by in (("A1",), ("A1", "A4")))
    assert progress(case(files=(ran,)), ()).files != progress(case(files=(reran,)), ()).files


@pytest.mark.shows("I8")
def test_only_the_files_that_an_open_item_cites_count_for_it() -> None:
    """An agent edits a scratch file while the same check fails: nothing that an item cites has changed."""
    item = (Missing("the tests fail", "E1"), Missing("`app.py` lacks the route", "Do it."))
    app, scratch = FileChange("src/app.py", "edited", added=1), FileChange("notes.md", "new", added=1)
    first = progress(case(CHECK, files=(app,)), item)
    beside = progress(case(CHECK, files=(app, scratch)), item)
    on_it = progress(case(CHECK, files=(replace(app, added=2),)), item)
    assert first.files != beside.files
    assert first.cited == beside.cited != on_it.cited


@pytest.mark.shows("I8")
def test_a_row_that_an_item_cites_names_files_too_and_names_are_whole() -> None:
    """A failed check is about the file in its output, not about one whose name only ends or begins alike."""
    item = (Missing("the tests fail", "E1"),)
    row = replace(CHECK, detail="src/app.py:3: AssertionError")
    about, beside = FileChange("src/app.py", "edited", added=1), FileChange("p.py", "edited", added=1)
    longer = FileChange("src/app.p", "edited", added=1)
    stands = progress(case(row), item).cited
    assert progress(case(row, files=(about,)), item).cited != stands
    assert progress(case(row, files=(beside, longer)), item).cited == stands


def test_a_tool_that_nobody_knows_may_have_changed_something() -> None:
    """A tool of another server: each use counts, unless its name says that it only looks."""

    def used(*tools: str) -> str:
        calls = tuple(ToolCall(f"c{i}", tool, "completed") for i, tool in enumerate(tools))
        seen = Transcript(
            "ses_1", (Message("u1", "user", human=True), Message("a1", "assistant", calls=calls))
        )
        return progress(replace(make_case(), transcript=seen), ()).files

    assert used() == used("bash", "read", "db_query") != used("db_insert") != used("db_insert", "db_insert")


@pytest.mark.shows("I8")
def test_the_number_of_a_call_is_no_news() -> None:
    """The same check at a later call, with the same end, says nothing new."""
    first, later = (
        replace(CHECK, text=f"test at {at}: `make test` failed: 2 failed") for at in ("A3", "A12.4")
    )
    assert progress(case(first), ()).checks == progress(case(later), ()).checks
