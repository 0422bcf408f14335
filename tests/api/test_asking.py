"""Whom the library asks, how often, and after which pauses: against servers in the real wire formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from daemon.api.asking import Asking
from daemon.api.playbook import BASE_DELAY, MAX_RETRIES, asked
from daemon.core.errors import UserError
from daemon.testing import FakeClock
from harness.models.api_servers import Cuts, Fails, LlmServer, Says
from tests.learning.playbook.books import Json, book, point

FINE: Json = {"analysis": "fine", "bullet_tags": []}
NOTHING: Json = {"analysis": "", "bullet_tags": []}
TALK = [{"role": "assistant", "content": "done"}]


class Pauses:
    """A clock that goes on only in pauses, which are kept."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def asking(self, env: dict[str, str]) -> Asking:
        return Asking(env, self.sleep, Random(1), self.clock)


async def reflected(asking: Asking) -> Json:
    return await asked(asking, "reflector", book(), TALK)


@pytest.mark.shows("REQ-REFL-003")
@pytest.mark.parametrize("passing", [Fails(429), Fails(500), Fails(503), Fails(529), Cuts(b"")])
async def test_req_refl_003_what_passes_is_tried_again_with_growing_pauses(
    server: LlmServer, env: dict[str, str], passing: Fails
) -> None:
    """Three attempts, 2 s and 4 s apart, give or take a quarter."""
    pauses = Pauses()
    server.script(passing, passing, Says(json.dumps(FINE)))
    assert await reflected(pauses.asking(env)) == FINE
    assert len(server.got) == MAX_RETRIES
    for i, slept in enumerate(pauses.slept):
        assert BASE_DELAY * 2**i * 0.75 <= slept <= BASE_DELAY * 2**i * 1.25
    assert len(pauses.slept) == MAX_RETRIES - 1


@pytest.mark.shows("SCN-REFL-005-01")
async def test_scn_refl_005_01_an_unreachable_api(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """All attempts are used, then the result is empty; stdout stays the caller's."""
    pauses = Pauses()
    env["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    assert await reflected(pauses.asking(env)) == NOTHING
    assert len(pauses.slept) == MAX_RETRIES - 1
    out = capsys.readouterr()
    assert "nothing listens at" in out.err
    assert out.out == ""


async def test_what_does_not_pass_is_not_tried_again(server: LlmServer, env: dict[str, str]) -> None:
    """A wrong key stays wrong."""
    pauses = Pauses()
    server.script(Fails(401))
    assert await asked(pauses.asking(env), "curator", book(), NOTHING) == {"reasoning": "", "operations": []}
    assert pauses.slept == []


@pytest.mark.shows("I46")
async def test_the_transcript_is_sent_without_secrets(server: LlmServer, env: dict[str, str]) -> None:
    """As every prompt of reflectd."""
    server.script(Says(json.dumps({"new_key_points": [], "evaluations": []})))
    secret = "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEY"
    talk = [{"role": "user", "content": f"export AWS_SECRET_ACCESS_KEY={secret}"}]
    await asked(Pauses().asking(env), "keypoints", book(point("pat-001", "a")), talk)
    assert secret not in server.got[0].user[0]
    assert "redacted" in server.got[0].user[0]


@pytest.mark.shows("CON-ACE-003")
async def test_con_ace_003_anthropic_is_asked_first(server: LlmServer, env: dict[str, str]) -> None:
    """Another API only where that one gives no answer, or has no key."""
    both = {**env, "REFLECTD_OPENAI_BASE_URL": server.url, "REFLECTD_OPENAI_MODEL": "small"}
    fine = Says(json.dumps(FINE))
    server.script(fine, Fails(401), fine, fine)
    for given in (both, both, both | {"ANTHROPIC_API_KEY": ""}):
        assert await reflected(Pauses().asking(given)) == FINE
    assert [got.wire for got in server.got] == ["anthropic", "anthropic", "openai", "openai"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ANTHROPIC_API_KEY": ""}, "no model can be asked here"),
        ({"REFLECTD_JUDGE_PROVIDER": "offline"}, "no model may be asked"),
        ({"REFLECTD_SPEND_TOKENS_PER_DAY": "0"}, "no model may be asked"),
        ({"REFLECTD_JUDGE_PROVIDER": "nobody"}, "judge.provider"),
    ],
)
async def test_nobody_to_ask_is_said(
    env: dict[str, str], more: dict[str, str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings count: no key, rules only, a limit of 0, a mistake in them."""
    asking = Pauses().asking({**env, **more})
    with pytest.raises(UserError, match=why):
        asking.providers()
    assert await reflected(asking) == NOTHING
    assert why in capsys.readouterr().err


def test_a_judge_that_was_chosen_for_a_host_goes_before_every_key(
    env: dict[str, str], tmp_path: Path
) -> None:
    """`/reflect` on a terminal asks whom the person chose to judge, and no API whose key is lying around; the
    library asks as the seeds say.
    """
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    more = {**env, "REFLECTD_JUDGE_CLAUDE_CODE": "claude-cli", "REFLECTD_CLAUDE_CLI_PATH": str(claude)}
    assert [p.name for p in Asking(more, judges=True).providers()] == ["claude-cli"]
    assert [p.name for p in Asking(more).providers()] == ["anthropic"]
    assert [p.name for p in Asking(env, judges=True).providers()] == ["anthropic"]


def test_importing_the_library_is_cheap() -> None:
    """No server, SDK or log is loaded until a model is asked, under the name of the installed package."""
    code = (
        "import sys, reflectd.api.playbook as p; p.apply_bullet_tags({}, []);"
        "print([m for m in ('aiohttp', 'anthropic', 'openai', 'structlog') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "[]\n"
