"""The first part of a back-test: every file that is new or changed is read and judged by the rules, for free.

Each file is stored when it is done, so Ctrl-C and a kill lose at most the one that is being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ...core.errors import Unavailable
from ...replay.backtest import Report, Result
from ...store.backtests import Kept, Version
from ..progress import Progress
from ..render import count
from .reading import problem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...store.backtests import Backtests
    from .judging import Judged, Judging
    from .reading import Source

RULES: Final = "offline"
EVERY: Final = 20  # files after which the bar is drawn anew
_encode = msgspec.json.Encoder().encode
_DECODER: Final = msgspec.json.Decoder(Result)


def version_of(file: Source, judge: str, judging: Judging) -> Version:
    """What the results of this file depend on."""
    return Version(file.name, judge, file.size, file.changed, judging.by(judge))


def kept_of(judged: Judged, opinion: str = "") -> Kept:
    """A stop as it is stored."""
    r = judged.result
    return Kept(r.turn, judged.mark, r.at, _encode(r).decode(), opinion)


def scan(files: Sequence[Source], kept: Backtests, judging: Judging) -> None:
    """Judge what is not judged yet."""
    progress = Progress(len(files))
    stops = 0
    try:
        for n, file in enumerate(files):
            if n % EVERY == 0 or file.size > 1 << 20:
                progress.show(n, f"{count(stops, 'new stop')}; {file.stem}")
            version = version_of(file, RULES, judging)
            if kept.is_done(version):
                continue
            found, problem = list[Kept](), ""
            try:
                found = [kept_of(judged) for judged in judging.each(file)]
            except (OSError, Unavailable) as e:  # it may pass: what was found before stays, it is read again
                kept.end(version, (), done=False, problem=problem_of(file, e))
                continue
            except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
                problem = problem_of(file, e)
            kept.put(version, found, problem=problem)
            stops += len(found)
    finally:
        progress.clear()


def results(kept: Backtests, judge: str, judging: Judging, since: int) -> Iterator[tuple[str, str, Result]]:
    """File, mark and result of each stop that counts, in order of time."""
    for name, mark, body in kept.results(judge, judging.by(judge), since):
        yield name, mark, _DECODER.decode(body)


def report_of(kept: Backtests, judge: str, judging: Judging, since: int) -> Report:
    """All of them, counted."""
    report = Report(judge)
    for _, _, result in results(kept, judge, judging, since):
        report.add(result)
    return report
