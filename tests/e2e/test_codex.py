"""The real Codex CLI with our hooks and the real daemon: rounds, Esc, restarts, headless runs."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from daemon.cli.setup.codex import EVENTS
from harness.hosts.claude_code import Ran, Running
from harness.hosts.codex import (
    SCRIPT,
    Codex,
    CodexTui,
    binary,
    hooked,
    items_of,
    said_by,
    session_of,
    shell,
    write,
)
from harness.machine.processes import left_over
from harness.machine.reflectd import Daemon, verdict_file
from harness.machine.sandbox import REPO, Sandbox
from harness.machine.waiting import wait_until
from harness.models.scripts import CLAIM, COMPLETE, DONE, HEADING, INCOMPLETE, REQUEST, UNDEFENDED, verdict
from harness.models.server import ModelServer, Step, slow, text

pytestmark = pytest.mark.needs("codex")


@pytest.fixture
def codex(box: Sandbox, llm: ModelServer) -> Codex:
    for name in ("answer.txt", "hello.py"):
        (box.project / name).unlink(missing_ok=True)
    return hooked(box, llm)


def unfinished(*then: Step) -> list[Step]:
    return [write("hello.py", "print('hello')\n"), shell("make test"), *(then or (text(CLAIM),))]


def mended(*then: Step) -> list[Step]:
    return [shell("echo 42 > answer.txt && make test"), *(then or (text(DONE),))]


@pytest.mark.main("Codex: feedback arrives")
def test_the_round_trip(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """The turn is judged, goes on with feedback, and passes, as one task."""
    llm.script(*unfinished(), *mended())
    ran = codex.run(REQUEST)
    assert (ran.code, said_by(ran)) == (0, [CLAIM, DONE]), ran.stdout + daemon.new_log()
    session = session_of(ran)
    assert HEADING in llm.of("main", session)[3].prompt
    daemon.wait_verdict(session, "complete")
    second, first = daemon.verdicts(session)
    assert (first["state"], second["state"]) == ("incomplete", "complete")
    assert first["task"] == second["task"]


@pytest.mark.main("Codex: no runaway")
def test_it_can_not_run_away(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """An agent that never finishes is sent back at most twice without progress, though Codex would go on for
    ever.
    """
    llm.script(*unfinished(), *(text(f"{CLAIM} {n}") for n in range(20)))
    ran = codex.run(REQUEST)
    assert ran.code == 0
    sent = [r for r in llm.of("main", session_of(ran)) if HEADING in r.prompt]
    assert 1 <= len(sent) <= 2, len(sent)


def reworded(n: int) -> Step:
    """The judge, who says the same in other words each time."""
    item = f"the tests fail, said for the {n}th time in other words {n * 'x'}"
    return text(
        verdict(
            complete=False, severity="HIGH", missing=[(item, "make test must pass")],
            next_actions=[f"make the tests pass, {n}"], feedback=f"Reason {n}: make test fails.",
        )
    )  # fmt: skip


@pytest.mark.parametrize("restarts", [False, True])
def test_a_judge_that_rewords_for_ever(own_box: Sandbox, llm: ModelServer, restarts: bool) -> None:
    """Two rounds without progress are the end, whatever the judge calls them, and across restarts of the
    daemon.
    """
    held = [slow(f"{CLAIM} {n}") for n in range(6)]
    llm.script(*unfinished(held[0]), *held[1:])
    llm.api(*(step for n in range(6) for step in (reworded(n), UNDEFENDED)))
    with model_daemon(own_box, llm) as daemon, hooked(own_box, llm).start(REQUEST) as running:
        for each in held:
            wait_until(
                lambda each=each: each.started.is_set() or running.is_over, "the next round or the end"
            )
            if running.is_over:
                break
            if restarts:
                daemon.restart()
            each.release(CLAIM)
        assert running.wait().code == 0
        sent = {m for r in llm.of("main") for m in r.user_texts if HEADING in m}
        assert 1 <= len(sent) <= 2, sent


@pytest.mark.shows("I8")
def test_a_resumed_codex_is_not_counted_anew(own_box: Sandbox, llm: ModelServer) -> None:
    """``codex exec resume`` needs a prompt, so each is a task of its own, with two rounds without progress.
    But how often the session was sent back counts on over its processes, one of them killed in a round, and
    over restarts of the daemon: at twice the limit of an hour it ends, whoever asks.
    """
    codex, sent = hooked(own_box, llm), list[int]()
    with Daemon(own_box, REFLECTD_JUDGE_MAX_PER_HOUR="3") as daemon:
        held = slow("Going on")
        llm.script(*unfinished(), held)
        with codex.start(REQUEST) as running:
            held.wait_started()
            session = llm.of("main")[0].session
            os.killpg(running.pid, signal.SIGKILL)
        for n in range(4):
            daemon.restart()
            llm.reset()
            llm.script(shell("make test"), *(text(f"{CLAIM} {n} {m}") for m in range(5)), session=session)
            ran = codex.run(f"{REQUEST} {n}", "resume", session)
            assert (ran.code, session_of(ran)) == (0, session), ran.stderr + daemon.new_log()
            sent.append(sum(HEADING in words for words in llm.of("main", session)[-1].user_texts))
        assert sent == [1 + 2, 3 + 2, 6, 6], daemon.verdicts(session)
        assert len({v["task"] for v in daemon.verdicts(session)}) == 5
        assert daemon.verdicts(session)[0]["reason"] == "guard:prompt_limit"
        daemon.new_log()


def test_a_question_is_the_persons(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """Nothing is said when only the person can answer."""
    llm.script(*unfinished(text("Shall I write answer.txt, or is that yours?")))
    ran = codex.run(REQUEST)
    assert len(said_by(ran)) == 1
    assert len(llm.of("main", session_of(ran))) == 3
    (found,) = daemon.verdicts(session_of(ran))
    assert found["requires_human_action"]


def test_what_exec_prints_is_untouched(own_box: Sandbox, llm: ModelServer) -> None:
    """With our hooks it prints what it prints without them, whether or not a daemon is there."""

    def printed(codex: Codex, **env: str) -> tuple[list[object], str]:
        llm.reset()
        llm.script(shell("echo hi"), text(DONE))
        ran = codex.run(REQUEST, **env)
        lines = [(line["type"], (line.get("item") or {}).get("text")) for line in items_of(ran)]
        return [*lines], ran.stderr.partition("codex_home")[0]

    bare = printed(Codex(own_box, llm.url))
    codex = hooked(own_box, llm)
    assert printed(codex) == bare, "no daemon"
    with Daemon(own_box):
        assert printed(codex, REFLECTD_HEADLESS="") == bare, "not judged"
        assert printed(codex) == bare, "judged"


@pytest.mark.main("Codex: headless is judged only where wanted")
def test_headless_is_judged_only_where_wanted(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """``codex exec`` waits for us, so nobody who did not ask for it is judged."""
    llm.script(*unfinished())
    ran = codex.run(REQUEST, REFLECTD_HEADLESS="")
    assert (ran.code, said_by(ran)) == (0, [CLAIM])
    assert daemon.session(session_of(ran)) == {}
    assert verdict_file(codex.box.project, session_of(ran)) is None


def test_a_session_that_is_resumed_in_another_way(own_box: Sandbox, llm: ModelServer) -> None:
    """A person who resumes in the terminal what ``codex exec`` began is judged, and ``codex exec resume`` of
    their session is not, though the daemon is asked.
    """
    codex = hooked(own_box, llm)
    with Daemon(own_box) as daemon:
        (own_box.state / "codex-exec").touch()
        llm.script(text("Hello to you."))
        session = session_of(codex.run("Say hello", REFLECTD_HEADLESS=""))
        assert daemon.session(session) == {}
        llm.script(*unfinished(), *mended())
        with CodexTui(codex, "resume", session, REFLECTD_HEADLESS="") as tui:
            tui.ask(REQUEST)
            tui.wait_for(DONE)
            daemon.wait_verdict(session, "complete")
        (own_box.project / "answer.txt").unlink()
        llm.script(*unfinished())
        ran = codex.run(REQUEST, "resume", session, REFLECTD_HEADLESS="")
        assert (ran.code, said_by(ran)) == (0, [CLAIM]), ran.stdout + daemon.new_log()
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete"]


def test_in_the_terminal(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """A person's session goes on with feedback while they watch, and their next task is a task of its own."""
    llm.script(*unfinished(), *mended())
    with CodexTui(codex) as tui:
        tui.ask(REQUEST)
        tui.wait_for(DONE)
        (session,) = {r.session for r in llm.of("main")}
        daemon.wait_verdict(session, "complete")
        llm.script(text("It prints hello."))
        tui.ask("What does it do?")
        tui.wait_for("It prints hello.")
        # by the flag of this harness Codex is one process: a terminal that closes now would end the turn
        wait_until(lambda: len({v["task"] for v in daemon.verdicts(session)}) == 2, "two tasks", daemon.log)
        tui.wait_idle()


def test_esc_is_final(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """Esc while the agent works, and while the turn is judged: nothing is sent after it."""
    held = slow()
    llm.script(write("hello.py", "print('hello')\n"), shell("make test"), held)
    with CodexTui(codex) as tui:
        tui.ask(REQUEST)
        held.wait_started()
        tui.interrupt()
        held.wait_hung_up()
        (session,) = {r.session for r in llm.of("main")}
        daemon.wait_verdict(session, "stopped")
        assert len(llm.of("main", session)) == 3


def model_daemon(box: Sandbox, llm: ModelServer, **more: str) -> Daemon:
    """A daemon that asks the scripted model to judge."""
    return Daemon(box, REFLECTD_JUDGE_PROVIDER="openai", REFLECTD_OPENAI_BASE_URL=llm.url, **more)


@pytest.fixture
def as_set_up(own_box: Sandbox, llm: ModelServer) -> Iterator[Codex]:
    """Codex as ``setup`` leaves it, without a flag: a server of its own in the background runs the turns."""
    codex = Codex(own_box, llm.url, trusting=False)
    codex.env["REFLECTD_HEADLESS"] = ""
    done = reflectd(own_box, codex, "setup", "codex", "--yes")
    assert "Codex trusts the hooks now." in done.stdout, done.stdout + done.stderr
    yield codex
    for process in left_over():
        with suppress(psutil.Error):
            if "codex" in process.name():
                process.kill()
                process.wait(10)


@pytest.mark.main("Codex: Esc while it is judged")
@pytest.mark.parametrize("plain", [False, True])
def test_esc_while_the_turn_is_judged(
    own_box: Sandbox, llm: ModelServer, plain: bool, request: pytest.FixtureRequest
) -> None:
    """Esc ends the wait and the judgement; what is typed next is judged, and goes on with feedback."""
    thinking, codex = slow("Hm"), request.getfixturevalue("as_set_up") if plain else hooked(own_box, llm)
    llm.script(*unfinished(), text("I try."), *mended())
    llm.api(thinking, INCOMPLETE, UNDEFENDED, COMPLETE)
    with model_daemon(own_box, llm) as daemon, CodexTui(codex) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        session = llm.of("main")[0].session
        assert bool([p for p in left_over() if "app-server" in p.cmdline()]) == plain
        tui.interrupt()
        daemon.wait_verdict(session, "stopped")
        thinking.release(INCOMPLETE)
        tui.ask("Now make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert [v["state"] for v in daemon.verdicts(session)] == ["complete", "incomplete", "stopped"]
        assert [HEADING in r.everything for r in llm.of("main")] == [*[False] * 4, True, True]
        daemon.new_log()


def test_typed_while_the_turn_is_judged(own_box: Sandbox, llm: ModelServer) -> None:
    """Codex keeps the message until the hook has ended and tells nobody, so feedback may come with it:
    then the person's words stand last, and begin a task of their own.
    """
    thinking, working = slow("Hm"), slow("Working")
    llm.script(*unfinished(), working)
    llm.api(thinking, UNDEFENDED, COMPLETE)
    with model_daemon(own_box, llm) as daemon, CodexTui(hooked(own_box, llm)) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        session = llm.of("main")[0].session
        tui.ask("Only say what you did")
        thinking.release(INCOMPLETE)
        working.wait_started()
        assert llm.of("main")[-1].prompt == "Only say what you did"
        working.release("I wrote hello.py.")
        daemon.wait_verdict(session, "complete")
        assert llm.of("main")[-1].everything.count(HEADING) <= 1


def test_a_daemon_that_dies_while_it_judges(own_box: Sandbox, llm: ModelServer) -> None:
    """Codex's turn ends as if we were not there; the next turn is judged by the next daemon."""
    thinking = slow("Hm")
    llm.script(*unfinished(), *mended())
    llm.api(thinking, COMPLETE)
    with model_daemon(own_box, llm) as daemon, CodexTui(hooked(own_box, llm)) as tui:
        tui.ask(REQUEST)
        thinking.wait_started()
        session = llm.of("main")[0].session
        daemon.kill9()
        thinking.release(INCOMPLETE)
        tui.wait_idle()
        daemon.start()
        tui.ask("Now make the tests pass")
        tui.wait_for(DONE)
        daemon.wait_verdict(session, "complete")
        assert not [r for r in llm.of("main") if HEADING in r.everything]


ESCS, KILLS = 20, 30
WAITING = {"REFLECTD_NO_START": "0", "REFLECTD_BIN": "/bin/true"}
"""Hooks wait for a daemon as if they had started one."""


def test_esc_at_any_moment(own_box: Sandbox, llm: ModelServer) -> None:
    """After Esc, whenever it comes, the agent is asked nothing more."""
    chance = random.Random(7)
    with Daemon(own_box) as daemon, CodexTui(hooked(own_box, llm)) as tui:
        for n in range(ESCS):
            held = slow(f"Working {n}")
            llm.script(shell(f"make test # {n}"), text(f"{CLAIM} {n}"), held)
            tui.ask(f"{REQUEST} {n}")
            wait_until(lambda n=n: any(f"{REQUEST} {n}" in r.prompt for r in llm.of("main")), "the request")
            time.sleep(chance.random() * 0.6)
            tui.escape()
            escaped = time.monotonic()
            wait_until(lambda: "esc to interrupt" not in tui.screen, "an idle agent", lambda: tui.screen)
            asked = len(llm.of("main"))
            time.sleep(max(0.0, escaped + 1.5 - time.monotonic()))
            assert len(llm.of("main")) == asked, f"Esc {n}: {llm.of('main')[-1].prompt[-300:]}"
            held.release()
            llm.reset()
        daemon.new_log()


@pytest.mark.parametrize("victim", ["codex", "daemon"])
def test_killed_at_any_moment(own_box: Sandbox, llm: ModelServer, victim: str) -> None:
    """SIGKILL of Codex or of the daemon at any moment of two rounds: none is left judging and no feedback
    comes twice. With another daemon in time no round is lost: the turn goes on with feedback and passes.
    """
    chance = random.Random(11)
    codex, sessions = hooked(own_box, llm), list[str]()
    with Daemon(own_box) as daemon:
        for n in range(KILLS):
            (own_box.project / "answer.txt").unlink(missing_ok=True)
            llm.reset()
            llm.script(shell("make test"), text(CLAIM), *mended())
            (own_box.state / "started-by-hook").unlink(missing_ok=True)  # a hook starts one once a minute
            with codex.start(f"{REQUEST} {n}", **WAITING) as running:
                when = chance.randint(1, 4)  # while it works, is judged, works again, is judged again
                wait_until(
                    lambda when=when: len(llm.of("main")) >= when or running.is_over, "the agent at work"
                )
                time.sleep(chance.random() * 0.4)
                if victim == "codex":
                    with suppress(ProcessLookupError):
                        os.killpg(running.pid, signal.SIGKILL)
                else:
                    daemon.kill9()
                    gone = time.monotonic()
                    daemon.start()
                    in_time = time.monotonic() - gone < 3  # a hook waits 5 seconds
                    assert running.wait().code == 0
            sessions.append(llm.of("main")[0].session)
            sent = [words for words in llm.of("main", sessions[-1])[-1].user_texts if HEADING in words]
            assert len(sent) <= 1, sent
            if victim == "daemon" and in_time:
                daemon.wait_verdict(sessions[-1], "complete")
                assert len(sent) == 1
        for session in sessions:
            wait_until(
                lambda session=session: (
                    (verdict_file(own_box.project, session) or {}).get("state") != "judging"
                ),
                "a final verdict",
                daemon.new_log,
            )
            turns = [verdict["turn"] for verdict in daemon.verdicts(session)]
            assert len(turns) == len(set(turns)), daemon.verdicts(session)


def reflectd(box: Sandbox, codex: Codex, *words: str, package: Path = REPO) -> Ran:
    """``reflectd`` in a terminal of the sandbox's person, who has Codex on their PATH. ``package``: where
    its package is.
    """
    path = f"{binary().parent}:{box.env()['PATH']}"
    env = box.env(CODEX_HOME=str(codex.config), FAKE_KEY="none", PATH=path, PYTHONPATH=str(package))
    with Running(box.root, [sys.executable, "-m", "daemon", *words], "", env, box.project) as running:
        return running.wait()


@pytest.mark.main("Codex: from setup to remove")
def test_from_set_up_to_remove(own_box: Sandbox, llm: ModelServer) -> None:
    """``setup codex --yes`` connects a Codex that trusts nothing by itself; ``--remove`` leaves no trace."""
    codex = Codex(own_box, llm.url, trusting=False)
    before = {path: path.read_bytes() for path in codex.config.iterdir() if path.is_file()}
    with Daemon(own_box) as daemon:
        llm.script(*unfinished())
        ran = codex.run(REQUEST)
        assert daemon.session(session_of(ran)) == {}, "it is not connected yet"
        done = reflectd(own_box, codex, "setup", "codex")
        assert done.code == 0, done.stdout + done.stderr
        assert "does not trust the hooks yet" in done.stdout
        llm.script(*unfinished())
        assert daemon.session(session_of(codex.run(REQUEST))) == {}, "nobody trusted the hooks"
        seen = reflectd(own_box, codex, "status")
        assert "Codex does not trust the hooks" in " ".join(seen.stdout.split()), seen.stdout
        seen = reflectd(own_box, codex, "doctor")
        assert "runs 0 of 7 hooks" in " ".join(seen.stdout.split()), seen.stdout
        done = reflectd(own_box, codex, "setup", "codex", "--yes")
        assert "Codex trusts the hooks now." in done.stdout, done.stdout + done.stderr
        llm.script(*unfinished(), *mended())
        ran = codex.run(REQUEST)
        assert said_by(ran) == [CLAIM, DONE]
        daemon.wait_verdict(session_of(ran), "complete")
        hooks = codex.config / "hooks.json"
        text = hooks.read_text("utf-8")
        http = text.replace('"type": "command"', '"type": "http"', 1)
        for now, expected in (
            (text, "runs the hooks of"),
            (text.replace('"timeout": 20', '"timeout": 21'), "runs 6 of 7 hooks"),
            (http, "runs 0 of 7 hooks of reflectd, and says nothing of the others; failed to parse"),
        ):
            hooks.write_text(now, "utf-8")
            seen = reflectd(own_box, codex, "doctor")
            assert expected in " ".join(seen.stdout.split()), seen.stdout
        hooks.write_text(text, "utf-8")
        done = reflectd(own_box, codex, "setup", "codex", "--remove")
        assert done.code == 0, done.stdout + done.stderr
        daemon.new_log()
    after = {
        path: path.read_bytes() for path in codex.config.iterdir() if path in before or path.suffix == ".json"
    }
    assert {p.name: t.decode() for p, t in after.items()} == {p.name: t.decode() for p, t in before.items()}
    assert not (own_box.home / ".local" / "share" / "reflectd").exists()


UNUSED = {"Interrupt", "SubagentStop"}
"""Events that no plain turn has."""


def newer(folder: Path, marks: Path) -> Path:
    """Another version of the package, in a folder of its own. Its script notes each event in ``marks``."""
    shutil.copytree(REPO / "daemon", folder / "daemon", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPO / "plugin-shim" / "claude-code", folder / "plugin-shim" / "claude-code")
    for name in ("pyproject.toml", "prompts", ".reflection"):
        (folder / name).symlink_to(REPO / name)
    (folder / "plugin-shim" / "opencode").symlink_to(REPO / "plugin-shim" / "opencode")
    about = folder / "daemon" / "__init__.py"
    text = re.sub('__version__ = ".*"', '__version__ = "99.0.0"', about.read_text("utf-8"))
    about.write_text(text, "utf-8")
    script = folder / SCRIPT.relative_to(REPO)
    first, rest = script.read_text("utf-8").split("\n", 1)
    script.write_text(f'{first}\n# of version 99\necho "$1" >> {marks}\n{rest}', "utf-8")
    return folder


def test_an_upgrade_keeps_the_trust(own_box: Sandbox, llm: ModelServer) -> None:
    """Codex hashes a hook as it stands in the file, not the script that it names: with the script of another
    version all hooks are trusted and run, and nothing is asked or written; with another command none is.
    """
    codex, marks = Codex(own_box, llm.url, trusting=False), own_box.root / "marks"
    package = newer(own_box.root / "newer", marks)
    assert reflectd(own_box, codex, "setup", "codex", "--yes").code == 0
    script = own_box.home / ".local" / "share" / "reflectd" / "plugins" / "codex" / "hook.sh"
    hooks = codex.config / "hooks.json"
    files = {file: file.read_bytes() for file in (hooks, codex.config / "config.toml")}
    assert "99.0.0" in reflectd(own_box, codex, "--version", package=package).stdout

    def trusts(package: Path) -> bool:
        seen = reflectd(own_box, codex, "doctor", package=package)
        return f"runs the hooks of {hooks}" in " ".join(seen.stdout.split())

    with Daemon(own_box) as daemon:
        for version in (package, REPO):  # up, and down again
            marks.unlink(missing_ok=True)
            done = reflectd(own_box, codex, "setup", "codex", package=version)
            assert "Codex trusts the hooks." in done.stdout, done.stdout + done.stderr
            assert script.read_bytes() == (version / SCRIPT.relative_to(REPO)).read_bytes()
            (own_box.project / "answer.txt").unlink(missing_ok=True)
            llm.script(*unfinished(), *mended())
            ran = codex.run(REQUEST)
            assert said_by(ran) == [CLAIM, DONE], ran.stdout + daemon.new_log()
            daemon.wait_verdict(session_of(ran), "complete")
            ran_newer = set(marks.read_text("utf-8").split()) if marks.exists() else set()
            assert ran_newer == (EVENTS.keys() - UNUSED if version == package else set())
            assert trusts(version)
            assert {file: file.read_bytes() for file in files} == files
    moved = script.parent.with_name("elsewhere")
    shutil.copytree(script.parent, moved)
    hooks.write_text(hooks.read_text("utf-8").replace(str(script), str(moved / script.name)), "utf-8")
    seen = reflectd(own_box, codex, "doctor")
    assert "runs 0 of 7 hooks" in " ".join(seen.stdout.split()), seen.stdout


@pytest.mark.needs("claude")
@pytest.mark.needs("opencode")
def test_three_hosts_at_once(own_box: Sandbox, llm: ModelServer) -> None:
    """One daemon judges a session of each at the same time; each gets its own feedback, once."""
    from harness.hosts.claude_code import ClaudeCode
    from harness.hosts.opencode import OpencodeServe
    from harness.models import claude_code_scripts, scripts

    codex, claude = hooked(own_box, llm), ClaudeCode(own_box, llm.url, plugin=claude_code_scripts.PLUGIN)
    folders = [own_box.project, own_box.root / "second", own_box.root / "third"]
    for folder in folders[1:]:
        shutil.copytree(own_box.project, folder)
    mine, theirs, other = "for codex", "for claude", "for opencode"
    llm.script(*unfinished(), *mended(), marker=mine)
    paths = claude_code_scripts.unfinished(claude, folder=folders[1])
    llm.script(*paths, *claude_code_scripts.mended(), marker=theirs)
    llm.script(*scripts.unfinished(), *scripts.finished(), marker=other)
    with Daemon(own_box) as daemon, OpencodeServe(own_box, llm.url) as opencode:
        session = opencode.create_session()
        with (
            codex.start(f"{REQUEST} {mine}", cwd=folders[2]) as one,
            claude.start(f"{REQUEST} {theirs}", cwd=folders[1], **claude_code_scripts.HEADLESS) as two,
        ):
            session.prompt(f"{REQUEST} {other}")
            ended = [one.wait(), two.wait()]
        assert [ran.code for ran in ended] == [0, 0]
        for each in (session_of(ended[0]), ended[1].session, session.id):
            wait_until(lambda each=each: len(daemon.verdicts(each)) > 1, "two verdicts", daemon.new_log)
            assert [v["state"] for v in daemon.verdicts(each)] == ["complete", "incomplete"]


def test_two_sessions_in_one_folder(own_box: Sandbox, llm: ModelServer) -> None:
    """Each gets its own feedback, once, and its own verdict; a `setup` meanwhile changes nothing."""
    codex = hooked(own_box, llm)
    marks = ["for the first", "for the second"]
    # each has a check of its own, so that one does not mend what the other lacks
    rule = '{0}:\n\t@test -f {0}.txt && echo "1 passed" || {{ echo "1 failed: no {0}.txt" >&2; exit 1; }}\n'
    targets = [f"test-{mark.rpartition(' ')[2]}" for mark in marks]
    (own_box.project / "Makefile").write_text("".join(map(rule.format, targets)))
    for mark, target in zip(marks, targets, strict=True):
        asks = [write("hello.py", "print('hello')\n"), shell(f"make {target}"), text(CLAIM)]
        llm.script(*asks, shell(f"echo 42 > {target}.txt && make {target}"), text(DONE), marker=mark)
    with Daemon(own_box) as daemon:
        with codex.start(f"{REQUEST} {marks[0]}") as one, codex.start(f"{REQUEST} {marks[1]}") as two:
            assert reflectd(own_box, codex, "setup", "codex", "--yes").code == 0
            ended = [one.wait(), two.wait()]
        for ran in ended:
            assert said_by(ran)[-1] == DONE, ran.stdout + daemon.new_log()
            daemon.wait_verdict(session_of(ran), "complete")
            shown = llm.of("main", session_of(ran))[-1].user_texts
            assert sum(HEADING in words for words in shown) <= 1, shown
        daemon.new_log()


def test_verbs_read_rollouts(codex: Codex, daemon: Daemon, llm: ModelServer) -> None:
    """``judge --last``, a file, and all past sessions."""
    llm.script(*unfinished())
    session = session_of(codex.run(REQUEST, REFLECTD_HEADLESS=""))
    last = reflectd(codex.box, codex, "judge", "--last", "--provider", "offline")
    assert "make test" in last.stdout, last.stdout + last.stderr
    one = reflectd(codex.box, codex, "judge", str(codex.rollout(session)), "--provider", "offline")
    assert one.stdout == last.stdout
    past = reflectd(codex.box, codex, "judge", "--past", "--json")
    assert past.code == 0, past.stderr
    assert json.loads(past.stdout)["sent"] >= 1
