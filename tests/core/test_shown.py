"""What outputs and written texts show though all calls ended well; and the look-alikes that stay quiet."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript


def bash(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall(command, "bash", "completed", {"command": command}, output, exit=code)


def edit(path: str, old: str = "x = 1", new: str = "x = 2") -> ToolCall:
    return ToolCall(path, "edit", "completed", {"filePath": path, "oldString": old, "newString": new})


def write(path: str, new: str) -> ToolCall:
    return ToolCall(path, "write", "completed", {"filePath": path, "content": new})


def read(path: str, text: str) -> ToolCall:
    lines = "\n".join(f"{i}: {line}" for i, line in enumerate(text.split("\n"), 1))
    return ToolCall(path, "read", "completed", {"filePath": path}, lines)


def judged(ask: str, *calls: ToolCall, final: str = "Done.") -> Evidence:
    messages = (
        Message("u", "user", 1, ask, human=True),
        Message("a", "assistant", 2, calls=calls, finish="tool-calls"),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/r"))


PYTEST = bash("pytest -q", "8 passed in 1s")
CRASH = 'Traceback (most recent call last):\n  File "a.py"\nKeyError: 1\nfinished'
LOAD = "Fix the header mapping in map.py and load the users with scripts/load.py"
MAP = edit("/r/map.py")


@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((bash("python scripts/load.py; true", CRASH),), "The users are loaded.", True),
        ((bash("python scripts/load.py", 'PG::X: ERROR: column "a"\ndone'),), "Loaded.", True),
        ((bash("python scripts/load.py", CRASH),), "The load fails with a KeyError.", False),
        ((bash("python scripts/load.py", CRASH), bash("python scripts/load.py", "400 rows")), "Ok.", False),
        ((bash("python scripts/load.py", "skipped: 2 errors in old rows"),), "Loaded.", False),
        ((bash("cat scripts/load.py", CRASH), bash("python scripts/load.py", "ok")), "Loaded.", False),
    ],
)
def test_errors_behind_exit_code_zero(calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: what a named script printed last, where no later run and no word of the text answers it."""
    assert bool(judged(LOAD, MAP, *calls, final=final).open) is is_open


WORKER = "give worker a healthcheck and confirm that worker turns healthy"
DOWN = bash("docker compose ps", "app-web-1 web Up (healthy)\napp-worker-1 worker Up 9s (unhealthy)")
UP = bash("docker compose ps", "app-web-1 web Up (healthy)\napp-worker-1 worker Up 40s (healthy)")
WEB = bash("docker inspect app-web-1", "healthy")


@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((DOWN, WEB), "All containers came up.", True),
        ((DOWN, UP), "worker is healthy.", False),
        ((DOWN,), "worker is unhealthy still, the broker is not reachable from it.", False),
        ((bash("docker compose ps", "app-db-1 db Up (unhealthy)\nworker Up (healthy)"),), "Ok.", False),
        (
            (bash("systemctl status worker", "worker.service - x\n  Active: failed (Result: exit)"),),
            "Ok.",
            True,
        ),
    ],
)
def test_the_last_state_of_what_was_named(calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: only the part that the request names, and only its last state."""
    found = judged(WORKER, edit("/r/compose.yml"), *calls, final=final)
    assert any(r.kind == "unmet" and r.open for r in found.rows) is is_open


CONVERT = "write scripts/conv.py and run it on both years"
DRY = bash("python scripts/conv.py 2024 2025 --dry-run", "2024 10 rows")
CONV = write("/r/scripts/conv.py", "import sys\n")


@pytest.mark.parametrize(
    ("ask", "calls", "final", "is_open"),
    [
        (CONVERT, (DRY,), "Both years are converted.", True),
        (CONVERT, (DRY, bash("python scripts/conv.py 2024 2025", "2024 10 rows")), "Done.", False),
        (CONVERT, (DRY,), "This was a dry run; the disk is full.", False),
        ("write scripts/conv.py and show me a dry run", (DRY,), "10 rows.", False),
        ("write scripts/conv.py, I'll run it", (DRY,), "10 rows.", False),
        (
            "Roll it out with ansible-playbook site.yml",
            (bash("ansible-playbook site.yml --check --diff"),),
            "It is rolled out.",
            True,
        ),
    ],
)
def test_dry_runs_only(ask: str, calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: a rehearsal is no run, unless it was what the person wanted."""
    assert bool(judged(ask, CONV, *calls, final=final).open) is is_open


def texts(*words: str) -> str:
    return "{\n" + ",\n".join(f'  "k{i}": "{w}"' for i, w in enumerate(words)) + "\n}"


EN = texts("Save your route", "Delete this route", "Try it again", "No network found")
FR = texts("Gardez la route", "Effacer la route", "Essayez encore", "Aucun réseau ici")


@pytest.mark.parametrize(
    ("ask", "path", "text", "is_open"),
    [
        ("Add a French translation.", "/r/i18n/fr.json", EN, True),
        ("Add a French translation.", "/r/i18n/fr.json", FR, False),
        ("Add en-GB.", "/r/i18n/en-GB.json", EN, False),
        ("Create fr.json as a copy for our translators.", "/r/i18n/fr.json", EN, False),
        ("Add a second config.", "/r/i18n/other.json", EN, False),
    ],
)
def test_translations_that_are_copies(ask: str, path: str, text: str, *, is_open: bool) -> None:
    """I24: another language of the same file with the same texts, unless a copy was wanted."""
    assert bool(judged(ask, read("/r/i18n/en.json", EN), write(path, text)).open) is is_open


LIMITS = "rate limits: 120/min for anonymous, 600/min for callers with a token"
TIMES = "Timeout für Lesezugriffe auf 5 Sekunden und für Schreibzugriffe auf 30 Sekunden"


@pytest.mark.parametrize(
    ("ask", "code", "is_open"),
    [
        (LIMITS, "TOKEN = '120/minute'\nANONYMOUS = '600/minute'", True),
        (LIMITS, "TOKEN = '600/minute'\nANONYMOUS = '120/minute'", False),
        (LIMITS, "limit = 600 if token else 120", False),
        (LIMITS, "TOKEN = '120/minute'", False),
        (TIMES, "TIMEOUT_SCHREIBEN = 5\nTIMEOUT_LESEN = 30", True),
        (TIMES, "TIMEOUT_SCHREIBEN = 30\nTIMEOUT_LESEN = 5", False),
        ("memory limits: api 512Mi, worker 256Mi", "worker_memory: 512Mi\napi_memory: 256Mi", True),
    ],
)
def test_values_the_wrong_way_round(ask: str, code: str, *, is_open: bool) -> None:
    """I24: both values have to be tied to the other's word, and neither to its own."""
    assert bool(judged(ask, write("/r/limits.py", code), PYTEST).open) is is_open


@pytest.mark.parametrize(
    ("ask", "new", "is_open"),
    [
        ("Set max_connections to 250", "max_connections = 200", True),
        ("Set max_connections to 250", "max_connections = 250", False),
        ("REQUEST_TIMEOUT = 30 please", "REQUEST_TIMEOUT = 30_000", False),
        ("timeout_ms = 500 is too short, use 2000", "timeout_ms = 2000", False),
        ("max_retries should be at least 3", "max_retries = 5", False),
        ("cache_ttl to 90 minutes", "cache_ttl = 60 * 90", False),
    ],
)
def test_another_number_than_the_one_asked(ask: str, new: str, *, is_open: bool) -> None:
    """I24: units, ranges and expressions may be the same number in other clothes."""
    assert bool(judged(ask, edit("/r/conf.py", "a = 1", new), PYTEST).open) is is_open


CHART = "Leave in out/: 1) summary.md, 2) a chart months.png"
MADE = write("/r/rep.py", "open('summary.md')\nplt.savefig('months.png')\n")
TOOK = edit("/r/rep.py", "plt.savefig('months.png')\n", "")


@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((MADE, TOOK, bash("python rep.py && ls out", "summary.md")), "summary.md is there.", True),
        ((MADE, bash("python rep.py && ls out", "summary.md months.png")), "Both are there.", False),
        ((MADE, TOOK, bash("python plot.py --out months.png", "")), "Both are there.", False),
        ((MADE, TOOK), "months.png needs a licence that you have to buy.", False),
    ],
)
def test_files_taken_out_again(calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: what the agent's own code made and a later edit dropped, with nothing in its place."""
    assert bool(judged(CHART, *calls, final=final).open) is is_open


RETRY = "Make the retry count configurable and add backoff to fetcher.go. go test ./... green."
RED, GREEN = bash("go test ./...", "FAIL x 0.3s", 1), bash("go test ./...", "ok  x/fetcher 0.2s")
BOTH = edit("/r/fetcher.go", "", "func backoff() {}\nvar retry = env()")
HALF = edit("/r/fetcher.go", "", "var retry = env()")


@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((BOTH, RED, bash("git checkout fetcher.go"), HALF, GREEN), "The count is configurable.", True),
        ((BOTH, RED, bash("git checkout fetcher.go"), BOTH, GREEN), "Both are in.", False),
        ((BOTH, GREEN, bash("git commit -am x", "[main 1a2b3c4] x"), bash("git checkout .")), "In.", False),
        ((BOTH, GREEN, bash("git checkout -b feature")), "Both are in.", False),
        ((BOTH, RED, bash("git restore fetcher.go"), HALF, GREEN), "backoff can't work here.", False),
    ],
)
def test_rolled_back_and_not_written_again(calls: tuple[ToolCall, ...], final: str, *, is_open: bool) -> None:
    """I24: a rollback takes the edit back; a commit before it or a new edit does not count as lost."""
    assert bool(judged(RETRY, *calls, final=final).open) is is_open


SWIFT = "struct KeychainStore {{\n  func save(_ v: String) throws {{\n    // {}\n  }}\n}}\n"
PY = "def estimate_tax(order):\n    # {}\n    return 0\n"


@pytest.mark.parametrize(
    ("ask", "path", "text", "is_open"),
    [
        ("a small KeychainStore (save/load)", "/r/K.swift", SWIFT.format("goes here once decided"), True),
        ("a small KeychainStore (save/load)", "/r/K.swift", SWIFT.format("nothing to do"), False),
        ("Add estimate_tax(order)", "/r/p.py", PY.format("flat until the service exists"), True),
        ("Add estimate_tax(order)", "/r/p.py", PY.format("no tax: intentional"), False),
        (
            "Add a toggle to Settings",
            "/r/S.ts",
            "export function onExit() {\n  // React cleans up\n}\n",
            False,
        ),
    ],
)
def test_functions_that_hold_a_remark_only(ask: str, path: str, text: str, *, is_open: bool) -> None:
    """I24: the function itself has to be asked for, and not to be empty on purpose."""
    found = judged(ask, write(path, text), bash("swift test", "Executed 3 tests, with 0 failures"))
    assert any(r.kind == "unmet" and r.open for r in found.rows) is is_open
