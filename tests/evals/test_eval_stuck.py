"""``make eval-stuck``: the detectors keep their aims on both halves, and the streams have their form."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from daemon.redact import redact_value
from daemon.stuck.loops import Loop
from evals.stuck import KINDS, SPLITS, Label, Outcome, aims_missed, ordinary_sessions, read_streams
from tests.evals.running import REPO, evaluate

STREAMS = REPO / "tests" / "data" / "stuck"


def outcomes(loops: int, missed: int, none: int, alarms: int) -> list[Outcome]:
    """So many outcomes of each sort, made without a detector: figures are figures."""
    alarm = Loop("cycle", "read `a.py` and read `b.py`", 3, "key")
    loop, fine = Label("loop", "", "", "cycle"), Label("none", "", "")
    return (
        [Outcome("l", loop, alarm, suspected=True)] * (loops - missed)
        + [Outcome("l", loop, None, suspected=False)] * missed
        + [Outcome("n", fine, alarm, suspected=True)] * alarms
        + [Outcome("n", fine, None, suspected=False)] * (none - alarms)
    )


def test_both_halves_keep_the_aims() -> None:
    """Recall at least 0.85 and at most 1 % false alarms, each half on its own; the table has its form."""
    done = evaluate("stuck")
    assert done.returncode == 0, done.stdout
    share = r"\d+/\d+ (?:-|[01]\.\d\d \([01]\.\d\d-[01]\.\d\d\))"
    rows = re.findall(rf"^(\w+) +\d+ +{share} +\d+$", done.stdout, re.MULTILINE)
    assert rows == [*KINDS, "all"] * 2
    assert len(re.findall(rf"^false alarms {share}$", done.stdout, re.MULTILINE)) == 2
    assert "AIM MISSED" not in done.stdout


def test_ordinary_sessions_raise_no_alarm() -> None:
    """The sessions of the judge's cases, stumbles and all, are quiet at every step."""
    assert ordinary_sessions().hits == 0
    assert ordinary_sessions().of > 150


def test_missed_aims_are_told() -> None:
    """Three loops of twenty may be missed; of fewer than a hundred streams not one may be a false alarm."""
    assert aims_missed(outcomes(20, 3, 40, 0)) == []
    assert "recall" in aims_missed(outcomes(20, 4, 40, 0))[0]
    assert "1 false alarms in 40" in aims_missed(outcomes(20, 0, 40, 1))[0]
    assert aims_missed(outcomes(20, 0, 100, 1)) == []
    assert len(aims_missed([])) == 2


def test_wrong_streams_are_named(tmp_path: Path) -> None:
    """A folder without streams, and a file of another form, end with 2 and say which it is."""
    assert evaluate("stuck", "--streams", str(tmp_path)).returncode == 2
    (tmp_path / "odd.json").write_text('{"version": 1, "label": {}}')
    done = evaluate("stuck", "--streams", str(tmp_path))
    assert (done.returncode, "odd.json" in done.stderr) == (2, True)


def test_the_streams_that_come_with_the_project() -> None:
    """Enough of both sorts in both halves, each kind in each, half of them hard, and no secrets in them."""
    streams = read_streams(STREAMS)
    for split in SPLITS:
        of = [s for s in streams.values() if s.split == split]
        kinds = Counter(s.label.kind for s in of if s.label.expect == "loop")
        none = [s for s in of if s.label.expect == "none"]
        assert set(kinds) == set(KINDS)
        assert min(kinds.values()) >= 2
        assert len(none) >= len(of) / 2
        assert all("hard" in s.tags for s in none)
        assert sum("claude" in s.tags for s in of) >= 4
    assert len(streams) >= 70
    for name, stream in streams.items():
        assert stream.transcript.task, name
        assert stream.transcript.work, name
        assert (stream.label.kind is not None) == (stream.label.expect == "loop"), name
        assert stream.label.why.endswith("."), name
        texts = json.loads((STREAMS / f"{name}.json").read_bytes())["transcript"]
        assert redact_value(texts) == texts, name
