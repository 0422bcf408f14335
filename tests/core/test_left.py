"""What a final text admits to have left: it is seen in five languages, and honest extras stay quiet."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript

PASSED = ToolCall("t", "bash", "completed", {"command": "pytest -q"}, "7 passed in 0.10s", exit=0)


def edit(path: str = "src/handlers/users.py", old: str = "a = 1", new: str = "a = 2") -> ToolCall:
    return ToolCall(path, "edit", "completed", {"filePath": path, "oldString": old, "newString": new})


def judged(ask: str, final: str, *calls: ToolCall) -> Evidence:
    messages = (
        Message("u", "user", 1, ask, human=True),
        Message("a", "assistant", 2, calls=calls or (edit(), PASSED), finish="tool-calls"),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/repo"))


@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Convert all handlers to async", "I converted 3 of the 8 handlers; the tests pass."),
        ("Convert all handlers to async", "Five of twelve handlers are async now."),
        (
            "Convert all handlers to async",
            "Users and orders are async. The other handlers follow the same pattern.",
        ),
        (
            "Convert all handlers to async",
            "Users is async. The remaining handlers still need to be converted.",
        ),
        ("Convert all handlers to async", "I left the admin handlers for a follow-up."),
        ("Convert all handlers to async", "The admin handlers are not converted yet."),
        ("Convert all handlers to async", "I've only converted the users handlers so far."),
        (
            "Convert all handlers to async",
            "Users is async.\n\nRemaining:\n- orders handlers\n- billing handlers",
        ),
        ("Convert all handlers to async", "Users is async.\n\n**Still open:** the billing handlers"),
        (
            "Rename foo to bar everywhere and update the docs",
            "Renamed in src. I stopped here, docs come later.",
        ),
        ("Stell alle Handler auf async um", "Drei von acht Handlern sind umgestellt."),
        ("Stell alle Handler auf async um", "users ist umgestellt, die übrigen Handler folgen später."),
        (
            "Stell alle Handler auf async um",
            "users ist fertig. Noch offen:\n- orders Handler\n- billing Handler",
        ),
        ("Convertis tous les handlers en async", "3 des 8 handlers sont convertis."),
        (
            "Convertis tous les handlers en async",
            "Les autres handlers restent à convertir, pas encore faits.",
        ),
        ("Convierte todos los handlers a async", "Convertí 3 de los 8 handlers."),
        ("Convierte todos los handlers a async", "Los demás handlers quedan pendientes."),
        ("Converte todos os handlers para async", "Converti 3 dos 8 handlers."),
        ("Converte todos os handlers para async", "Os outros handlers ficam para depois."),
        ("Fix the crash when the upload is empty", "I rewrote the parser, but the upload still crashes."),
        ("Make the importer work with XLSX", "The importer doesn't fully work yet."),
    ],
)
def test_admitted(ask: str, final: str) -> None:
    """I31: a part that was asked for and that the text leaves is open."""
    assert judged(ask, final).open


@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Convert all handlers to async", "All 8 handlers are async. 95 of 96 tests ran in under a second."),
        ("Convert all handlers to async", "All 8 handlers are async. The other modules are unchanged."),
        ("Convert all handlers to async", "All 8 of the 8 handlers are async now."),
        ("Convert all handlers to async", "All handlers are async. The remaining tests pass as well."),
        ("Convert all handlers to async", "All handlers are async. A follow-up could drop the old helper."),
        ("Convert all handlers to async", "All handlers are async. You may want to profile it later."),
        (
            "Convert all handlers to async",
            "All 8 done; the vendored one can't be converted because it is generated.",
        ),
        (
            "Convert all handlers, merge once Mira agrees",
            "Converted. Mira has not approved the handlers yet.",
        ),
        ("Stell alle Handler um", "Umgestellt. Mira hat die Handler noch nicht freigegeben."),
        ("Convert all handlers to async", "3 of the 8 handlers were affected; they are async now."),
        ("Convert all handlers to async", "Done. The cache was not filled yet when a handler asked for it."),
        ("Convert all handlers to async", "Done everywhere. I only touched the handlers, nothing else."),
        ("Rename all uses of foo", "Renamed. I opened a separate PR for the unrelated lint findings."),
        (
            "Fix the importer for all files",
            "Fixed. The old importer doesn't fully work when a file is empty.",
        ),
        ("Fix the login bug", "Fixed. I left the unrelated import order for a separate PR."),
        ("Fix the login bug", "Fixed: the token was not refreshed yet when the page asked for it."),
        ("Fix the login bug", "Fixed. Sessions that are not expired yet keep working."),
        ("Fix the login bug", "Fixed.\n\nNext steps (optional):\n- add a rate limit to the login"),
        ("Fix the login bug", "Fixed.\n\nRemaining:\n- nothing"),
        ("Fix the login bug", "Fixed.\n\nOpen points:\n- your review of the login copy"),
        (
            "Only convert the users handler for now",
            "users is async. The other handlers follow the same pattern.",
        ),
        ("Start with the first two handlers", "2 of the 8 handlers are async."),
        ("Make a plan for converting all handlers", "Remaining:\n- orders handlers\n- billing handlers"),
        ("Convert all handlers to async", "6 of the 8 handlers are async; the other two already were."),
        ("Behebe den Login-Fehler", "Behoben. Die übrigen Seiten sind nicht betroffen."),
        ("Corrige le bug de connexion", "Corrigé. Les autres pages ne sont pas touchées."),
        ("How many handlers are async?", "3 of the 8 handlers are async."),
    ],
)
def test_honest(ask: str, final: str) -> None:
    """I31: done work with honest extras, reasons, a narrowed scope or a plan is not open."""
    assert not judged(ask, final).open


@pytest.mark.parametrize(
    "final",
    [
        "I put the foundation in place.",
        "This is a first step.",
        "The main parts work for now.",
        "Basis steht, vorerst.",
    ],
)
def test_smells(final: str) -> None:
    """A wording that only smells of half-done work is a closed row, for a judge to weigh."""
    evidence = judged("Convert the importer to async", final)
    assert [r.open for r in evidence.of("unmet")] == [False]
