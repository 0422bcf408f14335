"""What learning costs where it meets the agent: composing what is offered, the hook of opencode's plugin that
puts it into each request, and the daemon's memory before, with and after a model for embeddings.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.judged import VERDICT, Model, model
from bench.stand import REPO, Connection, Failed, Server, Table, median, percentile
from bench.turns import Host
from daemon.clock import SystemClock
from daemon.core.offers import Offer, compose
from daemon.learning.embed import minilm
from daemon.learning.playbook.project_playbook import ProjectPlaybook
from harness.hosts.opencode import find_opencode

if TYPE_CHECKING:
    from collections.abc import Callable


BUDGETS = (4_000, 9_000)  # characters: as it is by default, and the most
OFFERED = (10, 300, 3_000)  # points; the daemon looks at 300 of one project
POINTS = 300
TRANSFORM = REPO / "plugin-shim" / "opencode" / "test" / "transform.ts"
IDLE_S = 3.0
TURNS = 6
ALIKE = 40  # points of the project whose vectors are made
SERVE = (
    "import sys\nfrom daemon.learning.embed.minilm import MiniLM\n"
    f"MiniLM.__init__.__kwdefaults__['idle_s'] = {IDLE_S}\n"  # and not ten minutes
    "from daemon.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)


class _Learns(Model):
    """Judges, looks back and curates, and says each time that it read a million tokens."""

    says = json.dumps({**VERDICT, "analysis": "a", "bullet_tags": [], "confirmed": [], "reasoning": "r",
                       "operations": [], "nonce": "any"})  # fmt: skip
    tokens = 1_000_000


def composer(*, quick: bool) -> Table:
    """The pure function alone, and a host's question to the real daemon."""
    runs = 20 if quick else 200
    table = Table(f"Composing what is offered ({runs} runs)", ("ms", "median", "p99", "worst"))
    for number in OFFERED:
        offers = [
            Offer(f"point:{i}", "point", f"[oth-{i:03d}] helpful=1 harmful=0 :: {_text(i)}", i % 9, "Points:")
            for i in range(number)
        ]
        for budget in BUDGETS:
            _row(
                table,
                f"{number:,} points into {budget:,}",
                _timed(partial(compose, offers, budget), runs),
            )
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        known_points(folder / "w", folder / "d" / "state", POINTS)
        more = {"REFLECTD_JUDGE_PROVIDER": "host", "REFLECTD_PLAYBOOK_ENABLED": "true"}
        with Server(folder / "d", more=more) as server, Host(server, folder / "w", "bench") as host:
            asked = []
            for number in range(runs):
                session = host.opens(number)
                began = time.perf_counter()
                text = host.asks(session)
                asked.append((time.perf_counter() - began) * 1000)
                if "[oth-" not in text:
                    raise Failed(f"nothing was offered: {text[:200]!r}")
        _row(table, f"asked by a host, {POINTS} points known", asked)
    table.notes = [
        "aim: a host's question < 40 ms; the last row has the socket and the record of what was given"
    ]
    return table


def transform(*, quick: bool) -> Table:
    """The hook ``experimental.chat.system.transform``, in the Bun of the real opencode."""
    table = Table("opencode's plugin: the hook of each request", ("ms", "median", "p99", "worst"))
    program = find_opencode()
    if program is None:
        table.notes = ["opencode is missing: make hosts"]
        return table
    with tempfile.TemporaryDirectory(prefix="rdb-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "BUN_BE_BUN": "1", "REFLECTD_NO_START": "1"}
        runs = "1000" if quick else "20000"
        done = subprocess.run(
            [str(program), "run", str(TRANSFORM), runs], env=env, capture_output=True, text=True, check=True
        )
    for name, (middle, most, worst) in json.loads(done.stdout.splitlines()[-1]).items():
        table.rows.append((name, f"{middle:.4f}", f"{most:.4f}", f"{worst:.2f}"))
        table.values[name] = {"median": middle, "p99": most, "worst": worst}
    table.notes = [
        "aim: < 1 ms",
        f"{runs} requests each; the first of a session waits for the daemon, 60 ms at most",
    ]
    return table


def memory(*, quick: bool) -> Table:
    """One daemon that looks back on a session without a model for embeddings, and one with the local one."""
    table = Table(f"Memory of a daemon that learns ({ALIKE} points)", ("after", "MB"))
    if lacking := minilm.missing():
        table.notes.append(f"left out: there is no {', '.join(lacking)} (make embed)")
        return table
    for provider in ("none", "minilm"):
        with tempfile.TemporaryDirectory(prefix="rdb-") as name, model(_Learns) as url:
            folder = Path(name).resolve()
            known_points(folder / "w", folder / "d" / "state", ALIKE)
            server = Server(folder / "d", more={
                "REFLECTD_JUDGE_PROVIDER": "openai", "REFLECTD_OPENAI_BASE_URL": url,
                "REFLECTD_PLAYBOOK_ENABLED": "true", "REFLECTD_SPEND_TOKENS_PER_DAY": "999999999",
                "REFLECTD_EMBED_PROVIDER": provider,
            })  # fmt: skip
            server.runs(SERVE)
            with server, Host(server, folder / "w", "bench") as host:
                host.cites("oth-001")
                if provider == "none":
                    _mb(table, "start", server)
                for number in range(TURNS):
                    host.asks(host.opens(number))
                    host.turn(number, finished=True)
                    host.settled(number)
                _mb(table, f"judging, embed.provider {provider}", server)
                host.deletes(TURNS - 1)
                most = _looked_back(server)
                table.rows.append((f"a look back, embed.provider {provider} (most)", f"{most:.1f}"))
                table.values[f"look back {provider}"] = most
                if quick and provider == "none":
                    continue  # there is no model that could go
                time.sleep(IDLE_S + 2)
                _mb(table, f"and {IDLE_S:g} s of idleness, embed.provider {provider}", server)
    table.notes = [f"the model goes after {IDLE_S:g} s here; in use after ten minutes"]
    return table


def _looked_back(server: Server) -> float:
    """Until a session was looked back on; the most memory meanwhile."""
    most, end = server.rss_mb(), time.monotonic() + 120
    with Connection(server.socket) as c:
        while time.monotonic() < end:
            most = max(most, server.rss_mb())
            if c.get("/v1/status")["features"]["playbook"].get("stretches"):
                return most
            time.sleep(0.02)
    raise Failed("the session was not looked back on")


def known_points(project: Path, state: Path, number: int) -> None:
    """A playbook whose points a person wrote."""
    project.mkdir(parents=True)

    with ProjectPlaybook(project, state, SystemClock(), "").change() as edit:
        edit.playbook["sections"]["OTHERS"] = [
            {"name": f"oth-{i + 1:03d}", "text": _text(i), "helpful": i % 7, "harmful": 0}
            for i in range(number)
        ]
        edit.what = "bench"
        edit.approved = [p["text"] for p in edit.playbook["sections"]["OTHERS"]]


def _text(i: int) -> str:
    return f"Module number {i} of this project reads its settings when it is imported, not when it runs."


def _timed(work: Callable[[], object], runs: int) -> list[float]:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return took


def _row(table: Table, name: str, ms: list[float]) -> None:
    row = (median(ms), percentile(ms, 0.99), max(ms))
    table.rows.append((name, *(f"{v:.3f}" for v in row)))
    table.values[name] = dict(zip(("median", "p99", "worst"), row, strict=True))


def _mb(table: Table, name: str, server: Server) -> None:
    time.sleep(1.0)
    mb = server.rss_mb()
    table.rows.append((name, f"{mb:.1f}"))
    table.values[name] = mb
