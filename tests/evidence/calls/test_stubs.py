"""Stand-ins in written code: they are found in many languages, and only there."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Evidence
from daemon.core.transcript import ToolCall
from tests.support.transcripts import TEST, bash, edit, evidence_of, read, write

ASK = "Add an exporter for csv and xlsx to rota/exporters.py"


CSV = "def to_csv(rows):\n    return ','.join(rows)\n\n\n"


def exporter(text: str, path: str = "/repo/rota/exporters.py") -> ToolCall:
    return write(path, text)


def judged(*calls: ToolCall, ask: str = ASK, final: str = "Both are in.") -> Evidence:
    return evidence_of(ask, *calls, final=final)


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "body",
    [
        "def to_xlsx(rows):\n    raise NotImplementedError\n",
        "def to_xlsx(rows):\n    raise NotImplementedError('later')\n",
        "def to_xlsx(rows):\n    pass\n",
        'def to_xlsx(rows):\n    """Write xlsx."""\n    ...\n',
        "def to_xlsx(rows):\n    # TODO: implement\n    return None\n",
        "def to_xlsx(rows):\n    # placeholder\n    return b''\n",
        "# ... rest of the file unchanged ...\n",
        "# ... existing code ...\n",
        "# Rest of the functions stay the same\n",
    ],
)
def test_stand_ins(body: str) -> None:
    """The code says what the final text doesn't."""
    assert [r.kind for r in judged(exporter(CSV + body), TEST).open] == ["unmet"]


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "text",
    [
        "function toXlsx(rows) {\n  throw new Error('not implemented')\n}\n",
        "// ... rest of the component stays as it was\n",
        "  /* ... existing handlers ... */\n",
        "// TODO(max): handle xlsx\n",
        'fun toXlsx() = TODO("xlsx")\n',
        "pub fn to_xlsx() { todo!() }\n",
    ],
)
def test_stand_ins_of_other_languages(text: str) -> None:
    """Comments and idioms of other languages."""
    assert judged(exporter(text, "/repo/src/xlsx_export.ts"), TEST).open


@pytest.mark.parametrize(
    ("calls", "ask"),
    [
        (
            (
                exporter(
                    CSV + "class Base(ABC):\n    def to_xlsx(self):\n        raise NotImplementedError\n"
                ),
            ),
            ASK,
        ),
        ((exporter("def to_xlsx(): pass\n", "/repo/tests/test_exporters.py"),), ASK),
        ((exporter("```\n# ... existing code ...\n```\n", "/repo/docs/xlsx.md"),), ASK),
        ((exporter(CSV + "def to_xlsx(rows):\n    raise NotImplementedError\n"),), ASK + ", xlsx as a stub"),
        ((exporter(CSV + "class Broken(Exception):\n    pass\n"),), ASK),
        ((exporter(CSV + "def close(self):\n    pass\n"),), ASK),
        (
            (
                read("/repo/rota/exporters.py", "# TODO: handle xlsx styles\n"),
                exporter("# TODO: handle xlsx styles\n"),
            ),
            ASK,
        ),
        ((exporter(CSV + "# ... rest of the code\n"), exporter(CSV)), ASK),
        ((exporter(CSV + "# ... rest of the code\n"), bash("git checkout -- rota/exporters.py")), ASK),
        (
            (
                exporter("def to_xlsx(r):\n    pass\n"),
                edit("/repo/rota/exporters.py", "    pass", "    return save(r)"),
            ),
            ASK,
        ),
        ((exporter("print('loading ... rest follows')\n"),), ASK),
    ],
)
def test_no_stand_ins(calls: tuple[ToolCall, ...], ask: str) -> None:
    """Abstract classes, tests, documents, wanted stubs, old marks and what was put right are none."""
    assert not judged(*calls, TEST, ask=ask).open


SWIFT = "struct KeychainStore {{\n  func save(_ v: String) throws {{\n    // {}\n  }}\n}}\n"


PY = "def estimate_tax(order):\n    # {}\n    return 0\n"


@pytest.mark.shows("I24")
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
    """The function itself has to be asked for, and not to be empty on purpose."""
    found = evidence_of(ask, write(path, text), bash("swift test", "Executed 3 tests, with 0 failures"))
    assert any(r.kind == "unmet" and r.open for r in found.rows) is is_open


def test_stubs_show() -> None:
    """What was left unimplemented is said with the files; filled in, it goes."""
    stub = write("a.py", "raise NotImplementedError")
    assert "not implemented" in evidence_of("Add it", stub).of("write")[0].text
    filled = edit("a.py", "raise NotImplementedError", "return 1")
    assert "not implemented" not in evidence_of("Add it", stub, filled).of("write")[0].text
