"""The judge of each host's sessions, in words for a person. The verbs share this.

``found`` reads settings and keys as a daemon that was started from here would, and asks nobody. A running
daemon's own judges are in its status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ..core.fast import LOCAL_HOSTS
from ..core.words import HOSTS, PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.policy import Judging
    from ..core.settings import Settings

CHOOSE: Final = {
    "claude-code": "run `reflectd setup claude-code` to choose a judge",
    "codex": "run `reflectd setup codex` to choose a judge",
}


def found(settings: Settings, env: Mapping[str, str], *, by_host: bool) -> dict[str, Judging]:
    """Host -> who judges its sessions, with a daemon that a host starts or a person does. Raises
    ``UserError`` when a key file can't be read.
    """
    from ..core.policy import in_force, judging
    from ..engine.hosts.host import capabilities
    from ..keys import load_keys
    from ..llm.select import there

    set_up = there(settings, load_keys(env, settings, by_host=by_host), env)
    return {
        host: in_force(settings, judging(settings, host, set_up, lends=capabilities(host).lends_models))
        for host in HOSTS
    }


def names(judging: Judging) -> str:
    return ", then ".join(PROVIDERS.get(name, name) for name in judging.asked) or "nobody"


def read(value: Mapping[str, Any]) -> Judging:
    from ..core.policy import Judging

    return Judging(str(value["setting"]), str(value["chosen"]), tuple(value["asked"]))


def who_judges(host: str, judging: Judging) -> str:
    """The judge in words; for the rules and for nobody also why, and what to do."""
    if not judging.asked:
        return f"nobody ({missing(host, judging.chosen)})"
    who = names(judging)
    if judging.asked != ("offline",):
        return who
    if judging.chosen == "auto" and host in CHOOSE:
        return f"{who} (no model, so they miss much; {CHOOSE[host]})"
    return f"{who} (no model, so they miss much; {judging.setting} is {judging.chosen})"


def cost(judging: Judging, settings: Settings) -> str:
    """The most that a day of judging may cost, to follow ``who_judges``; empty where no model is asked."""
    if judging.asked in {(), ("offline",)}:
        return ""
    if judging.asked[0] == "openai" and urlsplit(settings.openai.base_url).hostname in LOCAL_HOSTS:
        return f", on this machine: at most {settings.spend.tokens_per_day:,} tokens a day (`reflectd cost`)"
    return f", at most {settings.spend.cents_per_day / 100:.2f} USD a day (`reflectd cost`)"


def allows(provider: str, variable: str) -> str:
    """The remedy for a key of the environment that is not used."""
    command = f"reflectd setup claude-code --judge {provider}"
    return f"{variable} is not used: `{command}`, run where it is set, allows it"


def lost_login(env: Mapping[str, str], place: str) -> str:
    """The remedy where the only login of Claude Code is a token in the variable of this shell, which the
    daemon does not have; else empty. ``place``: where the daemon has a token from.
    """
    from ..keys import TOKEN

    if place or not env.get(TOKEN, "").strip() or _is_logged_in(env):
        return ""
    return (
        f"{TOKEN} is set in this shell, and Claude Code has no other login: a daemon that Claude Code or a "
        "service starts does not see it. Put the token into a file of mode 0600 and set claude_cli.token_file"
    )


def _is_logged_in(env: Mapping[str, str]) -> bool:
    """Says whether Claude Code stored a login: in its folder, on macOS in the keychain."""
    import platform
    import subprocess

    from ..hosts.claude_code.past import projects

    if projects(env).with_name(".credentials.json").exists():
        return True
    if platform.system() != "Darwin":
        return False
    named = ["/usr/bin/security", "find-generic-password", "-s", "Claude Code-credentials"]
    return subprocess.run(named, capture_output=True, check=False, timeout=10).returncode == 0  # noqa: S603 - a fixed command of macOS


def missing(host: str, chosen: str) -> str:
    """The things that the chosen provider lacks."""
    from ..llm.select import MISSING

    if chosen == "host":
        return f"judge.provider is host, and {HOSTS.get(host, host)} lends no model"
    return MISSING.get(chosen, f"{chosen} is not set up")
