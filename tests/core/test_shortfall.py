"""Where work falls short of a limit, a name, a command or a checker; and the look-alikes that stay quiet."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript

PASSED = "7 passed in 0.10s"


def bash(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall(command, "bash", "completed", {"command": command}, output, exit=code)


def edit(path: str = "src/a.py", old: str = "x = 1", new: str = "x = 2") -> ToolCall:
    return ToolCall(path, "edit", "completed", {"filePath": path, "oldString": old, "newString": new})


TEST = bash("pytest -q", PASSED)


def judged(ask: str, *calls: ToolCall, final: str = "Done.") -> Evidence:
    messages = (
        Message("u", "user", 1, ask, human=True),
        Message("a", "assistant", 2, calls=calls, finish="tool-calls"),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/repo"))


@pytest.mark.parametrize(
    ("ask", "final", "is_open"),
    [
        ("Bring the p95 of /search under 200 ms.", "p95 went down from 900 ms to 340 ms.", True),
        ("Bring the p95 of /search under 200 ms.", "p95 went down from 900 ms to 140 ms.", False),
        ("Bring the p95 of /search under 200 ms.", "p95 is fine now; 3 cases took 1.2 MB.", False),
        ("Bring the start below 2 s.", "It starts in 800 ms.", False),
        ("Bring the start below 2 s.", "It starts in 2.4 s, because the disk can't go faster.", False),
        ("Raise the coverage to at least 90%.", "Coverage is 84% now, up from 61%.", True),
        ("Raise the coverage to at least 90%.", "Coverage is 92% now, up from 61%.", False),
        ("Bring die Abdeckung auf mindestens 90 %.", "Die Abdeckung liegt bei 84 %.", True),
        ("Mach das Bundle kleiner als jetzt, unter 300 KB", "Das Bundle hat 1,2 MB.", True),
        ("Réduis l'image à moins de 200 MB", "L'image fait 350 MB.", True),
    ],
)
def test_limits_in_figures(ask: str, final: str, *, is_open: bool) -> None:
    """I24: open only where every figure of that kind misses the limit and no reason is given."""
    assert bool(judged(ask, edit(), TEST, final=final).open) is is_open


HIT = "src/b.ts:4: getUser(id)\nsrc/c.ts:9: getUser(x)"


@pytest.mark.parametrize(
    ("ask", "found", "final", "is_open"),
    [
        ("Rename getUser to fetchUser everywhere.", HIT, "getUser is now fetchUser.", True),
        ("Replace all calls of `getUser`", HIT, "Replaced.", True),
        ("Renomme getUser en fetchUser", HIT, "C'est fait.", True),
        ("Rename getUser to fetchUser everywhere.", "", "Renamed.", False),
        ("Rename getUser to fetchUser.", "src/b.ts:4: getUserById(id)", "Renamed.", False),
        ("Rename getUser to fetchUser.", "CHANGELOG.md:4: getUser is gone", "Renamed.", False),
        ("Rename getUser to fetchUser.", HIT, "Renamed; two deprecated aliases are left.", False),
        ("Replace the date picker in getUser", HIT, "Replaced.", False),
        ("Rename the function to getUser", HIT, "Renamed.", False),
    ],
)
def test_old_names_that_a_search_still_finds(ask: str, found: str, final: str, *, is_open: bool) -> None:
    """I24: only the last search after the last write counts, and only hits in code."""
    search = bash("git grep -n getUser", found, 0 if found else 1)
    assert bool(judged(ask, edit("src/a.ts"), search, TEST, final=final).open) is is_open
    assert not judged(ask, search, edit("src/a.ts"), TEST, final=final).open


@pytest.mark.parametrize(
    ("ask", "calls", "final", "is_open"),
    [
        ("Add a table and run `make seed` afterwards.", (edit(), TEST), "The table is in.", True),
        ("Füge die Tabelle hinzu und führe `make seed` aus.", (edit(), TEST), "Fertig.", True),
        ("Add a table and run `make seed`.", (edit(), bash("make seed")), "The table is in.", False),
        ("Add a table and run `make seed`.", (edit(),), "I could not run make seed here.", False),
        ("Fix the crash when I run `make seed`.", (edit(), TEST), "Fixed.", False),
        (
            "Add a table and run `make seed`.",
            (edit(), ToolCall("t", "task", "completed", {"prompt": "x"})),
            "Done.",
            False,
        ),
    ],
)
def test_a_quoted_command_that_never_ran(
    ask: str, calls: tuple[ToolCall, ...], final: str, *, is_open: bool
) -> None:
    """I24: a command that was to be run, and of which nothing that ran holds a word."""
    assert bool(judged(ask, *calls, final=final).open) is is_open


@pytest.mark.parametrize(
    ("ask", "new", "final", "is_open"),
    [
        ("Make mypy pass.", "x = f()  # type: ignore", "mypy is green.", True),
        ("Fix all eslint errors.", "// eslint-disable-next-line\nx", "eslint passes.", True),
        ("Fix the clippy warnings.", "#[allow(dead_code)]\nx", "clippy passes.", True),
        ("Make mypy pass.", "x: int = f()", "mypy is green.", False),
        ("Make mypy pass.", "x = f()  # type: ignore", "I had to ignore one finding.", False),
        ("Make mypy pass, ignore what boto says.", "x = f()  # type: ignore", "mypy is green.", False),
        ("Add a filter.", "x = f()  # type: ignore", "Added.", False),
    ],
)
def test_silenced_findings(ask: str, new: str, final: str, *, is_open: bool) -> None:
    """I24: a checker silenced where its findings were to be mended."""
    after = bash("mypy . && npx eslint . && cargo clippy", "Success: no issues found")
    assert bool(judged(ask, edit(new=new), after, final=final).open) is is_open


def test_a_last_command_that_failed_is_for_a_judge() -> None:
    """I24: nobody knows whether it had to work, so it is a closed row and no rule says complete."""
    failed = judged("Add a table", edit(), TEST, bash("psql -f a.sql", "ERROR: no relation", 3))
    assert [r.open for r in failed.of("unmet")] == [False]
    again = judged("Add a table", edit(), TEST, bash("psql -f a.sql", "ERROR", 3), bash("psql -f a.sql"))
    assert not again.of("unmet")


@pytest.mark.parametrize(
    ("ask", "final", "is_open"),
    [
        ("Write a CSV export with gzip compression", "The export works. I did not get to gzip.", True),
        ("Write a CSV export with gzip compression", "Compression is something for another day.", True),
        ("Translate the mails to French and Spanish", "French is in. Spanish remains.", True),
        (
            "Migrate all jobs to the new queue",
            "Three run there; the other jobs are still on the old one.",
            True,
        ),
        ("Übersetze alle Mails", "Zehn sind fertig. Den Rest mache ich im nächsten Schritt.", True),
        ("Traduis les mails", "Trois sont prêts, les mails de facturation manquent encore.", True),
        ("Write a CSV export with gzip", "It works. The docs of the vendor are still missing.", False),
        ("Fix the gzip export", "The cause: the gzip header was still missing.", False),
        ("Write a CSV export with gzip", "Gzip is missing because zlib is not installed.", False),
    ],
)
def test_parts_left_in_plain_words(ask: str, final: str, *, is_open: bool) -> None:
    """I24: the agent's own choice to leave what the request names."""
    assert bool(judged(ask, edit(), TEST, final=final).open) is is_open


@pytest.mark.parametrize(
    "final",
    [
        "That would delete 41 backups for good. Shall I go ahead?",
        "It cannot be undone. Do you want me to continue?",
        "The registry refuses; the account has to be given the reader role by an admin.",
        "The handler is in. I need the webhook secret from your dashboard.",
        "flyctl is not logged in. Please run `flyctl auth login` and start me again.",
    ],
)
def test_only_the_person_can_go_on(final: str) -> None:
    """I17: a warning before a question makes it a real one; so does a thing only the person has."""
    found = judged("Clean up the old backups and set up the webhook", bash("ls", "x"), final=final)
    assert found.ending == "question"
    assert not found.open
