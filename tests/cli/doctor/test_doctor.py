"""``reflectd doctor``, which runs its ``checks`` one after the other."""

from __future__ import annotations

import json
import time

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.hosts.wire import WireHost
from tests.support.machine.command_line import reflectd, said


def checks(box: Sandbox, *args: str, **env: str) -> tuple[int, dict[str, list[tuple[str, str, str]]]]:
    """Exit code, and the findings by name: (outcome, text, mend)."""
    done = reflectd(box, "doctor", "--json", *args, **env)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for c in json.loads(done.stdout)["checks"]:
        found.setdefault(c["name"], []).append((c["outcome"], c["text"], c["mend"]))
    return done.returncode, found


def outcomes(found: dict[str, list[tuple[str, str, str]]], name: str) -> list[str]:
    return [c[0] for c in found[name]]


def test_doctor_of_a_healthy_installation(box: Sandbox) -> None:
    """Exit code 0: the daemon, the socket, the database and the plugin line are found and fine."""
    said(reflectd(box, "setup", "opencode"), 0)
    box.state.chmod(0o700)
    with Daemon(box), WireHost(box.socket, box.project):
        code, found = checks(box)
        said(reflectd(box, "doctor"), 0, "ok")
    assert code == 0
    for name in ("package", "settings", "state", "socket", "daemon", "plugin", "database"):
        assert outcomes(found, name) == ["ok"], found[name]


def test_doctor_finds_what_is_wrong(box: Sandbox) -> None:
    """Exit code 1; each finding says what to do."""
    box.state.chmod(0o777)
    box.socket.write_text("no socket")
    settings = box.home / ".config" / "opencode" / "opencode.json"
    settings.write_text(json.dumps({"plugin": ["file:///gone/plugin-shim/opencode/src/index.ts"]}))
    (box.state / "reflectd.sqlite3").write_bytes(b"garbage" * 1000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    lines = [
        f"timestamp={stamp}.1Z level=error part=daemon event=bug",
        "timestamp=2001-01-01T00:00:00Z level=error event=old",
    ]
    (box.state / "reflectd.log").write_text("\n".join(lines))
    code, found = checks(box, REFLECTD_JUDGE_PROVIDER="anthropic")
    assert code == 1
    for name in ("state", "socket", "plugin", "database", "providers"):
        assert "fail" in outcomes(found, name), found[name]
        assert all(mend for outcome, _, mend in found[name] if outcome != "ok")
    assert outcomes(found, "daemon") == outcomes(found, "log") == ["warn"]
    assert "1 error in" in found["log"][0][1]
    assert "ANTHROPIC_API_KEY" in found["providers"][0][2]
    said(reflectd(box, "doctor"), 1, "failed", "->", "chmod 700")


def test_doctor_tells_wrong_settings(box: Sandbox) -> None:
    """A wrong setting is a finding that names it; the other checks run."""
    code, found = checks(box, REFLECTD_JUDGE_PROVDER="x")
    assert (code, outcomes(found, "settings")) == (1, ["fail"])
    assert "REFLECTD_JUDGE_PROVIDER" in found["settings"][0][1]
    assert outcomes(found, "package") == ["ok"]


def test_doctor_sees_a_stale_socket_and_a_stopped_daemon(box: Sandbox) -> None:
    """A socket left by a crash and the mark of `reflectd stop` are told apart."""
    with Daemon(box) as daemon:
        daemon.kill9()
    code, found = checks(box)
    assert (code, outcomes(found, "socket")) == (0, ["warn"])
    assert "stale" in found["socket"][0][1]
    (box.state / "stopped").touch()
    assert "reflectd stop" in checks(box)[1]["daemon"][0][1]


def test_doctor_names_the_judge_of_each_host(box: Sandbox) -> None:
    """As the settings say, and with a daemon as that daemon really does it; what to do about the rules."""
    auto = {"REFLECTD_JUDGE_PROVIDER": "auto"}
    code, found = checks(box, **auto)
    assert outcomes(found, "judge") == ["ok", "ok", "ok"]  # nobody uses Claude Code here
    said(reflectd(box, "setup", "claude-code", **auto), 0)
    code, found = checks(box, **auto)
    opencode, claude, _ = found["judge"]
    assert opencode[:2] == ("ok", "opencode -> your session's own model, then the rules")
    assert (claude[0], "setup claude-code" in claude[2]) == ("warn", True)
    assert claude[1].startswith("Claude Code -> the rules (no model")
    chosen = {**auto, "REFLECTD_JUDGE_CLAUDE_CODE": "offline"}
    assert outcomes(checks(box, **chosen)[1], "judge") == ["ok", "ok", "ok"]
    code, found = checks(box, **auto, REFLECTD_JUDGE_CLAUDE_CODE="anthropic")
    assert (code, outcomes(found, "judge")) == (1, ["ok", "fail", "ok"])
    assert "ANTHROPIC_API_KEY" in found["judge"][1][1]
    with Daemon(box, **chosen):
        key = {"ANTHROPIC_API_KEY": "k", "REFLECTD_JUDGE_CLAUDE_CODE": "anthropic"}
        outcome, text, mend = checks(box, **auto, **key)[1]["judge"][1]
        assert (outcome, "reflectd restart" in mend) == ("warn", True)
        assert "Claude Code -> the rules" in text
        assert "by this shell's settings: Anthropic's API" in text


@pytest.mark.shows("I46")
def test_doctor_never_shows_a_key(box: Sandbox) -> None:
    """That a key is set is shown, the key is not."""
    key = "sk-ant-api03-" + "k" * 40
    env = {"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key, "REFLECTD_JUDGE_PROVIDER": "auto"}
    for args in (["doctor"], ["doctor", "--json"]):
        text = said(reflectd(box, *args, **env), 0, "reflectd setup claude-code --judge anthropic")
        assert "kkkk" not in text
    with Daemon(box, **env):
        for args in (["doctor"], ["doctor", "--json"]):
            text = said(reflectd(box, *args, **env), 0, "anthropic, then openai")
            assert "anthropic: from ANTHROPIC_API_KEY of the environment, sent to api.anthropic.com" in text
            assert "kkkk" not in text


def test_doctor_online_without_an_api(box: Sandbox) -> None:
    """Without an API nothing is called; a closed port is reported as such."""
    assert outcomes(checks(box, "--online")[1], "online") == ["ok"]
    key = {"ANTHROPIC_API_KEY": "k", "REFLECTD_ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    code, found = checks(box, "--online", **key)
    assert (code, outcomes(found, "online")) == (1, ["fail"])
    assert "base_url" in found["online"][0][2]


def test_doctor_names_the_model_for_embeddings(box: Sandbox) -> None:
    """Which one is used; none is fine unless the settings name one. A key is never shown."""
    _, found = checks(box, REFLECTD_EMBED_PROVIDER="none")
    assert found["embeddings"] == [("ok", "embed.provider is none: only words are compared", "")]
    _, found = checks(box, REFLECTD_EMBED_BASE_URL="http://127.0.0.1:9")
    assert found["embeddings"] == [("ok", "openai: text-embedding-3-small at 127.0.0.1:9, without a key", "")]
    _, found = checks(box, REFLECTD_EMBED_PROVIDER="openai")
    ((outcome, text, mend),) = found["embeddings"]
    assert (outcome, mend) == ("warn", "set embed.base_url or embed.key_file")
    assert "only words are compared" in text
    _, found = checks(box, REFLECTD_EMBED_KEY_FILE=str(box.home / "none"))
    assert found["embeddings"][0][0] == "warn"
    assert "is missing or empty" in found["embeddings"][0][1]


@pytest.mark.needs("embeddings")
def test_doctor_checks_the_model_on_this_machine(box: Sandbox) -> None:
    """Its files are the ones that are meant."""
    _, found = checks(box)
    assert found["embeddings"] == [("ok", "minilm: all-MiniLM-L6-v2-int8 on this machine", "")]
