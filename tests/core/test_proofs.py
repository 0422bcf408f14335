"""What proves unfinished work by its structure, and the look-alikes that prove nothing."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript

PASSED = "7 passed in 0.10s"
FAILED = "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s"


def bash(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall(command, "bash", "completed", {"command": command}, output, exit=code)


def edit(path: str = "src/a.py", old: str = "x = 1", new: str = "x = 2") -> ToolCall:
    return ToolCall(path, "edit", "completed", {"filePath": path, "oldString": old, "newString": new})


TEST = bash("pytest -q", PASSED)
RED = bash("pytest -q", FAILED, 1)


def judged(ask: str | tuple[str, ...], *calls: ToolCall, final: str = "Done.") -> Evidence:
    asked = (ask,) if isinstance(ask, str) else ask
    messages = (
        *(Message(f"u{i}", "user", i + 1, text, human=True) for i, text in enumerate(asked)),
        Message("a", "assistant", 8, calls=calls, finish="tool-calls"),
        Message("z", "assistant", 9, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/repo"))


@pytest.mark.parametrize(
    "ask",
    [
        "Speed it up. cargo test must stay green.",
        "Make it work; ./gradlew check has to pass.",
        "Mach es schneller, make test muss grün bleiben.",
        "Accélère le calcul ; npm test doit passer.",
        "Haz el cambio, go test tiene que pasar.",
        "Make it faster and keep `go test ./...` green",
        "Fix the parser. The tests must stay green.",
    ],
)
def test_a_command_that_must_pass_is_asked_for(ask: str) -> None:
    """I24: a check named as a command, quoted or not, has to run after the last edit."""
    rows = judged(ask, TEST, edit()).open
    assert [(r.kind, r.topic) for r in rows] == [("unmet", "tests")]
    assert not judged(ask, edit(), bash("cargo test && ./gradlew check && make test && npm test")).open


@pytest.mark.parametrize("ask", ["The upload should pass the token", "Fix it: the badge must be green"])
def test_other_things_pass_too(ask: str) -> None:
    """I24: "pass" and "green" alone ask for no check."""
    assert "tests" not in judged(ask, edit()).asks


@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((TEST, edit(), RED), "The failure is unrelated to my change.", True),
        ((TEST, edit(), RED), "It is a pre-existing failure.", True),
        ((RED, edit(), RED), "It is a pre-existing failure.", False),
        ((edit(), RED), "The failing `test_x` is unrelated.", False),
        ((TEST, edit(), RED), "`test_x` is flaky.", False),
        ((bash("pytest tests/test_b.py", PASSED), edit(), RED), "The failure is unrelated.", False),
    ],
)
def test_what_passed_before_the_work_is_no_old_failure(
    calls: tuple[ToolCall, ...], final: str, *, is_open: bool
) -> None:
    """I24: a check that passed before the first edit and fails after it was broken by this work."""
    assert bool(judged("Cache the balance", *calls, final=final).open) is is_open


ESLINT = (
    "/repo/scripts/old.js\n  4:7  error  'fs' is not used  no-unused\n\n✖ 1 problem (1 error, 0 warnings)"
)


@pytest.mark.parametrize(
    ("ask", "written", "is_open"),
    [
        ("Add a filter", "src/a.js", False),
        ("Add a filter", "scripts/old.js", True),
        ("Add a filter and run eslint", "src/a.js", True),
    ],
)
def test_lint_findings_in_files_nobody_wrote(ask: str, written: str, *, is_open: bool) -> None:
    """I24: a style checker's findings in untouched files are old, unless lint was asked for."""
    found = judged(ask, edit(written), bash("npx eslint .", ESLINT, 1))
    assert bool(found.open) is is_open
    (check,) = found.of("check")
    assert check.settled is not is_open


def test_a_type_checker_may_blame_an_untouched_file() -> None:
    """I24: what one file says can break another for a type checker, so its findings count."""
    out = "src/other.py:3: error: Missing argument\nFound 1 error in 1 file (checked 9 source files)"
    assert judged("Add a filter", edit(), bash("mypy .", out, 1)).open


BENT = edit("tests/test_a.py", "assert tax(10) == 517", "assert tax(10) == 500")


@pytest.mark.parametrize(
    ("ask", "calls", "is_open"),
    [
        ("tax() is wrong. Correct the calculation.", (RED, BENT, TEST), True),
        ("tax() is wrong. Correct the calculation.", (RED, BENT, edit("src/tax.py"), TEST), False),
        ("tax() is wrong. Correct the calculation.", (BENT, TEST), False),
        ("Update the expected values of the tests", (RED, BENT, TEST), False),
    ],
)
def test_expectations_bent_to_the_bug(ask: str, calls: tuple[ToolCall, ...], *, is_open: bool) -> None:
    """I24: other expected values in place of the change that was asked for are evasion."""
    assert [r.kind for r in judged(ask, *calls).open] == (["tests_changed"] if is_open else [])


def test_a_test_mended_in_the_test_is_for_a_judge() -> None:
    """I24: "fix the failing test" may be met in the test: a closed row, so that no rule calls it done."""
    (row,) = judged("Fix the failing test test_x", RED, BENT, TEST).of("tests_changed")
    assert not row.open
    assert not row.settled


@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Add search: 1) a migration, 2) the query, 3) a script scripts/backfill.py that fills it", "Done."),
        ("Add search and write a small script tools/fill.sh", "Search works."),
        ("Füge die Suche hinzu und schreibe ein Skript tools/fill.py", "Die Suche geht."),
        ("Ajoute la recherche et crée un fichier outils/remplir.py", "La recherche marche."),
        ("Convert src/a.py, src/b.py and src/c.py to dataclasses", "Converted."),
        ("Convert `src/a.py` and `src/c.py` to dataclasses", "Converted."),
    ],
)
def test_a_named_file_that_was_never_written(ask: str, final: str) -> None:
    """I24: a new file, or one of a list of files to change, that nothing wrote."""
    (row,) = judged(ask, edit(), edit("src/b.py"), TEST, final=final).open
    assert "it was not written" in row.text


@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Fix the crash when a script tools/fill.py is loaded", "Done."),
        ("Speed up the import of a file data/big.json", "Done."),
        ("Fix the cycle between src/a.py and src/c.py", "Done."),
        ("Fix the failing tests of src/a.py, src/b.py and src/c.py", "Done."),
        ("Replace print by logging in src/a.py and src/c.py", "Done."),
        ("Convert src/a.py, src/b.py and src/c.py to dataclasses", "Converted; c.py needed no change."),
    ],
)
def test_a_named_file_that_need_not_be_written(ask: str, final: str) -> None:
    """I24: a file that is named as the place or the cause proves nothing."""
    assert not judged(ask, edit(), edit("src/b.py"), TEST, final=final).open


FIRST = "Validate the iban field in the application form"
FORM = edit("src/form.py", "def iban(): pass", "def iban(field): return validate(field, application)")


@pytest.mark.parametrize(
    ("later", "final", "is_open"),
    [
        ("and the error messages have to be in German, users don't speak English", "IBAN field done.", True),
        ("the export button needs to carry a tooltip with the keyboard shortcut", "IBAN field done.", True),
        ("and the error messages have to be in German", "Error messages are German now.", False),
        ("I have to leave for the airport soon, hurry please", "IBAN field done.", False),
        ("die Meldungen müssen auf Deutsch sein, bitte höflich formuliert", "IBAN field done.", False),
    ],
)
def test_a_wish_typed_during_the_work(later: str, final: str, *, is_open: bool) -> None:
    """I24: a later message that obliges and that nothing written, run or said speaks of."""
    assert bool(judged((FIRST, later), FORM, TEST, final=final).open) is is_open


@pytest.mark.parametrize(
    "final",
    [
        "PR 3 is open. Tell me when she has approved, and I'll merge it.",
        'The template compiles. Run `az login` in a terminal, then say "go on" and I\'ll deploy to staging.',
        "Ping me once the certificate is there.",
        "Der PR ist offen. Sag Bescheid, sobald sie zugestimmt hat.",
        "La PR est ouverte. Préviens-moi dès que c'est validé.",
        "La PR está abierta. Avísame cuando la aprueben.",
        "O PR está aberto. Me avise quando ela aprovar.",
    ],
)
def test_it_is_the_persons_turn(final: str) -> None:
    """I17: the agent says what it waits for and what it does then; no more is left to it."""
    found = judged("Fix it, open a PR and merge it once Mira has approved", edit(), TEST, final=final)
    assert found.ending == "question"
    assert not [r for r in found.of("offer") if r.open]


@pytest.mark.parametrize(("heading", "only_extras"), [("Next steps (optional)", True), ("Next steps", False)])
def test_optional_next_steps(heading: str, *, only_extras: bool) -> None:
    """I24: a list that calls itself optional holds back nothing; another list may."""
    final = f"Renamed; all tests pass.\n\n## {heading}\n- Tell the users in the newsletter"
    found = judged("Rename the package foo to bar", edit(), TEST, final=final)
    assert found.ending == "next_steps"
    assert bool(found.of("offer")) is only_extras


def test_red_ci_after_a_push_without_edits() -> None:
    """I24: CI that was to be green and was last seen red is unfinished, with no file written too."""
    checks = bash("gh pr checks", "unit\tfail\t22s\thttps://github.com/a/b/actions/1\n", 1)
    push = bash("git push", "   1a2b3c4..5d6e7f8  main -> main")
    (row,) = judged("Push and make sure CI is green", push, checks, final="Pushed.").open
    assert row.topic == "ci"
    told = "CI fails because the runner has no disk left."
    assert not judged("Push and make sure CI is green", push, checks, final=told).open
