"""``reflectd doctor`` on what runs: daemon, host, plugin, models, database, log. Only looks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.cli.finding import Check
from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from daemon.cli.finding import About

LOG_BYTES = 2 * 1024 * 1024
DAY_S = 86_400


def daemon(about: About) -> Iterator[Check]:
    """Whether it runs, in this version, and what it says does not work."""
    from daemon import __version__

    s = about.status
    if s is None and about.where.stopped.exists():
        yield Check("daemon", "warn", "it was stopped with `reflectd stop`", "reflectd start")
        return
    if s is None:
        yield Check("daemon", "warn", "it does not run", "reflectd start; the agent's plugin starts it too")
        return
    other = s["version"] != __version__
    mend = f"this is {__version__}: reflectd stop, then reflectd start" if other else ""
    yield Check("daemon", "warn" if other else "ok", f"{s['version']} runs (pid {s['pid']})", mend)
    if s["degraded"]:
        yield Check("daemon", "fail", s["degraded"], "mend what it names; until then nothing is sent")


def opencode(about: About) -> Iterator[Check]:
    """The host: installed, and connected."""
    found = shutil.which("opencode", path=about.env.get("PATH", ""))
    instances = about.status["instances"] if about.status else []
    connected = [i for i in instances if i.get("host", "opencode") == "opencode"]
    if found is None and not connected:
        missing = "there is no `opencode` on PATH"
        if _with_claude_code(about):
            yield Check("opencode", "ok", missing)
        else:
            yield Check("opencode", "warn", missing, "see https://opencode.ai")
        return
    version = f"{version_of(found, about.env)} ({found})" if found else "not on PATH"
    yield Check("opencode", "ok", f"{version}, {len(connected)} connected")


def _with_claude_code(about: About) -> bool:
    """Whether Claude Code has reflectd: then opencode need not have it."""
    from daemon.cli.setup_claude import enabled_in

    return any(on for _, _, on in enabled_in(about.env, Path.cwd()))


def version_of(program: str, env: Mapping[str, str]) -> str:
    """What a host says of itself, in one word."""
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
    """Our line in opencode's settings, as it would be loaded in this folder."""
    from daemon.cli.setup_opencode import loaded

    found = list(loaded(about.env, Path.cwd()))
    for file, spec in found:
        path = spec.removeprefix("file://")
        if path.startswith("/") and not Path(path).exists():
            yield Check(
                "plugin", "fail", f"{file} loads {path}, which is not there", "reflectd setup opencode"
            )
        else:
            yield Check("plugin", "ok", f"{file} loads {spec}" if spec else f"{file} is reflectd's")
    if not found and _with_claude_code(about):
        yield Check("plugin", "ok", "opencode does not load reflectd here (reflectd setup opencode)")
    elif not found:
        yield Check("plugin", "warn", "opencode does not load reflectd here", "reflectd setup opencode")
    if len({spec or str(file) for file, spec in found}) > 1:
        yield Check(
            "plugin", "warn", "it is loaded twice", "take one line out: reflectd setup opencode --remove"
        )


def providers(about: About) -> Iterator[Check]:
    """Who judges, in order; whether what was chosen is set up. Keys are counted, never shown."""
    from daemon import config
    from daemon.llm.claude_cli import find
    from daemon.llm.select import MISSING

    chosen = about.settings.judge.provider
    try:
        keys = config.load_keys(about.env, about.settings)
    except UserError as e:
        yield Check("providers", "fail", str(e), "the daemon does not start until it is mended")
        return
    s = about.settings
    there = {
        "host": True,
        "anthropic": bool(keys.anthropic or s.anthropic.base_url),
        "openai": bool(keys.openai or s.openai.base_url),
        "claude-cli": find(s.claude_cli.path, about.env) is not None,
        "offline": True,
    }
    if not there.get(chosen, True):
        yield Check("providers", "fail", f"judge.provider is {chosen}, which is not set up", MISSING[chosen])
    else:
        of_auto = [n for n, found in there.items() if found and n != "claude-cli"]
        names = of_auto if chosen == "auto" else [chosen]
        yield Check("providers", "ok", f"{chosen}: {', then '.join(names)}")
    for name, error in (about.status or {}).get("providers_down", {}).items():
        yield Check(
            "providers", "warn", f"{name} did not answer when last asked: {error}", "reflectd doctor --online"
        )


def database(about: About) -> Iterator[Check]:
    """The file is whole. ``quick_check`` reads all of it and changes nothing."""
    from daemon.store.readonly import ReadOnly

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
        mend = "reflectd stop, then reflectd start: it is kept aside and a new one is begun"
        yield Check("database", "fail", f"{path} is damaged: {said}", mend)
    for aside in sorted(path.parent.glob(f"{path.name}.corrupt-*[0-9]")):
        yield Check(
            "database", "warn", f"a corrupt one was kept aside: {aside}", "remove it if you don't need it"
        )


def replies(about: About) -> Iterator[Check]:
    """Replies of models that broke the form (dead letters)."""
    import time

    from daemon.cli.render import clock

    found = (about.status or {}).get("dead_letters")
    if not found or not found["count"]:
        return
    recent = time.time() * 1000 - found["last_at"] < DAY_S * 1000
    text = f"{found['count']} replies of models broke the form, the last at {clock(found['last_at'])}"
    mend = f"{found['last_why']}. Another model may do better: judge.provider, judge.model" if recent else ""
    yield Check("replies", "warn" if recent else "ok", text, mend)


def errors_logged(about: About) -> Iterator[Check]:
    """Lines of level error in the log of the last day."""
    from datetime import UTC, datetime, timedelta

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
        "log", "warn", f"{len(bad)} errors in the last day, the last: {bad[-1][:300]}", "reflectd logs"
    )
