"""Evidence rows: what a transcript proves, and above all what it doesn't."""

from __future__ import annotations

import itertools
import time

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence, Row
from daemon.core.transcript import Message, Todo, ToolCall, Transcript

_ids = itertools.count()

PASSED = "7 passed in 0.10s"
FAILED = "2 failed, 5 passed in 0.12s"
REJECTED = "The user rejected permission to use this specific tool call."


def bash(command: str, output: str = "", exit_code: int | None = 0, **more: str) -> ToolCall:
    arguments: dict[str, object] = {"command": command, **more}
    return ToolCall(f"c{next(_ids)}", "bash", "completed", arguments, output, exit=exit_code)


def edit(path: str = "src/a.py", tool: str = "edit") -> ToolCall:
    return ToolCall(f"c{next(_ids)}", tool, "completed", {"filePath": path})


def failing(tool: str, error: str = "oldString not found", **arguments: object) -> ToolCall:
    return ToolCall(f"c{next(_ids)}", tool, "error", arguments, error=error)


TODO_CALL = ToolCall("todo", "todowrite", "completed", {})


def session(
    *calls: ToolCall,
    final: str = "Done.",
    ask: str = "Fix the bug",
    todos: tuple[Todo, ...] = (),
    finish: str = "stop",
    agent: str = "build",
) -> Transcript:
    """One task: the request, one message with ``calls``, and the final text."""
    return Transcript(
        "ses",
        (
            Message("u1", "user", 1, ask, human=True),
            Message("a1", "assistant", 2, "", finish="tool-calls", calls=calls, agent=agent),
            Message("a2", "assistant", 3, final, finish=finish, agent=agent),
        ),
        todos=todos,
        directory="/repo",
    )


def the_check(evidence: Evidence) -> Row:
    (row,) = evidence.of("check")
    return row


class TestChecks:
    def test_failed_after_the_last_edit_is_open(self) -> None:
        """I24: the tool result decides, not what the final text says about it."""
        row = the_check(collect(session(edit(), bash("pytest -q", FAILED, 1), final="All tests pass!")))
        assert (row.outcome, row.position, row.open) == ("failed", "after_last_write", True)
        assert row.command == "pytest -q"
        assert row.detail == FAILED

    def test_failed_then_passed_is_answered(self) -> None:
        """A run that fails before the fix and passes after it is how work goes."""
        evidence = collect(session(bash("pytest", FAILED, 1), edit(), bash("pytest -q", PASSED)))
        assert the_check(evidence).outcome == "passed"
        assert not evidence.open

    def test_failed_before_the_last_edit_and_never_again(self) -> None:
        """The row says that nothing ran since."""
        row = the_check(collect(session(edit(), bash("pytest", FAILED, 1), edit())))
        assert (row.position, row.open) == ("before_last_write", True)
        assert "not run again" in row.text

    def test_a_broader_pass_answers_a_narrow_failure(self) -> None:
        """Superseding goes by scope."""
        evidence = collect(session(edit(), bash("pytest tests/test_a.py", FAILED, 1), bash("pytest", PASSED)))
        assert not evidence.open

    def test_a_narrower_pass_without_an_edit_answers_nothing(self) -> None:
        """The full run still stands."""
        calls = (edit(), bash("pytest", FAILED, 1), bash("pytest tests/test_a.py", PASSED))
        assert len(collect(session(*calls)).open) == 1

    def test_a_narrower_pass_of_what_failed_is_enough(self) -> None:
        """The failing file was named, fixed and run again."""
        output = f"FAILED tests/test_a.py::test_x - assert\n{FAILED}"
        calls = (edit(), bash("pytest", output, 1), edit(), bash("pytest tests/test_a.py", PASSED))
        assert not collect(session(*calls)).open
        calls = (edit(), bash("pytest", output, 1), edit(), bash("pytest tests/test_b.py", PASSED))
        assert len(collect(session(*calls)).open) == 1

    def test_a_partial_run_after_the_fix_is_not_held_against_it(self) -> None:
        """What failed isn't named, the person's agent ran a part: doubtful, so quiet."""
        calls = (edit(), bash("pytest", FAILED, 1), edit(), bash("pytest -k foo", PASSED))
        assert not collect(session(*calls)).open

    def test_another_tool_answers_nothing(self) -> None:
        """``ruff`` passing says nothing about ``pytest``."""
        calls = (edit(), bash("pytest", FAILED, 1), bash("ruff check .", "All checks passed!"))
        assert [r.command for r in collect(session(*calls)).open] == ["pytest"]

    def test_masked_failures_are_read_from_the_summary(self) -> None:
        """I24: ``| tail`` hides the exit code, not the summary line."""
        row = the_check(collect(session(edit(), bash("pytest 2>&1 | tail -5", f"...\n{FAILED}\n", 0))))
        assert row.open
        row = the_check(collect(session(edit(), bash("pytest || true", "", 0))))
        assert (row.outcome, row.open) == ("unknown", False)

    def test_an_unknown_run_hides_a_failure_only_after_an_edit(self) -> None:
        """Looking at the same failure through ``grep`` doesn't make it go away."""
        look = bash("pytest | grep -c x", "3")
        assert len(collect(session(edit(), bash("pytest", FAILED, 1), look)).open) == 1
        assert not collect(session(edit(), bash("pytest", FAILED, 1), edit(), look)).open

    def test_two_checks_in_one_call(self) -> None:
        """A chain that stops says which one failed only where the output does."""
        evidence = collect(
            session(edit(), bash("ruff check . && pytest", f"All checks passed!\n{FAILED}", 1))
        )
        assert [(r.command, r.outcome) for r in evidence.of("check")] == [
            ("ruff check .", "passed"),
            ("pytest", "failed"),
        ]

    def test_a_folder_is_part_of_the_scope(self) -> None:
        """The command to type again names the folder."""
        calls = (
            edit(),
            bash("cd api && npm test", "Tests: 1 failed, 1 total", 1),
            bash("npm test", "", 0, workdir="/repo/web"),
        )
        (row,) = collect(session(*calls)).open
        assert row.command == "cd api && npm test"

    def test_stashed_runs_are_left_out(self) -> None:
        """A look at the old state under ``git stash`` is no run of this work."""
        calls = (edit(), bash("pytest", PASSED), bash("git stash && pytest; git stash pop", FAILED, 0))
        evidence = collect(session(*calls))
        assert [r.outcome for r in evidence.of("check")] == ["passed"]
        assert not evidence.open

    @pytest.mark.parametrize(
        "calls",
        [
            (edit(), bash("grep -r foo .", "", 1)),
            (edit(), bash("test -f x", "", 1)),
            (edit(), bash("diff a b", "1c1", 1)),
            (edit(), bash("pytest", "bash: pytest: command not found", 127)),
            (edit(), bash("npm test", "npm error Missing script: test", 1)),
            (edit(), bash("python repro.py", "Traceback", 1)),
            (bash("pytest", FAILED, 1),),
            (edit(), bash("pytest", "", None)),
            (edit("README.md"), bash("pytest", FAILED, 1)),
            (edit(), bash("pytest", FAILED, 1), bash("pytest", PASSED), edit()),
        ],
    )
    def test_nothing_open(self, calls: tuple[ToolCall, ...]) -> None:
        """Look-ups, runs that never started, and runs without a change prove nothing."""
        assert not collect(session(*calls)).open

    @pytest.mark.parametrize(
        ("ask", "final"),
        [
            ("Fix it", "Done. The 2 failing tests are pre-existing and unrelated to this change."),
            ("Fix it", "The remaining failures also fail on main."),
            ("Write a failing test for the bug", "Done."),
            ("Add a test that fails because of #12, and don't fix it", "Done."),
        ],
    )
    def test_excused_failures_are_left_to_a_judge(self, ask: str, final: str) -> None:
        """The row stays, with its outcome; it just doesn't prove anything by itself."""
        row = the_check(collect(session(edit(), bash("pytest", FAILED, 1), ask=ask, final=final)))
        assert (row.outcome, row.open) == ("failed", False)

    @pytest.mark.parametrize(
        "ask", ["Fix the failing tests", "Fix the test that fails", "Make the red tests green"]
    )
    def test_asking_for_a_fix_is_no_excuse(self, ask: str) -> None:
        """A request about failing tests doesn't ask for failing tests."""
        assert collect(session(edit(), bash("pytest", FAILED, 1), ask=ask)).open

    def test_documents_do_not_age_a_run(self) -> None:
        """A README edit after the tests leaves them the last word."""
        row = the_check(collect(session(edit(), bash("pytest", PASSED), edit("README.md"))))
        assert row.position == "after_last_write"

    def test_earlier_tasks_are_not_looked_at(self) -> None:
        """I28: only the work since this task's first message counts."""
        old = session(edit(), bash("pytest", FAILED, 1)).messages
        new = (
            Message("u2", "user", 9, "Thanks. What is X?", human=True),
            Message("a9", "assistant", 10, "X is Y."),
        )
        evidence = collect(Transcript("ses", (*old, *new)))
        assert (evidence.tool_calls, evidence.open) == (0, ())


class TestOtherRows:
    def test_requests_are_numbered_and_cut(self) -> None:
        """I28: steering in the middle of a turn belongs to the request; I4: feedback doesn't."""
        messages = (
            Message("u1", "user", 1, "x" * 900, human=True),
            Message("a1", "assistant", 2, "", finish="tool-calls", calls=(edit(),)),
            Message("u2", "user", 3, "and Y", human=True),
            Message("a2", "assistant", 4, "Done.", finish="stop"),
            Message("f1", "user", 5, "## Reflection-3: Task Incomplete", order="o1"),
            Message("a3", "assistant", 6, "Really done.", finish="stop"),
        )
        rows = collect(Transcript("ses", messages)).rows
        assert [r.kind for r in rows] == ["requirement", "requirement", "write", "ending"]
        assert len(rows[0].text) == 300
        assert rows[1].text == "and Y"
        assert [r.id for r in rows] == ["R1", "R2", "E1", "E2"]

    def test_writes(self) -> None:
        """Shell writes count; scratch files don't; failed edits don't."""
        calls = (
            edit("a.py"),
            bash("sed -i s/a/b/ b.py"),
            bash("echo x > /tmp/y"),
            failing("edit", filePath="c.py"),
        )
        evidence = collect(session(*calls, edit("d.md")))
        assert (evidence.writes, evidence.code_writes) == (3, 2)
        assert evidence.of("write")[0].text == "files written: a.py, b.py, d.md; last write: d.md (edit)"

    def test_todos_count_only_when_used_here(self) -> None:
        """A list left over from an earlier task proves nothing."""
        todos = (Todo("done", "completed"), Todo("write docs", "pending"), Todo("dropped", "cancelled"))
        assert not collect(session(edit(), todos=todos)).open
        (row,) = collect(session(TODO_CALL, edit(), todos=todos)).open
        assert (row.kind, row.detail) == ("todo", "write docs")

    def test_last_tool_error_is_open(self) -> None:
        """The work ended in an error that nothing answered."""
        (row,) = collect(session(edit(), failing("write", filePath="b.py"))).open
        assert row.kind == "tool_error"
        assert "b.py" in row.text

    @pytest.mark.parametrize(
        ("calls", "final"),
        [
            ((failing("edit"), edit()), "Done."),
            ((failing("edit", filePath="b.py"), bash("ls")), "Done."),
            ((edit(), failing("read", filePath="nope")), "The file does not exist."),
            ((edit(), failing("webfetch", url="http://x")), "Done."),
            ((edit(), failing("github_get_issue")), "Done."),
            ((edit(), failing("edit")), "I could not edit it. Which file do you mean?"),
            ((edit(), failing("bash", REJECTED, command="rm x")), "Okay."),
            ((edit(), failing("bash", "Tool execution aborted")), "Okay."),
        ],
    )
    def test_tool_errors_that_are_none(self, calls: tuple[ToolCall, ...], final: str) -> None:
        """Answered errors, look-ups, questions to the person and refusals are not open."""
        assert not collect(session(*calls, final=final)).open

    def test_refusals_have_their_own_row(self) -> None:
        """I11: what the person refused or stopped is no error; a later success of the tool settles it."""
        evidence = collect(session(edit(), failing("bash", REJECTED, command="git push")))
        assert [r.text for r in evidence.of("denied")] == ["the person refused or stopped bash (git push)"]
        assert not evidence.of("tool_error")
        assert not collect(session(failing("bash", REJECTED, command="rm x"), bash("ls"))).of("denied")
        assert collect(session(bash("sleep 9", "User aborted the command", None))).of("denied")

    @pytest.mark.parametrize(
        ("final", "finish", "kind", "is_open"),
        [
            ("Let me now run the tests:", "stop", "announced", True),
            ("Half a", "length", "cut_off", True),
            ("Shall I?", "stop", "question", False),
            ("Done.\n\nNext steps:\n- a", "stop", "next_steps", False),
            ("", "stop", "empty", False),
            ("Done.", "stop", "statement", False),
        ],
    )
    def test_endings(self, final: str, finish: str, kind: str, is_open: bool) -> None:
        """I31: only an announced or broken-off end proves something."""
        evidence = collect(session(edit(), final=final, finish=finish))
        assert evidence.ending == kind
        assert evidence.of("ending")[0].open is is_open

    def test_a_plan_announces_nothing(self) -> None:
        """I25: asked for a plan, "I'll add X" is the answer; so it is for the plan agent."""
        final = "First the parser. Next, I'll add the tests."
        assert (
            collect(session(final=final, ask="Outline a plan, don't change anything")).ending == "statement"
        )
        assert collect(session(final=final, agent="plan")).ending == "statement"
        assert collect(session(final=final)).ending == "announced"

    def test_text_before_calls_is_no_ending(self) -> None:
        """In a message with tool calls the text may stand before them."""
        message = Message(
            "a", "assistant", 2, "Let me run the tests:", finish="stop", calls=(bash("pytest", PASSED),)
        )
        evidence = collect(Transcript("s", (Message("u", "user", 1, "Hi", human=True), message)))
        assert evidence.ending == "statement"


def test_an_empty_transcript_has_an_ending_only() -> None:
    """I36: nothing to read is no error."""
    evidence = collect(Transcript("ses"))
    assert [r.kind for r in evidence.rows] == ["ending"]
    assert evidence.ending == "empty"


def test_a_lasting_shell_keeps_its_folder() -> None:
    """Claude Code's Bash stays where the last ``cd`` went."""

    def run(command: str, output: str, code: int) -> ToolCall:
        return ToolCall(f"c{next(_ids)}", "Bash", "completed", {"command": command}, output, exit=code)

    calls = (edit(), run("cd api && pytest", FAILED, 1), run("pytest", PASSED, 0))
    assert not collect(session(*calls)).open


def test_a_megabyte_of_work_is_quick() -> None:
    """Cost grows with the transcript, not with its square."""
    calls = [
        c
        for i in range(300)
        for c in (edit(f"f{i}.py"), bash(f"pytest t{i}.py | tail", "x\n" * 1700 + FAILED))
    ]
    before = time.perf_counter()
    evidence = collect(session(*calls))
    assert time.perf_counter() - before < 2
    assert len(evidence.of("check")) <= 20
