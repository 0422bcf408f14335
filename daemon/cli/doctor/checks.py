"""The checks of ``reflectd doctor``: what is installed, the agents and their plugins, and what runs.

They change nothing but outdated copies of the plugins, which are brought up to date. Where an agent is not
used, its checks say so and never warn.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

from ... import __version__
from ...core.errors import Unavailable, UserError
from ...core.policy import AUTO
from ...core.words import HOSTS
from ...files.project import find_project
from ...keys import VARIABLES, load_keys
from ...paths import PACKAGE, find_socket, shipped
from ...service import manager
from ...store.readonly import ReadOnly
from ..control import start_failure
from ..control.service import plan_for
from ..control.start import outdated
from ..control.status import faults
from ..judging import CHOOSE, allows, found, lost_login, read, who_judges
from ..render import count
from ..setup import agents, claude_code, codex, copies, opencode
from ..setup.claude_code import CLAUDE_CODE
from ..setup.codex import CODEX
from ..setup.learning import in_words, is_by_rules
from ..setup.opencode import OPENCODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...core.settings import Settings
    from ...paths import Paths
    from ..setup.connect import Host

Outcome = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding; ``mend`` says what to do when it is not ``ok``."""

    name: str
    outcome: Outcome
    text: str
    mend: str = ""


class About(NamedTuple):
    """The inputs of the checks. ``status`` is the running daemon's answer, None when none answers."""

    env: Mapping[str, str]
    settings: Settings
    where: Paths
    status: dict[str, Any] | None

    @property
    def by_host(self) -> bool:
        """Says whether a host started the daemon. Where none runs, a host will start it."""
        return bool(self.status is None or self.status.get("by_host"))


CONNECT_S, VERSION_S = 2.0, 10
SETUP = "reflectd setup claude-code"
LOG_BYTES = 2 * 1024 * 1024
DAY_MS = 86_400_000
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


# --- what is installed --------------------------------------------------------------------------------------


def package() -> Iterator[Check]:
    """The package has everything that comes with it; the Python that runs it."""
    try:
        shipped("shims/opencode/index.ts")
        shipped("prompts")
    except UserError as e:
        yield Check("package", "fail", str(e), "uv tool install --reinstall reflectd")
        return
    python = f"Python {'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    yield Check("package", "ok", f"reflectd {__version__} in {PACKAGE}, {python}")


def command(env: Mapping[str, str]) -> Iterator[Check]:
    """Which ``reflectd`` is found on PATH: the plugin starts that one."""
    program = shutil.which("reflectd", path=env.get("PATH", ""))
    if program is None:
        mend = "add its folder to PATH (uv tool update-shell, pipx ensurepath): the plugin starts it by name"
        yield Check("command", "warn", "there is no `reflectd` on PATH", mend)
        return
    here = Path(sys.argv[0])
    other = here.name == "reflectd" and here.exists() and not here.samefile(program)
    mend = f"this is {here}: remove one of the two, or change the order of PATH" if other else ""
    yield Check("command", "warn" if other else "ok", f"`reflectd` on PATH is {program}", mend)


def state(about: About) -> Iterator[Check]:
    """Says whether the state folder can be used and is closed to other users."""
    yield _private("state", about.where.state_dir, "Set REFLECTD_STATE_DIR to a folder of yours")


def _private(name: str, folder: Path, other: str) -> Check:
    try:
        there = folder.stat()
    except FileNotFoundError:
        return Check(name, "ok", f"{folder} is made at the first start")
    close = f"chmod 700 {folder}"
    if not stat.S_ISDIR(there.st_mode):
        return Check(name, "fail", f"{folder} is not a folder", f"move it away. {other}")
    if there.st_uid != os.getuid():
        return Check(name, "fail", f"{folder} belongs to user {there.st_uid}", other)
    if there.st_mode & 0o022:
        return Check(name, "fail", f"others may write to {folder}", close)
    if there.st_mode & 0o055:
        return Check(name, "warn", f"others may read {folder}", close)
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check(name, "fail", f"{folder} cannot be written", close)
    return Check(name, "ok", str(folder))


def sockets(about: About) -> Iterator[Check]:
    """The socket: its folder, its permissions, and whether a daemon listens on it."""
    path = find_socket(about.where)
    folder = _private("socket", path.parent, "Set REFLECTD_SOCKET")
    yield from [folder] if folder.outcome != "ok" else []
    try:
        there = path.lstat()
    except FileNotFoundError:
        yield Check("socket", "ok", f"{path} (no daemon listens)")
        return
    if not stat.S_ISSOCK(there.st_mode):
        yield Check("socket", "fail", f"{path} is not a socket", "move it away, or set REFLECTD_SOCKET")
    elif there.st_uid != os.getuid():
        yield Check("socket", "fail", f"{path} belongs to user {there.st_uid}", "set REFLECTD_SOCKET")
    elif there.st_mode & 0o077:
        yield Check("socket", "fail", f"others may use {path}", "reflectd stop, then reflectd start")
    elif _listens(path):
        yield Check("socket", "ok", str(path))
    else:
        yield Check("socket", "warn", f"{path} is stale: nobody listens", "reflectd start replaces it")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(OSError):
        probe.settimeout(CONNECT_S)
        probe.connect(str(path))
        return True
    return False


def service(about: About) -> Iterator[Check]:
    """The service, where it is installed: its files are as this version writes them, its manager runs it."""
    here = manager.here(about.env)
    states = {state for _, state in manager.files(here, plan_for(about.env, about.where)).values()}
    if states == {"missing"}:
        yield Check("service", "ok", "not installed: the plugin starts the daemon")
    elif states != {"current"}:
        mend = "reflectd service status, reflectd service install"
        yield Check("service", "warn", "its files are not as this version writes them", mend)
    elif why := here.unreachable():
        yield Check("service", "ok", f"installed; {here.name} cannot be asked from here: {why}")
    elif about.where.stopped.exists() or here.active():
        yield Check("service", "ok", f"installed, {here.name} runs it")
    else:
        yield Check("service", "warn", f"installed, {here.name} does not run it", "reflectd start")


# --- the agents ---------------------------------------------------------------------------------------------


def connected(about: About) -> Iterator[Check]:
    """Says whether there is an agent, and one that loads reflectd in this folder."""
    there = [name for name, host in agents.HOST.items() if host.find(about.env)]
    if not there:
        mend = f"install one: {', '.join(host.address for host in agents.HOST.values())}"
        yield Check("agents", "warn", f"there is {agents.neither()} on PATH: nothing can be judged", mend)
        return
    loading = [host for host in there if agents.HOST[host].loads(about.env, Path.cwd())]
    names = ", ".join(HOSTS[host] for host in loading or there)
    if loading:
        yield Check("agents", "ok", f"connected here: {names}")
    else:
        yield Check("agents", "warn", f"{names}: none of them loads reflectd here", "reflectd setup")


def plugins(about: About) -> Iterator[Check]:
    """Says whether the copies that the hosts load are of this version; afterwards they are."""
    for host, name in HOSTS.items():
        folder = copies.place(about.env, host)
        if folder.is_symlink():
            yield Check("copies", "ok", f"{folder} is a link: reflectd leaves it alone")
        elif copies.refresh(about.env, host):
            text = f"{folder} was of another version, now it is of this"
            yield Check("copies", "warn", text, f"restart {name}")
        elif folder.is_dir():
            yield Check("copies", "ok", f"{folder} is of this version")


def _absent(about: About, host: Host) -> Check:
    """The agent is not there. That is fine, unless settings load reflectd for it."""
    used = host.loads(about.env, Path.cwd())
    if not used:
        return Check(host.name.lower(), "ok", host.absent)
    mend = f"install it ({host.address}), or reflectd setup {host.host} --remove"
    return Check(host.name.lower(), "warn", f"{host.absent}, and {used[0]} loads reflectd for it", mend)


def version_of(program: str, env: Mapping[str, str]) -> str:
    """The version that ``program --version`` prints, or why there is none."""
    try:
        done = subprocess.run(  # noqa: S603 - the person's own program, from PATH
            [program, "--version"],
            env={**env, "REFLECTD_CHILD": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"does not tell its version in {VERSION_S} s"
    said = done.stdout.split() or [f"ended with exit code {done.returncode}"]
    return next((word for word in said if word[0].isdigit()), said[0])


def programs(about: About) -> Iterator[Check]:
    """Says of each agent whether it is there and not older than the oldest tested version."""
    for host in agents.HOST.values():
        program = host.find(about.env)
        if not program:
            yield _absent(about, host)
            continue
        version, oldest = version_of(program, about.env), ".".join(map(str, host.oldest))
        numbers = _VERSION.match(version)
        if numbers is not None and tuple(map(int, numbers.groups())) < host.oldest:
            mend = f"update it: reflectd is tested with {oldest} and newer"
            yield Check(host.name.lower(), "warn", f"{version} is too old ({program})", mend)
        else:
            yield Check(host.name.lower(), "ok", f"{version} ({program})")


def opencode_plugin(about: About) -> Iterator[Check]:
    """Says whether opencode, started in this folder, would load our plugin once."""
    lines = list(opencode.loaded(about.env, Path.cwd()))
    mend = "reflectd setup opencode"
    for file, spec in lines:
        path = Path(unquote(spec.removeprefix("file://")))
        if path.is_absolute() and not path.exists():
            yield Check("plugin", "fail", f"{file} loads {path}, which is not there", mend)
        else:
            yield Check("plugin", "ok", f"{file} loads {spec}")
    if not lines:  # whether any agent does is the check `agents`
        yield Check("plugin", "ok", f"opencode does not load reflectd here ({mend})")
    if len({spec for _, spec in lines}) > 1:
        yield Check("plugin", "warn", "it is loaded twice", "remove one of the lines")


def claude_hooks(about: About) -> Iterator[Check]:
    """Our entries in the settings that count in this folder, and the programs that the hooks need."""
    for file in CLAUDE_CODE.read_in(about.env, Path.cwd()):
        if file.is_file() and (problem := claude_code.skipped(file.read_text("utf-8", "replace"))):
            mend = "make it plain JSON: no setting in it counts now"
            yield Check("hooks", "fail", f"{file}: {problem}", mend)
    entries = list(claude_code.enabled_in(about.env, Path.cwd()))
    if not entries:
        yield Check("hooks", "ok", f"Claude Code does not load reflectd here ({SETUP})")
        return
    here = copies.place(about.env, CLAUDE_CODE.host)
    for file, folder, on in entries:
        yield _entry(file, folder, here, on=on)
    if not any(on for _, _, on in entries):
        return
    for why in CLAUDE_CODE.silenced(about.env, Path.cwd()):
        yield Check("hooks", "fail", why, "take it out: reflectd hears nothing of these sessions")
    path = about.env.get("PATH", "")
    if shutil.which("curl", path=path):
        return
    if shutil.which("python3", path=path):
        yield Check("hooks", "warn", "without `curl` each hook takes longer", "install curl")
    else:
        yield Check("hooks", "fail", "there is neither `curl` nor `python3` on PATH", "install curl")


def _entry(file: Path, folder: str | None, here: Path, *, on: bool) -> Check:
    """The finding on one settings file that names us."""
    if not on:
        return Check("hooks", "warn", f"{file} has reflectd switched off", f"{SETUP}, or --remove")
    if folder is None:
        return Check("hooks", "warn", f"{file} enables reflectd and does not say where it is", SETUP)
    script = Path(folder, "scripts", "hook.sh")
    if not script.is_file():
        return Check("hooks", "fail", f"{file} loads {folder}, which is not there", SETUP)
    if not os.access(script, os.X_OK):
        return Check("hooks", "fail", f"{script} cannot be run", f"chmod +x {script}")
    if Path(folder) != here:
        return Check("hooks", "warn", f"{file} loads another installation, {folder}", SETUP)
    return Check("hooks", "ok", f"{file} loads {folder}")


# --- what runs ----------------------------------------------------------------------------------------------


def daemon(about: About) -> Iterator[Check]:
    """Says whether the daemon runs, its version, and its faults."""
    if (s := about.status) is not None:
        yield Check("daemon", "ok", f"{s['version']} runs (pid {s['pid']})")
        yield from (Check("daemon", "warn", sentence, "reflectd restart") for sentence in outdated(s))
    elif failed := start_failure.read(about.where):
        yield Check("daemon", "fail", failed, "reflectd start")
    elif about.where.stopped.exists():
        yield Check("daemon", "warn", "it was stopped with `reflectd stop`", "reflectd start")
    else:
        mend = "reflectd start; the agent's plugin starts it too"
        yield Check("daemon", "warn", "it does not run", mend)


def providers(about: About) -> Iterator[Check]:
    """Which providers judge, in their order, and whether the chosen one is set up. Keys are never shown."""
    from ...llm.sdk import shown_host
    from ...llm.select import MISSING, there

    chosen = about.settings.judge.provider
    try:
        keys = load_keys(about.env, about.settings, by_host=about.by_host)
    except UserError as e:
        yield Check("providers", "fail", str(e), "mend it: the daemon does not start with it")
        return
    set_up = there(about.settings, keys, about.env)
    if chosen != "auto" and chosen not in set_up:
        yield Check("providers", "fail", f"judge.provider is {chosen}, which is not set up", MISSING[chosen])
    else:
        names = [n for n in AUTO if n in set_up] if chosen == "auto" else [chosen]
        yield Check("providers", "ok", f"{chosen}: {', then '.join(names)}")
    for name, access in keys.apis.items():
        if access.key:
            to = access.base_url or VARIABLES[name].official
            yield Check("keys", "ok", f"{name}: from {access.place}, sent to {shown_host(to)}")
        elif access.place:
            yield Check("keys", "warn", f"{name}: {access.place} name no key here", "set the variable")
    for name, variable in (about.status or {}).get("keys_unused", keys.unused).items():
        unused = f"in the environment of a daemon that a host starts, {allows(name, variable)}"
        yield Check("keys", "ok", unused)


def judges(about: About) -> Iterator[Check]:
    """The judge of each host's sessions: as the running daemon says, else as the settings say."""
    used = {name: bool(host.loads(about.env, Path.cwd())) for name, host in agents.HOST.items()}
    used[OPENCODE.host] = True
    running = {host: read(j) for host, j in ((about.status or {}).get("judges") or {}).items()}
    for host, wanted in found(about.settings, about.env, by_host=about.by_host).items():
        now = running.get(host, wanted)
        text = f"{HOSTS[host]} -> {who_judges(host, now)}"
        if not used[host]:
            yield Check("judge", "ok", text)
        elif not now.asked:
            yield Check("judge", "fail", text, CHOOSE.get(host, "set judge.provider to one that is set up"))
        elif now != wanted:
            mend = "reflectd restart; a service does not see this shell's variables"
            text += f"; by this shell's settings: {who_judges(host, wanted)}"
            yield Check("judge", "warn", text, mend)
        elif host in CHOOSE and now.asked == ("offline",) and now.chosen == "auto":
            yield Check("judge", "warn", text, CHOOSE[host])
        else:
            yield Check("judge", "ok", text)
        if "claude-cli" in now.asked and (way := lost_login(about.env, _token_place(about))):
            yield Check("judge", "fail", f"{HOSTS[host]}'s judge has no login", way)


def _token_place(about: About) -> str:
    """The place of the daemon's token of Claude Code; where none runs, only a file counts."""
    if about.status is not None:
        return str(about.status.get("claude_token", ""))
    return "claude_cli.token_file" if about.settings.claude_cli.token_file else ""


def learning(about: About) -> Iterator[Check]:
    """Says whether it learns, and mentions an open question: after an upgrade nothing begins by itself."""
    on = about.settings.playbook.enabled or about.settings.memory.enabled
    dead = on and is_by_rules(about.settings, about.env)
    mend = "`reflectd setup` says what a model lacks"
    said = in_words(about.settings, by_rules=dead)
    yield Check("learning", "warn" if dead else "ok", said, mend if dead else "")


def proof(about: About) -> Iterator[Check]:
    """Says whether reflectd runs the project's check, where that is wanted, and whether it can."""
    from ...proof.choice import refused
    from ...proof.tree import repository
    from ...store.proofs import Proofs
    from ..settings import database

    p, here = about.settings.proof, find_project()
    if not p.enabled:
        yield Check("proof", "ok", "off: no check is run (`reflectd config set proof.enabled true`)")
        return
    if p.command and (why := refused(p.command)):
        yield Check("proof", "warn", f"proof.command is never run: {why}", "reflectd proof use COMMAND")
    if p.where == "worktree":
        try:
            repository(here)
        except Unavailable as e:
            yield Check("proof", "warn", f"proof.where is worktree: {e}", "proof.where = folder, or git init")
    used, known = 0.0, 0
    with database(about.where) as db:
        if db is not None:
            read = Proofs(db)
            used = read.spent_ms(int(time.time() * 1000) - DAY_MS) / 60_000
            known = sum(not c.struck for c in read.commands(os.path.realpath(here)))
    told = f"on, {used:.1f} of {p.minutes_a_day} minutes used in 24 h; checks known here: {known}"
    over = "no check is run until some of it is a day old, or with another proof.minutes_a_day"
    is_over = used >= p.minutes_a_day
    yield Check("proof", "warn" if is_over else "ok", told, over if is_over else "")


def embeddings(about: About) -> Iterator[Check]:
    """Which model compares texts by their meaning. Without one words are compared, which is no fault."""
    from ...learning.embed.minilm import check
    from ...learning.embed.models import choose

    try:
        choice = choose(about.settings, about.env, by_host=about.by_host)
        if choice.name == "minilm":
            check()
    except (UserError, Unavailable) as e:
        mend = "mend it, or embed.provider = none"
        yield Check("embeddings", "warn", f"{e}; only words are compared", mend)
        return
    text = f"{choice.why}: only words are compared"
    if choice.name != "none":
        yield Check("embeddings", "ok", f"{choice.name}: {choice.why}")
    elif choice.asked:
        yield Check("embeddings", "warn", text, choice.mend)
    else:
        yield Check("embeddings", "ok", f"{text} ({choice.mend})" if choice.mend else text)


def database(about: About) -> Iterator[Check]:
    """Says whether the database is undamaged. ``quick_check`` reads all of it and changes nothing."""
    path = about.where.database
    if not path.exists():
        yield Check("database", "ok", "made at the first start")
        return
    try:
        with ReadOnly(path) as db:
            ((said,),) = db.read("PRAGMA quick_check(1)")
    except Unavailable as e:
        said = str(e)
    if said == "ok":
        yield Check("database", "ok", f"{path} is whole ({path.stat().st_size / 1e6:.1f} MB)")
    else:
        mend = "reflectd restart: it is renamed, and a new one is made"
        yield Check("database", "fail", f"{path} is damaged: {said}", mend)
    for aside in sorted(path.parent.glob(f"{path.name}.corrupt-*[0-9]")):
        yield Check("database", "warn", f"a damaged one was kept: {aside}", "remove it if you don't need it")


def told_by_the_daemon(about: About) -> Iterator[Check]:
    """The faults that the running daemon tells of."""
    told = faults(about.status, time.time() * 1000) if about.status else ()
    yield from (Check(*fault[1:]) for fault in told)


def errors_logged(about: About) -> Iterator[Check]:
    """Says whether the log of the last day has errors."""
    path = about.where.log_file
    if not path.is_file():
        yield Check("log", "ok", f"there is none at {path}")
        return
    since = (datetime.now(UTC) - timedelta(days=1)).strftime("timestamp=%Y-%m-%dT%H:%M:%S")
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        lines = file.read(LOG_BYTES).decode("utf-8", "replace").splitlines()
    bad = [line for line in lines if " level=error " in line and line >= since]
    if not bad:
        yield Check("log", "ok", "no errors in the last day")
        return
    text = f"{count(len(bad), 'error')} in the last day, the last: {bad[-1][:300]}"
    yield Check("log", "warn", text, "reflectd logs")


def codex_hooks(about: About) -> Iterator[Check]:
    """Says whether Codex runs our hooks. Codex says nothing of a hook that nobody trusted."""
    program, files = CODEX.find(about.env), CODEX.loads(about.env, Path.cwd())
    if not program:
        return
    if not files:
        yield Check("codex", "ok", f"{program} does not load reflectd here (`reflectd setup codex`)")
        return
    try:
        seen = codex.trusted(program, about.env, Path.cwd())
    except Unavailable as e:
        yield Check("codex", "warn", f"whether it trusts the hooks could not be asked: {e}", codex.BY_HAND)
        return
    if seen.runs < seen.hooks:
        text = f"{program} runs {seen.runs} of {seen.hooks} hooks of reflectd, and says nothing of the others"
        mend = "mend the file" if seen.why else f"`reflectd setup codex`, or {codex.BY_HAND}"
        yield Check("codex", "fail", "; ".join((text, *seen.why)), mend)
    else:
        yield Check("codex", "ok", f"{program} runs the hooks of {', '.join(map(str, files))}")


CHECKS = {
    "state": state, "socket": sockets, "service": service, "daemon": daemon,
    "agents": connected, "copies": plugins, "programs": programs, "plugin": opencode_plugin,
    "hooks": claude_hooks, "codex": codex_hooks,
    "providers": providers,
    "judge": judges, "learning": learning, "proof": proof, "embeddings": embeddings, "database": database,
    "status": told_by_the_daemon, "log": errors_logged,
}  # fmt: skip
"""Those that need settings, in the order in which a person would mend what they find."""
