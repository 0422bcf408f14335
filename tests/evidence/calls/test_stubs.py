"""Stand-ins in written code: they are found in many languages, and only there."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.transcripts import TEST, bash, edit, evidence_of, read, write

ASK = "Add an exporter for csv and xlsx to rota/exporters.py"
FILE = "/repo/rota/exporters.py"
TS = "/repo/src/xlsx_export.ts"
CSV = "def to_csv(rows):\n    return ','.join(rows)\n\n\n"
OLD = "# TODO: handle xlsx styles\n"
BASE = CSV + "class Base(ABC):\n    def to_xlsx(self):\n        raise NotImplementedError\n"
STUB = "def to_xlsx(r):\n    pass\n"
REST = CSV + "# ... rest of the code\n"


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        (FILE, CSV + "def to_xlsx(rows):\n    raise NotImplementedError\n"),
        (FILE, CSV + "def to_xlsx(rows):\n    raise NotImplementedError('later')\n"),
        (FILE, CSV + "def to_xlsx(rows):\n    pass\n"),
        (FILE, CSV + 'def to_xlsx(rows):\n    """Write xlsx."""\n    ...\n'),
        (FILE, CSV + "def to_xlsx(rows):\n    # TODO: implement\n    return None\n"),
        (FILE, CSV + "def to_xlsx(rows):\n    # placeholder\n    return b''\n"),
        (FILE, CSV + "# ... rest of the file unchanged ...\n"),
        (FILE, CSV + "# ... existing code ...\n"),
        (FILE, CSV + "# Rest of the functions stay the same\n"),
        (TS, "function toXlsx(rows) {\n  throw new Error('not implemented')\n}\n"),
        (TS, "// ... rest of the component stays as it was\n"),
        (TS, "  /* ... existing handlers ... */\n"),
        (TS, "// TODO(max): handle xlsx\n"),
        (TS, 'fun toXlsx() = TODO("xlsx")\n'),
        (TS, "pub fn to_xlsx() { todo!() }\n"),
    ],
)
def test_stand_ins(path: str, text: str) -> None:
    """The code says what the final text doesn't: comments and idioms of many languages."""
    assert "unmet" in [r.kind for r in evidence_of(ASK, write(path, text), TEST, final="Both are in.").open]


@pytest.mark.parametrize(
    ("calls", "ask"),
    [
        ((write(FILE, BASE),), ASK),
        ((write("/repo/tests/test_exporters.py", "def to_xlsx(): pass\n"),), ASK),
        ((write("/repo/docs/xlsx.md", "```\n# ... existing code ...\n```\n"),), ASK),
        (
            (write(FILE, CSV + "def to_xlsx(rows):\n    raise NotImplementedError\n"),),
            ASK + ", xlsx as a stub",
        ),
        ((write(FILE, CSV + "class Broken(Exception):\n    pass\n"),), ASK),
        ((write(FILE, CSV + "def close(self):\n    pass\n"),), ASK),
        ((read(FILE, OLD), write(FILE, OLD)), ASK),
        ((write(FILE, REST), write(FILE, CSV)), ASK),
        ((write(FILE, REST), bash("git checkout -- rota/exporters.py")), ASK),
        ((write(FILE, STUB), edit(FILE, "    pass", "    return save(r)")), ASK),
        ((write(FILE, "print('loading ... rest follows')\n"),), ASK),
    ],
)
def test_no_stand_ins(calls: tuple[ToolCall, ...], ask: str) -> None:
    """Abstract classes, tests, documents, wanted stubs, old marks and what was put right are none."""
    assert not evidence_of(ask, *calls, TEST, final="Both are in.").open


SWIFT = "struct KeychainStore {{\n  func save(_ v: String) throws {{\n    // {}\n  }}\n}}\n"
PY = "def estimate_tax(order):\n    # {}\n    return 0\n"
CLEAN_UP = "export function onExit() {\n  // React cleans up\n}\n"


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("ask", "path", "text", "is_open"),
    [
        ("a small KeychainStore (save/load)", "/r/K.swift", SWIFT.format("goes here once decided"), True),
        ("a small KeychainStore (save/load)", "/r/K.swift", SWIFT.format("nothing to do"), False),
        ("Add estimate_tax(order)", "/r/p.py", PY.format("flat until the service exists"), True),
        ("Add estimate_tax(order)", "/r/p.py", PY.format("no tax: intentional"), False),
        ("Add a toggle to Settings", "/r/S.ts", CLEAN_UP, False),
    ],
)
def test_functions_that_hold_a_remark_only(ask: str, path: str, text: str, *, is_open: bool) -> None:
    """The function itself has to be asked for, and not to be empty on purpose."""
    found = evidence_of(ask, write(path, text), bash("swift test", "Executed 3 tests, with 0 failures"))
    assert any(r.kind == "unmet" and r.open for r in found.rows) is is_open


def test_stubs_show() -> None:
    """What was left unimplemented is said with the files; filled in, it goes."""
    stub = write("a.py", "raise NotImplementedError")
    filled = edit("a.py", "raise NotImplementedError", "return 1")
    for calls, shown in (((stub,), True), ((stub, filled), False)):
        assert ("not implemented" in evidence_of("Add it", *calls).of("write")[0].text) is shown
