"""Checks of what runs: daemon, opencode, its plugin, models, database, log. They change nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ...core.errors import Unavailable, UserError
from .installation import Check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .installation import About

_VERSION_2 = re.compile(r"v?[2-9]\.")
LOG_BYTES = 2 * 1024 * 1024
DAY_S = 86_400


def daemon(about: About) -> Iterator[Check]:
    """Whether the daemon runs, which version it is, and what it says does not work."""
    from ..control import start_failure
    from ..control.start import outdated

    s = about.status
    if s is None and (failed := start_failure.read(about.where)):
        yield Check("daemon", "fail", failed, "reflectd start")
        return
    if s is None and about.where.stopped.exists():
        yield Check("daemon", "warn", "it was stopped with `reflectd stop`", "reflectd start")
        return
    if s is None:
        yield Check("daemon", "warn", "it does not run", "reflectd start; the agent's plugin starts it too")
        return
    yield Check("daemon", "ok", f"{s['version']} runs (pid {s['pid']})")
    for sentence in outdated(s):
        yield Check("daemon", "warn", sentence, "reflectd restart")
    if s["degraded"]:
        yield Check("daemon", "fail", s["degraded"], "mend what it names; until then nothing is sent")


def absent(host: str, subject: str, used: Sequence[Path]) -> Check:
    """The agent is not there. That is fine, unless settings (``used``) load reflectd for it."""
    from ..setup import agents

    text = agents.absent(host)
    if not used:
        return Check(subject, "ok", text)
    mend = f"install it ({agents.HOST[host].address}), or reflectd setup {host} --remove"
    return Check(subject, "warn", f"{text}, and {used[0]} loads reflectd for it", mend)


def opencode(about: About) -> Iterator[Check]:
    """Whether opencode is installed and connected."""
    from ..setup.agents import find
    from ..setup.opencode import loaded

    found = find(about.env, "opencode")
    instances = about.status["instances"] if about.status else []
    connected = [i for i in instances if i.get("host", "opencode") == "opencode"]
    if not found and not connected:
        yield absent("opencode", "opencode", [file for file, _ in loaded(about.env, Path.cwd())])
        return
    version = version_of(found, about.env) if found else ""
    text = f"{version} ({found})" if found else "not on PATH"
    yield Check("opencode", "ok", f"{text}, {len(connected)} connected")
    if _VERSION_2.match(version):
        untried = f"{version} is version 2: what reflectd does there is contract-tested, not run"
        yield Check("opencode", "warn", untried, "docs/opencode.md has a checklist for whoever tries it")


def _with_claude_code(about: About) -> bool:
    """Whether Claude Code loads reflectd here: then it is fine when opencode does not."""
    from ..setup.claude_code import enabled_in

    return any(on for _, _, on in enabled_in(about.env, Path.cwd()))


def version_of(program: str, env: Mapping[str, str]) -> str:
    """The first word that ``program --version`` prints, or why there is none."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - the person's own program, from PATH
            [program, "--version"],
            env={**env, "REFLECTD_CHILD": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "does not tell its version in 10 s"
    return next(iter(done.stdout.split()), "") or f"ended with exit code {done.returncode}"


def plugin(about: About) -> Iterator[Check]:
    """Whether opencode, started in this folder, would load our plugin once."""
    from ..setup.opencode import loaded

    found = list(loaded(about.env, Path.cwd()))
    for file, spec in found:
        path = Path(unquote(spec.removeprefix("file://")))
        if path.is_absolute() and not path.exists():
            yield Check(
                "plugin", "fail", f"{file} loads {path}, which is not there", "reflectd setup opencode"
            )
        elif path.is_absolute() and "site-packages" in path.parts:
            text = f"{file} loads {path}, which moves when reflectd is installed with another Python"
            yield Check("plugin", "warn", text, "reflectd setup opencode")
        elif path.is_absolute() and path.is_file():
            text = f"{file} names the plugin by a file, {path}: opencode 2 loads only folders and packages"
            yield Check("plugin", "warn", text, "reflectd setup opencode")
        else:
            yield Check("plugin", "ok", f"{file} loads {spec}" if spec else f"{file} is reflectd's")
    if not found:  # whether any agent does is the check `agents`
        yield Check("plugin", "ok", "opencode does not load reflectd here (reflectd setup opencode)")
    if len({spec or str(file) for file, spec in found}) > 1:
        yield Check(
            "plugin", "warn", "it is loaded twice", "remove one line: reflectd setup opencode --remove"
        )


def providers(about: About) -> Iterator[Check]:
    """Which providers judge, in their order, and whether the chosen one is set up. Keys are never shown."""
    from ...core.policy import AUTO
    from ...keys import VARIABLES, load_keys
    from ...llm.sdk import shown_host
    from ...llm.select import MISSING, there
    from ..judging import allows

    chosen = about.settings.judge.provider
    try:
        keys = load_keys(about.env, about.settings, by_host=_by_host(about))
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
    unused = (about.status or {}).get("keys_unused", keys.unused)
    for name, variable in unused.items():
        yield Check(
            "keys", "ok", f"in the environment of a daemon that a host starts, {allows(name, variable)}"
        )
    refused = (about.status or {}).get("providers_refused", ())
    for name, words in (about.status or {}).get("providers_down", {}).items():
        error = words.removeprefix(f"{name}: ")
        if name in refused:
            mend = "give it a valid key or login, then reflectd restart"
            yield Check("providers", "fail", f"{name} is refused again and again: {error}", mend)
        else:
            text = f"{name} did not answer when last asked: {error}"
            yield Check("providers", "warn", text, "reflectd doctor --online")


def _by_host(about: About) -> bool:
    """Whether a host started the daemon. Where none runs, a host will start it."""
    return bool(about.status is None or about.status.get("by_host"))


def judges(about: About) -> Iterator[Check]:
    """Who judges the sessions of each host: as the running daemon says, else as the settings say."""
    from ...core.words import HOSTS
    from ..judging import CHOOSE, found, lost_login, read, who_judges

    by_settings = found(about.settings, about.env, by_host=_by_host(about))
    used = {"opencode": True, "claude-code": _with_claude_code(about)}
    running = {host: read(j) for host, j in ((about.status or {}).get("judges") or {}).items()}
    for host, wanted in by_settings.items():
        now = running.get(host, wanted)
        text = f"{HOSTS[host]} -> {who_judges(host, now)}"
        if not used[host]:
            yield Check("judge", "ok", text)
        elif not now.asked:
            mend = CHOOSE.get(host, "set judge.provider to one that is set up")
            yield Check("judge", "fail", text, mend)
        elif now != wanted:
            mend = "reflectd restart; a service does not see this shell's variables"
            yield Check(
                "judge", "warn", f"{text}; by this shell's settings: {who_judges(host, wanted)}", mend
            )
        elif host in CHOOSE and now.asked == ("offline",) and now.chosen == "auto":
            yield Check("judge", "warn", text, CHOOSE[host])
        else:
            yield Check("judge", "ok", text)
        if "claude-cli" in now.asked and (way := lost_login(about.env, _token_place(about))):
            yield Check("judge", "fail", f"{HOSTS[host]}'s judge has no login", way)


def _token_place(about: About) -> str:
    """Where the running daemon has a token of Claude Code's from. Where none runs, Claude Code will start it:
    then only a file counts.
    """
    if about.status is not None:
        return str(about.status.get("claude_token", ""))
    return "claude_cli.token_file" if about.settings.claude_cli.token_file else ""


def learning(about: About) -> Iterator[Check]:
    """Whether it learns. What nobody was asked yet is said: after an upgrade nothing begins by itself."""
    from ..setup.learning import in_words

    yield Check("learning", "ok", in_words(about.settings))


def embeddings(about: About) -> Iterator[Check]:
    """Which model compares texts by their meaning. Without one words are compared, which is no fault."""
    from ...learning.embed.minilm import check
    from ...learning.embed.models import choose

    try:
        choice = choose(about.settings, about.env, by_host=_by_host(about))
        if choice.name == "minilm":
            check()
    except (UserError, Unavailable) as e:
        yield Check(
            "embeddings", "warn", f"{e}; only words are compared", "mend it, or embed.provider = none"
        )
        return
    if choice.name == "none":
        text = f"{choice.why}: only words are compared"
        mend = choice.mend if choice.asked else ""
        text += f" ({choice.mend})" if choice.mend and not choice.asked else ""
        yield Check("embeddings", "warn" if choice.asked else "ok", text, mend)
    else:
        yield Check("embeddings", "ok", f"{choice.name}: {choice.why}")


def database(about: About) -> Iterator[Check]:
    """Whether the database is undamaged. ``quick_check`` reads all of it and changes nothing."""
    from ...store.readonly import ReadOnly

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


def pruning(about: About) -> Iterator[Check]:
    """Whether the clock keeps the running daemon from deleting what is too old."""
    from ..render import standstill

    for stands in (about.status or {}).get("standstill", ()):
        mend = "set the clock right, or `reflectd prune` if it is right"
        yield Check("prune", "warn", standstill(stands), mend)


def replies(about: About) -> Iterator[Check]:
    """Replies of models that could not be parsed (dead letters)."""
    import time

    from ..render import clock, count

    found = (about.status or {}).get("dead_letters")
    if not found or not found["count"]:
        return
    recent = time.time() * 1000 - found["last_at"] < DAY_S * 1000
    useless, last = count(found["count"], "reply", "replies"), clock(found["last_at"])
    text = f"{useless} of models could not be used, the last at {last}"
    mend = f"{found['last_why']}. Another model may do better: judge.provider, judge.model" if recent else ""
    yield Check("replies", "warn" if recent else "ok", text, mend)


def errors_logged(about: About) -> Iterator[Check]:
    """Whether the log of the last day has errors."""
    from datetime import UTC, datetime, timedelta

    from ..render import count

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
    yield Check(
        "log",
        "warn",
        f"{count(len(bad), 'error')} in the last day, the last: {bad[-1][:300]}",
        "reflectd logs",
    )
