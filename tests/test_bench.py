"""``python -m bench``: the comparison of two runs, files that can't be used, failures, and every table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from bench.__main__ import BENCHMARKS, main
from bench.compare import BadFile, Run, compared, differences, load, numbers
from bench.stand import REPO, Failed, Table

if TYPE_CHECKING:
    from pathlib import Path

    from bench.stand import Json

MACHINE = {"system": "Linux", "processor": "x86_64", "cores": 2, "python": "3.11.9", "loop": "uvloop"}


def prints(values: Json) -> Table:
    """A benchmark that took no time."""
    return Table("A table", ("what", "ms"), rows=[("all", "1")], values=values)


def test_numbers_are_found_by_their_path() -> None:
    """Numbers of nested tables get the names above them; texts, truths, lists and infinities are none."""
    values = {"64": {"daemon": {"p50": 1.5, "n": 3}}, "ok": True, "note": "x", "far": float("inf"), "l": [1]}
    assert numbers(values) == {"64: daemon: p50": 1.5, "64: daemon: n": 3}


def test_comparison_gives_new_over_old_of_what_both_have() -> None:
    """Each number of both runs has its ratio, also far from 1; the others are only counted."""
    table = compared({"a": {"ms": 4.0}, "b": 1.0, "gone": 1.0}, {"a": {"ms": 1.0}, "b": 3.0, "added": 2.0})
    assert table.values == {"a: ms": 0.25, "b": 3.0}
    assert table.rows == [("a: ms", "4", "1", "0.25"), ("b", "1", "3", "3.00")]
    assert table.notes == ["only in the old run: 1 numbers", "only in the new run: 1 numbers"]


def test_nothing_is_divided_by_zero() -> None:
    """A number that was 0 has no ratio."""
    table = compared({"a": 0, "b": 2}, {"a": 5, "b": 0})
    assert table.rows == [("a", "0", "5", "-"), ("b", "2", "0", "0.00")]


def test_another_machine_is_named() -> None:
    """Other cores, another Python and other sizes are said; the same machine is not, nor its load."""
    old = Run({**MACHINE, "load": 0.1}, quick=False, benchmarks={})
    assert differences(old, Run({**MACHINE, "load": 9.9}, quick=False, benchmarks={})) == []
    new = Run({**MACHINE, "cores": 8, "python": "3.12.4"}, quick=True, benchmarks={})
    assert differences(old, new) == [
        "cores was 2, is 8",
        "python was 3.11.9, is 3.12.4",
        "the old run was a full one, this is a quick one",
    ]


def test_a_saved_run_is_read_back(tmp_path: Path) -> None:
    """The file holds the numbers and the machine."""
    run = Run(MACHINE, quick=True, benchmarks={"accept": {"64": {"p50": 0.5}}})
    run.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read: No such file"),
        (b"", "holds no JSON"),
        (b"\xff\xfe", "holds no JSON"),
        (b"[" * 100_000, "holds no JSON"),
        (b"[1]", "holds no numbers of `python -m bench --json`"),
        (b'{"accept": {"64": 1}}', "holds no numbers of `python -m bench --json`"),
        (b'{"form": "reflectd bench 1", "machine": {}}', "`machine` and `benchmarks` must be objects"),
        (b'{"form": "reflectd bench 1", "machine": {}, "benchmarks": {"a": 1}}', "must be an object"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    """A file that is missing, or holds something else, is named with the reason."""
    path = tmp_path / "old.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadFile) as error:
        load(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_a_bad_file_ends_the_command_before_a_benchmark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--compare`` with a missing file ends with 2 and one line; nothing was measured."""
    ran = []
    with pytest.raises(SystemExit) as end:
        main(["--compare", str(tmp_path / "old.json")], {"a": lambda **_: ran.append(1) or prints({})})
    assert end.value.code == 2
    assert "argument --compare" in capsys.readouterr().err
    assert ran == []


def test_a_folder_that_is_missing_is_told_before_a_benchmark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` into a folder that is not there ends with 2, not after two minutes."""
    with pytest.raises(SystemExit) as end:
        main(["--json", str(tmp_path / "none" / "run.json")], {"a": lambda **_: prints({})})
    assert end.value.code == 2
    assert "there is no folder" in capsys.readouterr().err


def test_one_failure_does_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its reason stands where its table would be, the others are printed and kept, and the status is 1."""

    def fails(**_: object) -> Table:
        raise Failed("no daemon came")

    def breaks(**_: object) -> Table:
        subprocess.run(
            [sys.executable, "-c", "import sys; sys.exit('all wrong')"], check=True, capture_output=True
        )
        raise AssertionError("unreachable")

    benchmarks = {
        "first": lambda **_: prints({"ms": 1.0}),
        "second": fails,
        "third": breaks,
        "last": lambda **_: prints({"ms": 2.0}),
    }
    assert main(["--json", str(tmp_path / "run.json")], benchmarks) == 1
    shown = capsys.readouterr()
    places = [
        shown.out.index(text) for text in ("A table", "second: failed: no daemon came", "third: failed")
    ]
    assert places == sorted(places)
    assert shown.out.rindex("A table") > places[-1]
    assert "all wrong" in shown.out
    assert "failed: second, third" in shown.err
    assert load(tmp_path / "run.json").benchmarks == {"first": {"ms": 1.0}, "last": {"ms": 2.0}}


def test_a_benchmark_that_hangs_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After its time it is given up, and the next one runs."""
    monkeypatch.setattr("bench.__main__.QUICK_LIMIT_S", 0.05)

    def hangs(**_: object) -> Table:
        time.sleep(60)
        raise AssertionError("unreachable")

    assert main(["--quick"], {"hangs": hangs, "next": lambda **_: prints({})}) == 1
    shown = capsys.readouterr().out
    assert shown.index("hangs: failed: not over after 0.05 s") < shown.index("A table")


def test_ratios_stand_below_each_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--compare`` prints old, new and new/old below the table; ``--json`` may write the same file."""
    path = tmp_path / "run.json"
    benchmarks = {"a": lambda **_: prints({"ms": 2.0})}
    assert main(["--json", str(path)], benchmarks) == 0
    benchmarks = {"a": lambda **_: prints({"ms": 3.0}), "new": lambda **_: prints({"ms": 1.0})}
    assert main(["--json", str(path), "--compare", str(path)], benchmarks) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["ms", "2", "3", "1.50"] in [line.split() for line in lines]
    assert "  not in the old run" in lines
    assert load(path).benchmarks["a"] == {"ms": 3.0}


@pytest.mark.full("two minutes of benchmarks")
@pytest.mark.needs("opencode", "claude", "embeddings")
@pytest.mark.timeout(1800)
def test_a_quick_run_prints_every_table(tmp_path: Path) -> None:
    """``python -m bench --quick`` ends with 0, and each benchmark has a number."""
    path = tmp_path / "run.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--json", str(path)],
        cwd=REPO,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads(path.read_text("utf-8"))["benchmarks"]
    assert {name: bool(numbers(values)) for name, values in found.items()} == dict.fromkeys(BENCHMARKS, True)
