"""``reflectd judge`` on saved cases and exports; ``test_transcripts`` has Claude Code's transcripts."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from harness.machine.sandbox import REPO, Sandbox
from harness.models.api_servers import llm_server
from tests.cli.reflect.model import Answers, local_model
from tests.support.machine.command_line import reflectd, said

DATA = REPO / "tests" / "data"
GREEN = DATA / "judge" / "py_fix_with_green_suite.json"
RED = DATA / "judge" / "jest_failures_called_minor.json"
SAMPLE = REPO / ".reflection" / "samples" / "case.json"
EXPORT = DATA / "exports" / "opencode_1.18.json"


def put(box: Sandbox, session: str = "ses_one", at: int = 1_760_000_001_000) -> Path:
    """A case as the daemon saves it, in the project's folder."""
    found = json.loads(SAMPLE.read_text("utf-8"))
    found["case"]["session"] = found["verdict"]["session"] = session
    return box.file(f".reflection/{session}_{at}.json", json.dumps(found))


def test_judge_a_labelled_case(box: Sandbox) -> None:
    """The verdict for people: what, why with the cited row, who judged and what it cost. 10 is incomplete."""
    words = ("not done HIGH", "npx jest src/cart", "agrees", "the rules, without a model")
    text = said(reflectd(box, "judge", RED), 10, *words)
    assert "[E2: test at A6" in text  # the row behind the item
    said(reflectd(box, "judge", GREEN), 11, "verdict   not judged", "the calls prove neither")


def test_judge_as_json_is_the_verdict_object(box: Sandbox) -> None:
    """The same object that the verdict files hold, on stdout alone."""
    done = reflectd(box, "judge", "--json", SAMPLE)
    found, before = json.loads(done.stdout), json.loads(SAMPLE.read_text("utf-8"))["verdict"]
    before["timestamp"] = before["at"]
    same = ("session", "state", "severity", "timestamp")
    assert (done.returncode, [found[k] for k in same]) == (10, [before[k] for k in same])
    schema = json.loads((REPO / ".reflection" / "schemas" / "verdict.schema.json").read_text("utf-8"))
    assert set(schema["required"]) <= set(found)


def test_judge_an_export_from_stdin(box: Sandbox) -> None:
    """`opencode export | reflectd judge -` needs neither a daemon nor its folders."""
    said(reflectd(box, "judge", "-", stdin=EXPORT.read_bytes()), 11, "not judged", "Write hello.py")
    assert not box.state.exists() or not list(box.state.iterdir())


def test_judge_texts_cannot_move_the_cursor(box: Sandbox) -> None:
    """A transcript's escape sequences are shown, not obeyed."""
    text = SAMPLE.read_text("utf-8").replace("Reject an empty", "Reject \\u001b[2J an empty")
    done = reflectd(box, "judge", "-", stdin=text.encode())
    assert done.returncode == 10
    assert "\x1b" not in done.stdout
    assert "[2J" in done.stdout


@pytest.mark.parametrize(
    ("args", "stdin", "words"),
    [
        (("judge", "nothing.json"), b"", "nothing.json"),
        (("judge", "-"), b"", "stdin is empty"),
        (("judge", "-"), b"{}", "none of these"),
        (("judge", "."), b"", "not a regular file"),
        (("judge", "pipe.json"), b"", "not a regular file"),
        (("judge", "--provider", "host", "x"), b"", "invalid choice"),
        (("judge", "--provider", "anthropic", str(RED)), b"", "ANTHROPIC_API_KEY"),
        (("judge", "nothing.jsonl"), b"", "nothing.jsonl"),
        (("judge",), b"", "give FILE or --last"),
        (("judge", "--last", "x.jsonl"), b"", "give FILE or --last"),
        (("dispute", "--should-be", "finished"), b"", "done|not-done|your-turn"),
        (("case", "remove", "nothing"), b"", "no case"),
        (("case", "remove", str(RED)), b"", "not in"),
        (("dispute", "--should-be", "done"), b"", "no saved case"),
        (("dispute", "--should-be", "complete"), b"", "no saved case"),
        (("dispute", "ses_gone", "--should-be", "complete"), b"", "ses_gone"),
        (("dispute",), b"", "--should-be"),
    ],
    ids=lambda v: " ".join(map(os.path.basename, v))[:50] if isinstance(v, tuple) else "",
)
def test_wrong_arguments(box: Sandbox, args: tuple[str, ...], stdin: bytes, words: str) -> None:
    """Exit code 2, and what to do; a pipe is not waited for, and a labelled case of the project is never
    touched.
    """
    os.mkfifo(box.project / "pipe.json")
    before = RED.read_bytes(), EXPORT.read_bytes()
    said(reflectd(box, *args, stdin=stdin), 2, words)
    assert (RED.read_bytes(), EXPORT.read_bytes()) == before


@pytest.mark.shows("I46")
async def test_judge_asks_a_model(box: Sandbox) -> None:
    """A model behind the real SDK: its verdict, and a cost that is unknown and not 0. What it was sent holds
    no secret.
    """
    secret = "ghp_" + "a1B2" * 10
    text = GREEN.read_text("utf-8").replace("crash the importer", f"crash the importer {secret}")
    (box.project / "case.json").write_text(text)
    verdict = {"complete": False, "severity": "NONE", "missing": [], "requires_human_action": True}
    async with llm_server() as server:
        server.script(Answers(verdict))
        env = local_model(server.url)
        done = await asyncio.to_thread(reflectd, box, "judge", "case.json", "--provider", "openai", **env)
        said(done, 0, "your turn", "DIFFERS", "local-model", "unknown cost")
        assert server.left == 0
        assert secret not in json.dumps(server.got[0].body)
        assert "crash the importer" in json.dumps(server.got[0].body)
        env["REFLECTD_JUDGE_TIMEOUT_S"] = "5"
        done = await asyncio.to_thread(reflectd, box, "judge", "case.json", "--provider", "openai", **env)
        said(done, 11, "not judged", "no model answered", "openai")
