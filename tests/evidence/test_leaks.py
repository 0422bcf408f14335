"""Secrets in a commit, and files in it that nobody asked for."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.core.evidence import Evidence, Row
from daemon.core.llm import Prompt
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.evidence.collect import collect
from daemon.evidence.rows import MAX_NAMES, is_secret
from daemon.llm.offline import judge
from tests.support.hosts.tales import TALES, Tale
from tests.support.transcripts import PUSH, bash, edit, evidence_of, failed

COMMITTED = "[main 1a2b3c4] Fix\n 2 files changed, 5 insertions(+)\n create mode 100644 {}"


def commit(*paths: str) -> ToolCall:
    """A commit of everything that is there."""
    output = COMMITTED.format("\n create mode 100644 ".join(paths))
    return bash("git add -A && git commit -m Fix", output)


def leak(*calls: ToolCall, ask: str = "Fix it, commit and push") -> tuple[Row, ...]:
    """The rows of kind ``leak``."""
    return evidence_of(ask, edit("src/a.py"), *calls).of("leak")


def verdict(evidence: Evidence) -> dict[str, Any]:
    """What the rules say."""
    return judge(Prompt("judge", "judge", "", "", evidence=evidence)).data or {}


@pytest.mark.parametrize("kind", TALES, ids=["opencode", "claude_code"])
@pytest.mark.parametrize(("pushed", "severity"), [(False, "HIGH"), (True, "BLOCKER")])
def test_a_secret_in_a_commit(kind: type[Tale], severity: str, *, pushed: bool) -> None:
    """The commit's own output says it. Pushed: BLOCKER. The feedback rewrites no history."""
    tale = kind()
    tale.types("Fix the login, commit" + " and push" * pushed)
    tale.edits("src/a.py", "x = 1", "x = 2")
    tale.runs("pytest -q", "7 passed in 0.10s")
    tale.runs("git add -A && git commit -m Fix", COMMITTED.format(".env"))
    if pushed:
        tale.runs("git push", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main")
    tale.says("Done.")
    evidence = collect(tale.transcript())
    (row,) = evidence.of("leak")
    assert (row.open, row.detail, row.command) == (True, "pushed" if pushed else "committed", ".env")
    assert "`.env` was committed" in row.text
    found = verdict(evidence)
    assert (found["complete"], found["severity"]) == (False, severity)
    assert "git rm --cached -- .env" in found["feedback"]
    assert "the person has to rotate" in found["feedback"]


def test_a_tracked_secret_that_changed() -> None:
    """``git commit -am`` takes in a secret that was tracked before; ``git status`` had named it."""
    look = bash("git status -s", " M .env\n M src/a.py")
    (row,) = leak(look, bash("git commit -am Fix", "[main 1a2b3c4] Fix\n 2 files changed, 2 insertions(+)"))
    assert (row.open, row.command) == (True, ".env")


SECRET = """
.env app/.env.production .netrc deploy/id_rsa keys/server.pem cert.p12 certs/server.key a/release.keystore
credentials.json config/secrets.yml client_secret.json service-account.json gcp-service-account-prod.json
shop-firebase-adminsdk-x1.json terraform.tfstate kubeconfig prod-dump.sql backup_2024.tar users.dump
"""
NO_SECRET = """
.env.example .env.sample .env.template config/.env.dist tests/fixtures/server.pem testdata/id_rsa ca.pem
public.key certs/chain.pem src/environment.ts src/secrets.py docs/credentials.md db/schema.sql
db/seed-dump.sql backup.py
"""


def test_names_of_secrets() -> None:
    """Keys, passwords, states and dumps; not templates, public parts, test data or code."""
    assert [path for path in SECRET.split() if not is_secret(path)] == []
    assert [path for path in NO_SECRET.split() if is_secret(path)] == []


def test_what_the_person_asked_for_is_no_leak() -> None:
    """A file that the request names, or a template that the agent wrote."""
    (named,) = leak(commit(".env"), PUSH, ask="Commit the .env too and push")
    assert not named.open
    assert "the request names it" in named.text
    assert not leak(edit(".env.example"), commit(".env.example"), PUSH)


def test_what_is_no_longer_tracked_is_settled() -> None:
    """Before a push nothing is left; after one the row stays, because what was pushed is known."""
    gone = (
        bash("git rm --cached .env", "rm '.env'"),
        bash("git commit -m Stop", "[main 2] Stop\n 1 file changed"),
    )
    for calls, is_open, settled, path in (
        ((commit(".env"), *gone), False, True, ".env"),
        ((commit(".env"), PUSH, *gone, PUSH), False, False, ".env"),
        ((commit(".env", "id_rsa"), *gone), True, False, "id_rsa"),
        ((commit(".env"), bash("git reset --soft HEAD~1")), False, True, ".env"),
    ):
        (row,) = leak(*calls)
        assert (row.open, row.settled, row.command) == (is_open, settled, path)
        assert ("the person has to rotate it" in row.text) is (PUSH in calls)


@pytest.mark.parametrize(
    "push",
    [
        bash("git push", "! [rejected] main -> main (fetch first)", 1),
        failed("bash", "The user rejected permission to use this specific tool call.", command="git push"),
        failed("Bash", "The user doesn't want to proceed with this tool use.", command="git push"),
    ],
)
def test_a_push_that_did_not_happen(push: ToolCall) -> None:
    """It is a leak, and nothing was pushed."""
    (row,) = leak(commit(".env"), push)
    assert row.detail == "committed"


def test_order_counts_and_a_sub_agents_calls_do() -> None:
    """A push before the commit is none of it; what a sub-agent committed is read too."""
    (row,) = leak(bash("git commit -qam x"), PUSH, commit(".env"))
    assert row.detail == "committed"
    (row,) = leak(ToolCall("t", "task", "completed", {}, inner=(commit("id_rsa"),)))
    assert row.open


def test_files_that_nobody_asked_for() -> None:
    """Strangers in a commit are a closed row; what was written, locks and named files are none."""
    (row,) = leak(commit("notes/todo.docx", "src/a.py", "package-lock.json", "uv.lock", "go.sum"))
    assert (row.open, row.detail) == (False, "strangers")
    assert row.text.endswith("does not name: notes/todo.docx")
    assert not leak(commit("src/a.py", "yarn.lock"))
    assert not leak(commit("notes/todo.docx"), ask="Commit todo.docx too")
    (row,) = leak(commit(*(f"f{i}.bin" for i in range(MAX_NAMES + 4))))
    assert row.text.endswith(" and 4 more")


def test_where_files_are_not_known_nobody_is_a_stranger() -> None:
    """A script or a sub-agent out of sight may have written them."""
    blind = bash("python3 - <<'EOF'\nopen('x', 'w')\nEOF")
    assert not leak(blind, commit("x"))
    assert not leak(ToolCall("t", "task", "completed", {}), commit("x"))


def test_the_agent_is_told_once() -> None:
    """What it did about it may not be readable: the row is closed after the feedback that named the file."""
    calls = (commit(".env"), PUSH)
    before = Message("a", "assistant", calls=calls, finish="stop", text="Done.")
    told = Message("f", "user", text="`.env` was committed and pushed. Stop tracking it.", order="rfl_1")
    after = Message("b", "assistant", text="I can't.", finish="stop")
    asked = Message("u", "user", text="Add a login page", human=True)
    (row,) = collect(Transcript("s", (asked, before, told, after))).of("leak")
    assert not row.open
    (row,) = collect(Transcript("s", (asked, before))).of("leak")
    assert row.open
