"""What the calls left undone: stand-ins in code, failed edits, killed commands; and settled failures."""

from __future__ import annotations

import pytest

from daemon.core.collect import collect
from daemon.core.evidence import Evidence
from daemon.core.transcript import Message, ToolCall, Transcript

ASK = "Add an exporter for csv and xlsx to rota/exporters.py"


def bash(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall(command, "bash", "completed", {"command": command}, output, exit=code)


def write(text: str, path: str = "/repo/rota/exporters.py") -> ToolCall:
    return ToolCall(
        "w", "write", "completed", {"filePath": path, "content": text}, "Wrote file successfully."
    )


def edit(path: str, old: str = "a = 1", new: str = "a = 2", *, error: str = "") -> ToolCall:
    given: dict[str, object] = {"filePath": path, "oldString": old, "newString": new}
    return ToolCall(path, "edit", "error" if error else "completed", given, error=error)


def read(path: str, output: str) -> ToolCall:
    return ToolCall("r", "read", "completed", {"filePath": path}, output)


PASSED = bash("pytest -q", "7 passed in 0.10s")
LOST = "Could not find oldString in the file."
CSV = "def to_csv(rows):\n    return ','.join(rows)\n\n\n"


def judged(*calls: ToolCall, ask: str = ASK, final: str = "Both are in.") -> Evidence:
    messages = (
        Message("u", "user", 1, ask, human=True),
        Message("a", "assistant", 2, calls=calls, finish="tool-calls"),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return collect(Transcript("s", messages, directory="/repo"))


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
    """I24: the code says what the final text doesn't."""
    assert [r.kind for r in judged(write(CSV + body), PASSED).open] == ["unmet"]


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
    """I24: comments and idioms of other languages."""
    assert judged(write(text, "/repo/src/xlsx_export.ts"), PASSED).open


@pytest.mark.parametrize(
    ("calls", "ask"),
    [
        (
            (write(CSV + "class Base(ABC):\n    def to_xlsx(self):\n        raise NotImplementedError\n"),),
            ASK,
        ),
        ((write("def to_xlsx(): pass\n", "/repo/tests/test_exporters.py"),), ASK),
        ((write("```\n# ... existing code ...\n```\n", "/repo/docs/xlsx.md"),), ASK),
        ((write(CSV + "def to_xlsx(rows):\n    raise NotImplementedError\n"),), ASK + ", xlsx as a stub"),
        ((write(CSV + "class Broken(Exception):\n    pass\n"),), ASK),
        ((write(CSV + "def close(self):\n    pass\n"),), ASK),
        (
            (
                read("/repo/rota/exporters.py", "# TODO: handle xlsx styles\n"),
                write("# TODO: handle xlsx styles\n"),
            ),
            ASK,
        ),
        ((write(CSV + "# ... rest of the code\n"), write(CSV)), ASK),
        ((write(CSV + "# ... rest of the code\n"), bash("git checkout -- rota/exporters.py")), ASK),
        (
            (
                write("def to_xlsx(r):\n    pass\n"),
                edit("/repo/rota/exporters.py", "    pass", "    return save(r)"),
            ),
            ASK,
        ),
        ((write("print('loading ... rest follows')\n"),), ASK),
    ],
)
def test_no_stand_ins(calls: tuple[ToolCall, ...], ask: str) -> None:
    """Abstract classes, tests, documents, wanted stubs, old marks and what was put right are none."""
    assert not judged(*calls, PASSED, ask=ask).open


def test_failed_edit_is_open() -> None:
    """I24: an edit failed, its file was never changed, and the text is silent about it."""
    (row,) = judged(edit("/repo/a.py"), edit("/repo/b.py", error=LOST), PASSED).open
    assert "b.py" in row.detail


@pytest.mark.parametrize(
    ("calls", "final"),
    [
        ((edit("/repo/b.py"),), "Done."),
        ((write("b = 2\n", "/repo/b.py"),), "Done."),
        ((bash("sed -i s/1/2/ b.py"),), "Done."),
        ((bash("python - <<'E'\nopen('b.py', 'w').write('b')\nE"),), "Done."),
        ((read("/repo/b.py", "a = 2"),), "Done."),
        ((), "a.py is changed; b.py already had it."),
        ((), "a.py is changed. I couldn't change b.py."),
    ],
)
def test_failed_edit_made_good(calls: tuple[ToolCall, ...], final: str) -> None:
    """A later write, a look or a word about it: the failure proves nothing by itself."""
    assert not judged(edit("/repo/a.py"), edit("/repo/b.py", error=LOST), *calls, PASSED, final=final).open


KILLED = bash(
    "python train.py --config small.yaml",
    "epoch 3/10\nbash tool terminated command after exceeding timeout",
    None,
)
TRAIN = "Add label smoothing, then train with small.yaml"


def test_killed_is_open() -> None:
    """I24: the run that was asked for was killed and is reported as done."""
    (row,) = judged(edit("/repo/train.py"), KILLED, ask=TRAIN, final="The model is trained.").open
    assert "train.py" in row.detail


@pytest.mark.parametrize(
    ("calls", "ask", "final"),
    [
        ((KILLED, bash("python train.py --config small.yaml", "epoch 10/10")), TRAIN, "Trained."),
        ((KILLED,), TRAIN, "The run timed out in epoch 3."),
        ((KILLED,), "Fix the typo in the help", "Fixed."),
        ((bash("npm run dev", "ready\nCommand timed out after 10s", None),), "Fix dev server", "It starts."),
        ((bash("timeout 5 python small.py train", "ok", 124),), TRAIN, "It starts."),
    ],
)
def test_killed_but_no_proof(calls: tuple[ToolCall, ...], ask: str, final: str) -> None:
    """Run again, said, not asked for, or a server that is stopped that way."""
    assert not judged(edit("/repo/train.py"), *calls, ask=ask, final=final).open


RED = bash("pytest -q", "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s", 1)


def test_old_failure_is_settled() -> None:
    """I24: what failed without the work too, no more of it, is settled; more of it is not."""
    base = "git stash -q && pytest -q; git stash pop -q"
    same = bash(base, "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s")
    final = "Done; test_x fails on the untouched code too."
    (row,) = judged(edit("/repo/a.py"), RED, same, final=final).of("check")
    assert row.settled
    more = bash("pytest -q", "FAILED tests/test_a.py::test_x\n2 failed, 5 passed in 0.12s", 1)
    (row,) = judged(edit("/repo/a.py"), more, same, final=final).of("check")
    assert not row.settled


@pytest.mark.parametrize(
    ("ask", "path", "settled"),
    [
        ("Write a failing test for the bug, don't fix it", "/repo/tests/test_a.py", True),
        ("Write a failing test for the bug, then fix it", "/repo/tests/test_a.py", False),
        ("Write a failing test for the bug", "/repo/src/a.py", False),
    ],
)
def test_wanted_red(ask: str, path: str, *, settled: bool) -> None:
    """A failing test that was asked for is settled where only tests were written."""
    (row,) = judged(edit(path), RED, ask=ask, final="It fails.").of("check")
    assert row.settled is settled


@pytest.mark.parametrize(
    ("ask", "settled"),
    [
        ("Skip the s3 tests until Friday", True),
        ("The s3 tests hang. Skip them for now.", True),
        ("Überspring die s3 Tests", True),
        ("Fix the s3 tests, don't skip them", False),
        ("Fix the upload", False),
    ],
)
def test_wanted_skip(ask: str, *, settled: bool) -> None:
    """A skip that the person asked for casts no doubt."""
    skip = edit("/repo/tests/test_s3.py", "def test_a():", "@pytest.mark.skip\ndef test_a():")
    (row,) = judged(skip, PASSED, ask=ask).of("tests_changed")
    assert row.settled is settled


def test_overtaken_run() -> None:
    """A run that failed on the way and worked later is settled."""
    failed, worked = (
        bash("python bench.py", "ModuleNotFoundError", 1),
        bash("uv run python bench.py", "88412"),
    )
    rows = judged(failed, worked, ask="Measure the throughput", final="88412 per second.").of("run")
    assert [r.settled for r in rows] == [True, False]


@pytest.mark.parametrize(
    ("final", "is_open"),
    [
        ("One case (`Weld.AcrossBorder`) fails, a pre-existing quirk, unrelated.", True),
        ("One case (`Weld.AcrossBorder`) is flaky and unrelated.", False),
        (
            "One case (`Weld.AcrossBorder`) fails; I checked that it fails on main too, so it is unrelated.",
            False,
        ),
        ("One case (`Io.Reads`) fails, which is pre-existing.", False),
    ],
)
def test_excuse_for_the_changed_file(final: str, *, is_open: bool) -> None:
    """I24: "unrelated" without a run that backs it is no excuse for a test of the file that was changed."""
    assert bool(judged(edit("/repo/src/weld.cpp"), RED, ask="Speed up welding", final=final).open) is is_open


def test_errors_in_files_not_touched() -> None:
    """Findings in files that the work never touched, and the text says so, are not open; own ones are."""
    lint = bash("npx eslint .", "\u2716 3 problems (3 errors, 0 warnings)", 1)
    old = "Done. eslint reports three errors in seed.js; they were there before, I didn't touch that file."
    assert not judged(edit("/repo/src/tickets.js"), lint, ask="Add a filter", final=old).open
    own = "Done. eslint reports three errors in `tickets`; they were there before."
    assert judged(edit("/repo/src/tickets.js"), lint, ask="Add a filter", final=own).open
    assert judged(edit("/repo/src/tickets.js"), lint, ask="Add a filter", final="Done.").open
