"""What was asked against what the calls reached: commands, lists, counts, old names; and look-alikes."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript


def bash(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall(command, "bash", "completed", {"command": command}, output, exit=code)


def edit(path: str, old: str = "x = 1", new: str = "x = 2") -> ToolCall:
    return ToolCall(path, "edit", "completed", {"filePath": path, "oldString": old, "newString": new})


def glob(*paths: str) -> ToolCall:
    return ToolCall("g", "glob", "completed", {"pattern": "**"}, "\n".join(paths))


NPM = bash("npm test", "Tests 8 passed (8)")
PYTEST = bash("pytest -q", "8 passed in 1s")
GO = edit("/r/q/q.go")


def judged(ask: str, *calls: ToolCall, final: str = "Done.") -> Evidence:
    messages = (
        Message("u", "user", 1, ask, human=True),
        Message("a", "assistant", 2, calls=calls, finish="tool-calls"),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/r"))


RACE = "fix the race in q.go, go test -race -count=5 ./q has to be clean"
STOPPED = bash("go test -race -count=5 ./q", "go: -race requires cgo", 2)
LOOSE = bash("go test -count=5 ./q", "ok  x/q 1.9s")
GRADLE = "./gradlew :app:ktlintCheck :app:test must be happy. Replace Date by Instant."
SAN = "rewrite parser.c, then make check with CFLAGS=-fsanitize=address must be clean"
E2E = "Fix the login redirect and prove it with npm run e2e."


@pytest.mark.parametrize(
    ("ask", "calls", "final", "is_open"),
    [
        (RACE, (GO, STOPPED, LOOSE), "Clean in 5 runs.", True),
        (RACE, (GO, STOPPED, LOOSE), "-race can't run here, there is no cgo.", False),
        (RACE, (GO, LOOSE), "Clean in 5 runs.", True),
        (RACE, (GO, bash("go test -race -count=5 ./q", "ok  x/q 2s")), "Clean.", False),
        (RACE, (GO, LOOSE, bash("go test -race -count=5 ./q", "ok  x/q 2s")), "Clean.", False),
        (GRADLE, (edit("/r/A.kt"), bash("./gradlew :app:assemble", "BUILD SUCCESSFUL")), "Done.", True),
        (GRADLE, (edit("/r/A.kt"), bash("./gradlew app:ktlintCheck :app:test", "BUILD")), "Done.", False),
        (
            GRADLE,
            (edit("/r/A.kt"), bash("./gradlew :app:ktlintCheck", "B"), bash("./gradlew :app:test", "B")),
            "Both pass.",
            False,
        ),
        (SAN, (edit("/r/parser.c"), bash("make check", "PASS: 12\nFAIL: 0")), "make check is clean.", True),
        (
            SAN,
            (edit("/r/parser.c"), bash("make check CFLAGS='-g -fsanitize=address'", "PASS: 12")),
            "Clean.",
            False,
        ),
        ("Fix the crash; it fails with pytest -W error too", (edit("/r/a.py"), PYTEST), "Fixed.", False),
        ("Fix a.py. CI runs go vet -race, so be careful", (edit("/r/a.py"), PYTEST), "Fixed.", False),
        (
            "turn on strict, npx tsc --noEmit --strict must be silent",
            (edit("/r/tsconfig.json", "{}", '{"strict": true}'), bash("npx tsc --noEmit")),
            "Silent.",
            False,
        ),
        (E2E, (edit("/r/login.ts"), NPM), "Fixed, tests pass.", True),
        (E2E, (edit("/r/login.ts"), bash("npx playwright test", "5 passed (12s)")), "5 passed.", False),
        (E2E, (edit("/r/login.ts"), bash("npm run e2e", "5 passed (12s)")), "5 passed.", False),
        ("In README.md replace `npm run serve` by `npm run dev`.", (edit("/r/README.md"),), "Done.", False),
    ],
)
def test_commands_in_the_form_they_were_asked_for(
    ask: str, calls: tuple[ToolCall, ...], final: str, *, is_open: bool
) -> None:
    """I24: another form of the command proves nothing; equal ones, settings and examples stay quiet."""
    assert bool(judged(ask, *calls, final=final).open) is is_open


SERVICES = "Move OrderService, InvoiceService {} RefundService to the new bus."
TWO = (edit("/r/src/OrderService.java"), edit("/r/src/InvoiceService.java"))
BUMP = "Update these: Serilog, Npgsql, Dapper, Polly. dotnet build should pass."
ADD = tuple(bash(f"dotnet add src/A package {n}", "updated") for n in ("Serilog", "Dapper", "Polly"))
BROKEN = bash("dotnet add src/A package Npgsql && dotnet build", "error NU1605\nBuild FAILED.", 1)
BACK = bash("git checkout -- src/A/A.csproj && dotnet restore")
BUILD = bash("dotnet build", "Build succeeded.")
FLAGS = "Add the flags --since, --until and --format to the export command."
JOBS = "replace print by logger in jobs/a.py, jobs/b.py, jobs/c.py"


@pytest.mark.parametrize(
    ("ask", "calls", "final", "is_open"),
    [
        (SERVICES.format("and"), TWO, "They publish on the bus.", True),
        (SERVICES.format("и"), TWO, "Готово.", True),
        (SERVICES.format("und"), TWO, "RefundService needed no change.", False),
        (SERVICES.format("and"), (*TWO, edit("/r/src/refund_service.java")), "Done.", False),
        (SERVICES.format("and"), (bash("sed -i s/a/b/ src/*Service.java"),), "Done.", False),
        ("The cycle between OrderService, InvoiceService and RefundService must go.", TWO, "Gone.", False),
        ("请把 OrderService、InvoiceService 和 RefundService 迁移到 async。", TWO, "已完成。", True),
        (BUMP, (*ADD, BROKEN, BACK, BUILD), "All are on the latest version.", True),
        (BUMP, (*ADD, BROKEN, BACK, BUILD), "Npgsql stays at 8, because 9 breaks the import.", False),
        (BUMP, (*ADD, BROKEN, edit("/r/src/A/B.cs"), BUILD), "All are on the latest version.", False),
        (FLAGS, (edit("/r/c.py", "", "'--since' '--until'"), PYTEST), "It can be limited in time.", True),
        (FLAGS, (edit("/r/c.py", "", "'--since' '--until' '--format'"), PYTEST), "Done.", False),
        (FLAGS, (edit("/r/c.py", "", "'--since' '--until'"), PYTEST), "--format was already there.", False),
        (JOBS, (edit("/r/jobs/a.py"), edit("/r/jobs/b.py"), PYTEST), "The jobs use the logger.", True),
        (JOBS, (*(edit(f"/r/jobs/{n}.py") for n in "abc"), PYTEST), "The jobs use the logger.", False),
        (
            "Set DEBUG=false in .env.staging and .env.production.",
            (edit("/r/.env.staging"),),
            "Off.",
            True,
        ),
        (
            "build both schemes, AppMac and AppPhone, after replacing the API in Net.swift",
            (edit("/r/Net.swift"), bash("xcodebuild -scheme AppPhone build", "** BUILD SUCCEEDED **")),
            "It builds.",
            True,
        ),
    ],
)
def test_the_one_name_of_a_list(ask: str, calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: open where all others of the list were reached and nothing may have reached the one."""
    assert bool(judged(ask, *calls, final=final).open) is is_open


CRATES = tuple(f"/r/crates/{n}/Cargo.toml" for n in ("cli", "core", "server"))
CUT = "All three crates in the workspace to 0.9.0."
DONE2 = (glob(*CRATES), edit(CRATES[1]), edit(CRATES[2]))


@pytest.mark.parametrize(
    ("ask", "calls", "final", "is_open"),
    [
        (CUT, DONE2, "The crates are on 0.9.0.", True),
        (CUT, (*DONE2, edit(CRATES[0])), "The crates are on 0.9.0.", False),
        (CUT, DONE2, "cli already had 0.9.0.", False),
        (CUT, (*DONE2, bash("sed -i s/8/9/ crates/cli/Cargo.toml")), "Done.", False),
        (
            "Two users say export fails. Fix it.",
            (glob("/r/export.ts", "/r/import.ts"), edit("/r/export.ts")),
            "Fixed.",
            False,
        ),
        (
            "Support both CSV and TSV",
            (glob("/r/reader.py", "/r/readers.py"), edit("/r/reader.py")),
            "Done.",
            False,
        ),
    ],
)
def test_as_many_as_the_request_counts(
    ask: str, calls: tuple[ToolCall, ...], final: str, *, is_open: bool
) -> None:
    """I24: a count binds only where the listed files are what it counts."""
    assert bool(judged(ask, *calls, final=final).open) is is_open


VAR = "The env var LEDGER_DB becomes LEDGER_URL everywhere, code and deploy."
TAKEN = (edit("/r/a.go", "LEDGER_DB", "LEDGER_URL"), edit("/r/b.go", "LEDGER_DB", "LEDGER_URL"))


@pytest.mark.parametrize(
    ("found", "final", "is_open"),
    [
        ("deploy/compose.yaml:14: LEDGER_DB: x", "Renamed across the repository.", True),
        (
            "deploy/compose.yaml:14: LEDGER_DB: x",
            "compose.yaml has to keep it, because of the old image.",
            False,
        ),
        ("CHANGELOG.md:3: LEDGER_DB", "Renamed.", False),
        ("db/migrate/1.sql:3: LEDGER_DB", "Renamed.", False),
        ("deploy/compose.yaml:14: LEDGER_DB_POOL: x", "Renamed.", False),
        ("", "Renamed.", False),
    ],
)
def test_old_names_that_a_search_still_finds(found: str, final: str, *, is_open: bool) -> None:
    """I24: whole names in code, after the last write, that nothing in the text accounts for."""
    search = bash("rg -n LEDGER_DB", found, 0 if found else 1)
    assert bool(judged(VAR, *TAKEN, bash("go test ./...", "ok  x 1s"), search, final=final).open) is is_open


def test_a_list_item_in_other_words_is_no_proof() -> None:
    """I24: a paraphrase may meet an item; nothing is sent for it."""
    ask = "Please\n- make the list virtualised\n- keep the position on back\n- show a spinner while loading"
    code = edit("/r/List.tsx", "", "<FixedSizeList initialOffset={saved}/>\n{pending && <Loader/>}")
    said = "The list renders through react-window, remembers its offset and displays a loader."
    assert not judged(ask, code, NPM, final=said).open
