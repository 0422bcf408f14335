"""``judge``, ``case`` and ``dispute`` in a real process, on files of a real daemon."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import processes
from tests.support.llm_servers import Says, Wire, llm_server
from tests.support.reflectd import Daemon
from tests.support.sandbox import REPO, Sandbox, sandbox
from tests.support.waiting import wait_until
from tests.support.wire_host import WireHost, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiohttp import web

Done = subprocess.CompletedProcess[bytes]
DATA = REPO / "tests" / "data"
GREEN = DATA / "judge" / "py_fix_with_green_suite.json"
RED = DATA / "judge" / "jest_failures_called_minor.json"
PLAN = DATA / "judge" / "plan_was_the_request.json"
SAMPLE = REPO / ".reflection" / "samples" / "case.json"
EXPORT = DATA / "exports" / "opencode_1.18.json"


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


def reflectd(box: Sandbox, *args: str | Path, stdin: bytes = b"", **env: str) -> Done:
    """One command in the project; it never shows a trace."""
    done = subprocess.run(
        [sys.executable, "-m", "daemon", *map(str, args)],
        env=box.env(PYTHONPATH=str(REPO)) | env,
        cwd=box.project,
        input=stdin,
        capture_output=True,
        timeout=40,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def said(done: Done, code: int, *words: str) -> str:
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == code, text
    for word in words:
        assert word in text
    return text


def put(box: Sandbox, session: str = "ses_one", at: int = 1_760_000_001_000) -> Path:
    """A case as the daemon saves it, in the project's folder."""
    found = json.loads(SAMPLE.read_text("utf-8"))
    found["case"]["session"] = found["verdict"]["session"] = session
    return box.file(f".reflection/{session}_{at}.json", json.dumps(found))


def listed(box: Sandbox) -> list[dict[str, Any]]:
    found = json.loads(reflectd(box, "case", "list", "--json").stdout)
    assert found["folder"] == str(box.state / "cases")
    cases: list[dict[str, Any]] = found["cases"]
    return cases


def test_judge_a_labelled_case(box: Sandbox) -> None:
    """The verdict for people: what, why with the cited row, who judged and what it cost. 10 is incomplete."""
    text = said(
        reflectd(box, "judge", RED), 10, "incomplete HIGH", "npx jest src/cart", "as judged", "offline rules"
    )
    assert "missing" in text
    assert "\n            E" in text  # the row behind the item
    said(reflectd(box, "judge", GREEN), 0, "complete NONE", "0.00 USD")


def test_judge_as_json_is_the_verdict_object(box: Sandbox) -> None:
    """DESIGN §5: the same object that the verdict files hold, on stdout alone."""
    done = reflectd(box, "judge", "--json", SAMPLE)
    found, before = json.loads(done.stdout), json.loads(SAMPLE.read_text("utf-8"))["verdict"]
    assert done.returncode == 10
    assert [found[k] for k in ("session", "state", "severity", "timestamp")] == [
        before["session"],
        before["state"],
        before["severity"],
        before["at"],
    ]
    schema = json.loads((REPO / ".reflection" / "schemas" / "verdict.schema.json").read_text("utf-8"))
    assert set(schema["required"]) <= set(found)


def test_judge_an_export_from_stdin(box: Sandbox) -> None:
    """`opencode export | reflectd judge -` needs neither a daemon nor its folders."""
    said(reflectd(box, "judge", "-", stdin=EXPORT.read_bytes()), 0, "complete", "Write hello.py")
    assert not box.state.exists() or not list(box.state.iterdir())


def test_judge_texts_cannot_move_the_cursor(box: Sandbox) -> None:
    """A transcript's escape sequences are shown, not obeyed."""
    text = SAMPLE.read_text("utf-8").replace("Reject an empty", "Reject \\u001b[2J an empty")
    done = reflectd(box, "judge", "-", stdin=text.encode())
    assert done.returncode == 10
    assert b"\x1b" not in done.stdout
    assert b"[2J" in done.stdout


@pytest.mark.parametrize(
    ("args", "stdin", "words"),
    [
        (("judge", "nothing.json"), b"", "nothing.json"),
        (("judge", "-"), b"", "stdin is empty"),
        (("judge", "-"), b"{}", "none of these"),
        (("judge", "."), b"", "irectory"),
        (("judge", "--provider", "host", "x"), b"", "invalid choice"),
        (("judge", "--provider", "anthropic", str(RED)), b"", "ANTHROPIC_API_KEY"),
        (("judge", "--provider", "openai", str(RED)), b"", "OPENAI_API_KEY"),
        (("case", "label", "nothing", "--expect", "complete"), b"", "case list"),
        (("case", "label", str(RED), "--expect", "done"), b"", "invalid choice"),
        (("case", "label", str(EXPORT), "--expect", "complete"), b"", "not a case"),
        (("case", "remove", "nothing"), b"", "no case"),
        (("case", "remove", str(RED)), b"", "not in"),
        (("case", "save"), b"", "no saved case"),
        (("case",), b"", "WHAT"),
        (("dispute", "--should-be", "complete"), b"", "no saved case"),
        (("dispute", "ses_gone", "--should-be", "complete"), b"", "ses_gone"),
        (("dispute",), b"", "--should-be"),
    ],
    ids=lambda v: " ".join(map(os.path.basename, v))[:50] if isinstance(v, tuple) else "",
)
def test_wrong_arguments(box: Sandbox, args: tuple[str, ...], stdin: bytes, words: str) -> None:
    """Exit code 2, and what to do; a labelled case of the project is never touched."""
    before = RED.read_bytes(), EXPORT.read_bytes()
    said(reflectd(box, *args, stdin=stdin), 2, words)
    assert (RED.read_bytes(), EXPORT.read_bytes()) == before


def test_judge_does_not_wait_for_a_fifo(box: Sandbox) -> None:
    """Bad input: a FIFO is refused at once."""
    os.mkfifo(box.project / "pipe.json")
    said(reflectd(box, "judge", "pipe.json"), 2, "not a regular file")


def test_judge_says_when_no_rule_decides(box: Sandbox) -> None:
    """11 is unscored: no judge could say."""
    found = json.loads(SAMPLE.read_text("utf-8"))
    found["case"]["transcript"] = None
    found["case"]["evidence"] |= {"rows": [], "ending": "empty"}
    said(reflectd(box, "judge", "-", stdin=json.dumps(found).encode()), 11, "unscored", "no final text")


def test_dispute_and_undo(box: Sandbox) -> None:
    """One command makes the newest case a labelled one; twice replaces the label; one command undoes it."""
    put(box, "ses_old", 1_750_000_000_000)
    path = put(box)
    dry = said(
        reflectd(box, "dispute", "--should-be", "complete", "--dry-run"), 0, "would be kept", path.name
    )
    assert "undo" not in dry
    assert listed(box) == []
    assert not (box.state / "cases").exists()
    why = "The failure is old."
    text = said(reflectd(box, "dispute", "--should-be", "complete", "--why", why), 0, "judged    incomplete")
    kept = box.state / "cases" / path.name
    assert str(kept) in text
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [(c["session"], c["judged"], c["expect"], c["why"]) for c in listed(box)] == [
        ("ses_one", "incomplete", "complete", why)
    ]
    said(reflectd(box, "judge", path.stem), 10, "NOT as judged", why)
    said(reflectd(box, "dispute", "ses_o", "--should-be", "complete"), 2, "ses_old", "ses_one")
    said(reflectd(box, "dispute", "ses_on", "--should-be", "awaiting_user"), 0, "before: complete")
    assert [(c["expect"], c["why"]) for c in listed(box)] == [("awaiting_user", "")]
    assert json.loads(kept.read_text("utf-8"))["case"] == json.loads(path.read_text("utf-8"))["case"]
    said(reflectd(box, "case", "remove", path.stem), 0, "removed", str(kept))
    assert listed(box) == []
    assert path.exists()


def test_save_label_and_list(box: Sandbox) -> None:
    """A case is copied once and then left with its label; to a file of one's own it is copied on request."""
    path = put(box)
    said(reflectd(box, "case", "list"), 0, "no cases")
    said(reflectd(box, "case", "save"), 0, "saved", str(box.state / "cases" / path.name))
    said(
        reflectd(box, "case", "label", path.stem, "--expect", "complete", "--why", "w"), 0, "expects complete"
    )
    said(reflectd(box, "case", "save", "ses_one"), 0, "saved already")
    said(reflectd(box, "case", "list"), 0, path.stem, "incomplete", "complete", "Reject an empty")
    said(reflectd(box, "case", "save", "--out", "mine.json"), 0, "mine.json")
    said(reflectd(box, "case", "save", "--out", "mine.json"), 2, "exists")
    said(reflectd(box, "case", "label", "mine.json", "--expect", "incomplete"), 0)
    assert json.loads((box.project / "mine.json").read_text("utf-8"))["label"]["expect"] == "incomplete"
    assert [c["expect"] for c in listed(box)] == ["complete"]
    (box.state / "cases" / "broken.json").write_text("{")
    said(reflectd(box, "case", "list"), 0, path.stem, "broken", "not valid JSON")


def test_no_secret_comes_in_with_a_case(box: Sandbox) -> None:
    """I46: a case that was put there by other hands, and what the person types, are redacted when kept."""
    secret = "ghp_" + "a1B2" * 10
    path = put(box)
    path.write_text(path.read_text("utf-8").replace("Done, empty", f"Done with {secret}, empty"))
    said(reflectd(box, "dispute", "--should-be", "complete", "--why", f"uses {secret}"), 0)
    kept = (box.state / "cases" / path.name).read_text("utf-8")
    assert secret in path.read_text("utf-8")
    assert secret not in kept
    assert "Done with" in kept


def test_the_daemon_knows_where_a_session_works(box: Sandbox) -> None:
    """From any folder: the session's newest case is found by asking the daemon, or else in the folder."""
    other = box.root / "other"
    other.mkdir()
    with Daemon(box) as daemon, WireHost(box.socket, other, unfinished(other)) as host:
        host.send(host.turn("ses_far"))
        wait_until(lambda: [*(other / ".reflection").glob("ses_far_*.json")], 15, "the case", daemon.log)
        said(reflectd(box, "dispute", "--should-be", "complete"), 2, "no saved case")
        text = said(reflectd(box, "dispute", "ses_f", "--should-be", "complete"), 0, "ses_far")
        assert "judged    incomplete" in text
    (case,) = listed(box)
    assert (case["session"], case["judged"], case["expect"]) == ("ses_far", "incomplete", "complete")
    said(reflectd(box, "judge", case["path"]), 10, "Add a login page with tests")
    said(reflectd(box, "dispute", "ses_far", "--should-be", "complete"), 2, "no saved case")


class Judges(Says):
    """A model that gives a verdict with the call's own nonce."""

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        nonce = re.findall(r"\b[0-9a-f]{16}\b", json.dumps(body["messages"]))[-1]
        verdict = json.loads(self.text) | {"nonce": nonce}
        return await replace(Says(), text=json.dumps(verdict)).play(wire, body, request)


async def test_judge_asks_a_model(box: Sandbox) -> None:
    """A model behind the real SDK: its verdict, its tokens, and a cost that is unknown and not 0. I46: what
    it was sent holds no secret.
    """
    secret = "ghp_" + "a1B2" * 10
    text = GREEN.read_text("utf-8").replace("crash the importer", f"crash the importer {secret}")
    (box.project / "case.json").write_text(text)
    verdict = {"complete": False, "severity": "NONE", "missing": [], "requires_human_action": True}
    async with llm_server() as server:
        server.script(Judges(text=json.dumps(verdict)))
        env = {"REFLECTD_OPENAI_BASE_URL": f"{server.url}/v1", "REFLECTD_OPENAI_MODEL": "local-model"}
        done = await asyncio.to_thread(reflectd, box, "judge", "case.json", "--provider", "openai", **env)
        said(done, 0, "awaiting_user", "NOT as judged", "openai local-model, 1 call", "100 tokens in, 20 out")
        said(done, 0, "unknown cost")
        assert server.left == 0
        assert secret not in json.dumps(server.got[0].body)
        assert "crash the importer" in json.dumps(server.got[0].body)
        env["REFLECTD_JUDGE_TIMEOUT_S"] = "5"
        done = await asyncio.to_thread(reflectd, box, "judge", "case.json", "--provider", "openai", **env)
        said(done, 11, "unscored", "no judge answered", "openai")
