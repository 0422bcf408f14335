"""Which providers judge the sessions of which host, in a real daemon with both hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.llm.openai_compat import OpenAIProvider
from daemon.store import ledger
from daemon.testing import FakeClock
from harness.models.api_servers import Fails, Says, llm_server
from tests.support.hosts.claude_code_sim import ClaudeSim
from tests.support.hosts.claude_code_sim import write as wrote
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, write

EVIDENCE = "daemon.evidence.collect"
COMPLETE = '{"complete": true, "severity": "NONE"}'


async def told(folder: Path, text: str) -> dict[str, dict[str, Any]]:
    """Host -> what the status of a daemon with these settings says about its judge."""
    sim = SimDaemon(folder, FakeClock(), None, config.from_text(text))
    daemon = await sim.start()
    try:
        found: dict[str, dict[str, Any]] = daemon.status.status()["judges"]
        return found
    finally:
        await sim.stop()


async def asked(folder: Path, text: str) -> dict[str, set[str]]:
    """Host -> the providers that were asked about one turn of it. ``why`` names exactly these."""
    workspace = folder / "work"
    workspace.mkdir()
    found: dict[str, set[str]] = {}
    sim = SimDaemon(folder, FakeClock(), None, config.from_text(text))
    host = SimHost(str(workspace), sim.clock)
    daemon = await sim.start()
    try:
        await host.connect(daemon)
        await host.types("ses_o")
        await host.works("ses_o", tools=(write("a.py"),))
        claude = ClaudeSim(daemon, sim.clock, workspace, "ses_c")
        await claude.start()
        await claude.types()
        await claude.works(tools=(wrote("a.py"),))
        await sim.settle()
        for kind, session in (("opencode", "ses_o"), ("claude-code", "ses_c")):
            found[kind] = {row.provider for row in ledger.report(daemon.db, session=session).rows}
            told = await daemon.status.why(session, "")
            assert told is not None
            assert (told["judge"]["host"], set(told["judge"]["asked"])) == (kind, found[kind])
    finally:
        await host.disconnect()
        await sim.stop()
    return found


async def test_what_a_judgement_needs_is_loaded_when_a_session_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An SDK and the evidence: not when the daemon starts, which may never need them, and not at the call,
    which would wait for them.
    """
    monkeypatch.delitem(sys.modules, EVIDENCE, raising=False)
    settings = config.from_text("[judge]\nprovider = 'openai'\n[openai]\nbase_url = 'http://127.0.0.1:9'")
    sim = SimDaemon(tmp_path, FakeClock(), None, settings)
    host = SimHost(str(tmp_path), sim.clock)
    daemon = await sim.start()
    (provider,) = (p for p in daemon.world.calls.providers if isinstance(p, OpenAIProvider))
    try:
        await host.connect(daemon)
        await host.create("ses_o")
        await sim.settle()
        assert (provider.loaded, EVIDENCE in sys.modules) == (False, False)
        await host.types("ses_o")
        await sim.settle()
        assert (provider.loaded, EVIDENCE in sys.modules) == (True, True)
    finally:
        await host.disconnect()
        await sim.stop()


async def test_claude_codes_judge_leaves_opencode_its_own_model(tmp_path: Path) -> None:
    """Chosen for Claude Code only: its sessions go to the server, opencode's to the model of the host."""
    async with llm_server() as server:
        server.script(*[Says(COMPLETE)] * 4)
        text = f'[judge]\nprovider = "host"\nclaude_code = "openai"\n[openai]\nbase_url = "{server.url}/v1"'
        found = await asked(tmp_path, text)
        assert found == {"opencode": {"host"}, "claude-code": {"openai"}}
        assert len(server.got) > 0


async def test_a_judge_that_is_not_set_up_stops_nobody_else(tmp_path: Path) -> None:
    """Without the key the daemon starts, opencode is judged, and nobody is asked about Claude Code."""
    found = await asked(tmp_path, '[judge]\nprovider = "offline"\nclaude_code = "anthropic"\n')
    assert found == {"opencode": {"offline"}, "claude-code": set()}


@pytest.mark.parametrize(
    ("text", "opencode", "claude"),
    [
        ("", ("host", "offline"), ("offline",)),
        ('provider = "host"', ("host",), ()),
        ('provider = "offline"', ("offline",), ("offline",)),
        ('claude_code = "offline"', ("host", "offline"), ("offline",)),
        ('claude_code = "openai"', ("host", "offline"), ("openai",)),
        ('provider = "offline"\nclaude_code = "openai"', ("offline",), ("openai",)),
        ('claude_code = "claude-cli"', ("host", "offline"), ("claude-cli",)),
    ],
)
async def test_who_is_asked_about_which_host(
    tmp_path: Path, text: str, opencode: tuple[str, ...], claude: tuple[str, ...]
) -> None:
    """The setting of a host counts for it alone, and `auto` never takes its judge along."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    more = '[openai]\nbase_url = "http://127.0.0.1:9/v1"\n' if "openai" in text else ""
    found = await told(tmp_path, f'[judge]\n{text}\n{more}[claude_cli]\npath = "{program}"\n')
    assert {host: judge["asked"] for host, judge in found.items()} == {
        "opencode": opencode,
        "claude-code": claude,
        "codex": tuple(name for name in opencode if name != "host"),  # it lends no model
    }


@pytest.mark.parametrize("limit", ["cents_per_day", "cents_per_session", "tokens_per_day"])
async def test_a_limit_of_nothing_means_the_rules(tmp_path: Path, limit: str) -> None:
    """With a limit of 0 no model is asked, and the status says that the rules judge, and why."""
    text = (
        f'[judge]\nclaude_code = "openai"\n[openai]\nbase_url = "http://127.0.0.1:9"\n[spend]\n{limit} = 0\n'
    )
    folder = tmp_path / "a"
    folder.mkdir()
    wanted = {"setting": f"spend.{limit}", "chosen": "0", "asked": ("offline",)}
    assert (await told(folder, text))["claude-code"] == wanted
    assert (await asked(tmp_path, text))["claude-code"] == {"offline"}


@pytest.mark.parametrize("where", ["opencode", "claude-code", "claude-code strict"])
async def test_a_judge_that_is_refused_again_and_again_is_told_once(tmp_path: Path, where: str) -> None:
    """Three refusals in a row: the person reads it once, with what to do, until the judge works again."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    strict = "strict" in where
    async with llm_server() as server:
        text = f'[judge]\nprovider = "openai"\n[openai]\nbase_url = "{server.url}/v1"\n'
        sim = SimDaemon(
            tmp_path,
            FakeClock(),
            None,
            config.from_text(f"{text}[claude_code]\nstrict = {str(strict).lower()}"),
        )
        daemon = await sim.start()
        host = SimHost(str(workspace), sim.clock)
        await host.connect(daemon)
        await host.create("ses_o")
        claude = ClaudeSim(daemon, sim.clock, workspace, "ses_c")
        claude.strict = strict
        await claude.start()
        read: list[str] = []

        async def turn(*answers: Fails | Says) -> None:
            server.script(*answers)
            if where == "opencode":
                await host.types("ses_o")
                await host.works("ses_o", tools=(write("a.py"),))
                await sim.settle()
                read[:] = [toast for toast in host.toasts if "refused" in toast]
                return
            await claude.types()
            stopped = await claude.works(tools=(wrote("a.py"),))
            await sim.settle()
            answers_read = (claude.heard, stopped)
            read.extend(a.json["systemMessage"] for a in answers_read if "refused" in a.text)

        try:
            for refused in range(1, 6):
                await turn(Fails(401, "invalid api key", "invalid_api_key"))
                assert list(daemon.status.status()["providers_refused"]) == ["openai"] * (refused >= 3)
            (told,) = read
            assert "refused 3 times in a row. openai: " in told
            assert "Check the API key" in told
            await turn(Says(COMPLETE))
            assert (daemon.status.status()["providers_refused"], len(read)) == ([], 1)
            for _ in range(4):
                await turn(Fails(403, "forbidden"))
            assert len(read) == 2
        finally:
            await host.disconnect()
            await sim.stop()
