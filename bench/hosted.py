"""What a judge session in the real opencode costs beside the bare call to the same model."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import TYPE_CHECKING

from bench.stand import Table, median, percentile
from harness.hosts.opencode import OpencodeServe, find_opencode
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox
from harness.models.scripts import COMPLETE
from harness.models.server import ModelServer, text

if TYPE_CHECKING:
    from harness.models.server import Request


def overhead(*, quick: bool) -> Table:
    """Milliseconds of one judgement (announced, prompted, answered, deleted) and of the call alone."""
    turns = 5 if quick else 20
    table = Table(
        f"Judge in the real opencode ({turns} turns, a model that answers at once)", ("ms", "median", "p90")
    )
    if find_opencode() is None:
        table.notes = ["opencode is missing: make hosts"]
        return table
    judged, bare = [], []
    with (
        ModelServer() as llm,
        sandbox() as box,
        Daemon(box, REFLECTD_JUDGE_PROVIDER="host") as daemon,
        OpencodeServe(box, llm.url) as host,
    ):
        for number in range(turns + 2):
            session = host.create_session()
            llm.script(text("Written."), session=session.id)
            llm.judge(COMPLETE)
            session.prompt(f"Write down number {number}")
            verdict = daemon.wait_verdict(session.id, "complete")
            (asked,) = llm.of("judge")[-1:]
            llm.api(COMPLETE)
            took = _bare(llm.url, asked)
            if number >= 2:
                judged.append(float(verdict["judge"]["ms"]))
                bare.append(took)
    for what, values in (("judge session", judged), ("bare call", bare)):
        table.rows.append((what, f"{median(values):.1f}", f"{percentile(values, 0.9):.1f}"))
        table.values[what] = {"median": median(values), "p90": percentile(values, 0.9)}
    return table


def _bare(url: str, asked: Request) -> float:
    """The same request once more, without opencode, read to its end."""
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(asked.body).encode(), headers)
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=20) as response:
        response.read()
    return (time.perf_counter() - began) * 1000
