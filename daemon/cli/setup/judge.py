"""Asks for the judge of Claude Code's and Codex's sessions, which lend their models to no hook.

The answer is one setting for each host, and where it needs them the name of the key's variable, the address
and the model. A judge that is not set up is refused. No key is ever asked for or shown.
"""

from __future__ import annotations

import json
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from ... import config, paths
from ...core.errors import UserError
from ...core.fast import LOCAL_HOSTS
from ...core.words import HOSTS
from ...keys import VARIABLES, Keys, load_keys
from ..judging import found, lost_login, missing, names
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...core.policy import Judging
    from ...core.settings import Settings, Value

SETTINGS: Final = {"claude-code": "judge.claude_code", "codex": "judge.codex"}
"""The hosts that lend no model of their own, and the setting of each."""
CHOICES: Final = ("claude-cli", "anthropic", "openai", "offline")
USUAL: Final = "A stop usually takes one call of about 2,000 tokens and an answer."
"""As docs/cost.md says it; a test compares them."""
SERVERS: Final = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""The usual ports of model servers. Each lists its models as OpenAI's API does."""
SERVERS_S, LIST_LIMIT, LONGEST_NAME = 0.7, 1_000_000, 120


class Server(NamedTuple):
    """A model server that answers on this machine, and the first model that it lists."""

    name: str
    base_url: str
    model: str


class Choice(NamedTuple):
    """A judge. ``name``: as the setting calls it. ``title``: what it costs and where the text of a session
    goes. ``lacks``: what is missing, "" if it can be chosen. ``values``: the settings that choose it.
    """

    name: str
    title: str
    lacks: str
    values: dict[str, Value]


def undecided(settings: Settings, hosts: Collection[str]) -> list[str]:
    """Those of these hosts for whose sessions nobody chose a judge yet."""
    return [h for h in SETTINGS if h in hosts and settings.judge.of(h) == ("judge.provider", "auto")]


def given(name: str, env: Mapping[str, str], host: str) -> dict[str, Value]:
    """The settings that choose this judge for one host. Raises ``UserError`` when it is not set up."""
    settings = config.load(env, paths.config_file(env))
    of_name = [choice for choice in _choices(settings, env, [host]) if choice.name == name]
    if ready := [choice for choice in of_name if not choice.lacks]:
        # what the person set up, before a server that was found
        return ready[-1].values | _of_the_last(settings, name, host)
    raise UserError(f"{of_name[0].lacks}. Nothing was changed")


def ask(settings: Settings, env: Mapping[str, str], hosts: Sequence[str]) -> dict[str, Value]:
    """The settings that the person's answer sets for these hosts; none where it is as it was, or where only
    the rules can judge. Raises ``UserError``, ``EOFError`` and ``KeyboardInterrupt``.
    """
    choices = _choices(settings, env, hosts)
    ready = [choice for choice in choices if not choice.lacks]
    whose = " and ".join(f"{HOSTS[host]}'s" for host in hosts)
    if len(ready) == 1:
        say(f"\nOnly the rules can judge {whose} sessions yet. A model does after one of these:")
        for choice in choices:
            if choice.lacks:
                say(
                    f"  {choice.name}: {choice.lacks}; then `reflectd setup {hosts[0]} --judge {choice.name}`"
                )
        return {}
    lends = "It lends its model" if len(hosts) == 1 else "They lend their models"
    say(f"\nWho shall judge {whose} sessions? {lends} to no hook. {USUAL}")
    for number, choice in enumerate(ready, 1):
        say(f"  {number}  {choice.title}")
    if lacking := [choice.name for choice in choices if choice.lacks]:
        say(f"     (not set up: {', '.join(lacking)}; `reflectd setup --judge NAME` says what is missing)")
    judging = found(settings, env, by_host=True)[hosts[0]]
    nothing = " (nothing is learned)" if judging.asked == ("offline",) else ""
    while True:
        answer = input(f"1 to {len(ready)}? Enter keeps {names(judging)}{nothing}: ").strip()
        if not answer:
            return {}
        if answer.isdecimal() and 0 < int(answer) <= len(ready):
            return ready[int(answer) - 1].values
        say(f"Type a number from 1 to {len(ready)}, or Enter.")


def _of_the_last(settings: Settings, name: str, host: str) -> dict[str, Value]:
    """Takes away the address of the earlier judge, so that it does not become a fallback of opencode. An
    address that serves another host too stays.
    """
    own = {h: provider for h, (_, provider) in settings.judge.own.items()}
    last = own.pop(host, "")
    serves = last in own.values() or settings.judge.provider != "auto"
    if last == name or serves or last not in settings.apis:
        return {}
    keys = [f"{last}.{key}" for key in ("base_url", "key_env") if getattr(settings.apis[last], key)]
    return dict.fromkeys(keys, "")


def notes(settings: Settings, judging: Judging, env: Mapping[str, str]) -> list[str]:
    """Notes for the person on the judge in force: where its key is read, whether it has a login."""
    api = settings.apis.get(judging.chosen) if judging.setting in SETTINGS.values() else None
    if api is not None and api.base_url and not api.key_env:
        return [f"asks {api.model} at {_shown(api.base_url)} (`reflectd config set {judging.chosen}.model`)"]
    if api is not None and api.key_env:
        return [
            f"the key in {api.key_env}, in the environment of what starts the daemon, goes to "
            f"{api.base_url}; a service does not see it and needs {judging.chosen}.key_file"
        ]
    lost = lost_login(env, settings.claude_cli.token_file) if "claude-cli" in judging.asked else ""
    return [lost] if lost else []


def _choices(settings: Settings, env: Mapping[str, str], hosts: Sequence[str]) -> list[Choice]:
    """All judges of these hosts, best known first."""
    from ...llm.select import there

    keys = load_keys(env, settings)
    ready = there(settings, keys, env)
    own_server = settings.openai.base_url or settings.openai.key_file  # whose key no other server gets
    servers = [] if own_server else servers_here()
    cap = f"you pay for each call, at most {settings.spend.cents_per_day / 100:.2f} USD a day"
    keys_of = [SETTINGS[host] for host in hosts]
    titles = {
        "claude-cli": "your own Claude Code: no key, takes from the limits of your plan",
        "openai": f"the server {_goes('openai', keys)}: the session's text goes there, without known secrets",
        "anthropic": f"Anthropic's API: the session's text goes to {_goes('anthropic', keys)}, {cap}",
        "offline": "the rules, without a model: free, nothing leaves the machine; they miss much and learn "
        "nothing",
    }

    def choice(name: str, title: str, lacks: str, more: Mapping[str, Value]) -> Choice:
        return Choice(name, title, lacks, {**dict.fromkeys(keys_of, name), **more})

    known = {
        name: choice(
            name, title, "" if name in ready else missing(hosts[0], name), _recorded(name, settings, env)
        )
        for name, title in titles.items()
    }
    local = []
    for s in servers:
        title = f"{s.name} on this machine, {s.model}: no key, nothing leaves the machine by us"
        local.append(choice("openai", title, "", {"openai.base_url": s.base_url, "openai.model": s.model}))
    if lacks := known["openai"].lacks:
        ports = ", ".join(f"{name} {port}" for port, name in SERVERS.items())
        here = f"No model server answers on this machine ({ports}); for another one set openai.model too"
        known["openai"] = known["openai"]._replace(lacks=f"{lacks}. {here}")
    if local and lacks:
        del known["openai"]
    return [known.pop("claude-cli"), *local, *known.values()]


def _goes(name: str, keys: Keys) -> str:
    """Where the text of a session is sent; nothing secret of the address is shown."""
    address = keys.apis[name].base_url
    if address in {"", VARIABLES[name].official}:
        return "Anthropic" if name == "anthropic" else "OpenAI"
    return _shown(address)


def _shown(address: str) -> str:
    """The host of an address, without a password in it, and whether it is this machine."""
    parts = urlsplit(address)
    return f"{parts.netloc.rpartition('@')[2]}{', this machine' if parts.hostname in LOCAL_HOSTS else ''}"


def _recorded(name: str, settings: Settings, env: Mapping[str, str]) -> dict[str, Value]:
    """Which variable holds the key and which address gets it, so that a daemon that a host starts may use
    them. Nothing where a file holds the key, or where the server that was set needs none.
    """
    if name not in VARIABLES:
        return {}
    api, usual = settings.apis[name], VARIABLES[name]
    if api.key_file or (api.base_url and api.key_env != usual.key) or not env.get(usual.key, "").strip():
        return {}
    address = env.get(usual.address, "").strip().rstrip("/") or usual.official
    return {f"{name}.key_env": usual.key, f"{name}.base_url": address}


def servers_here(ports: Mapping[int, str] = SERVERS) -> list[Server]:
    """The model servers that answer on this machine to a GET of their list of models."""
    servers: dict[int, Server] = {}

    def look(port: int) -> None:
        if model := _first_model(port):
            servers[port] = Server(ports[port], f"http://127.0.0.1:{port}/v1", model)

    threads = [Thread(target=look, args=(port,), daemon=True) for port in ports]
    end = monotonic() + SERVERS_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end - monotonic(), 0))
    known = dict(servers)
    return [known[port] for port in ports if port in known]


def _first_model(port: int) -> str:
    """The first model that a server lists and that can judge; "" for anything that is no model server."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("127.0.0.1", port, timeout=SERVERS_S)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        models = json.loads(answer.read(LIST_LIMIT))["data"] if answer.status == 200 else []
        ids = [str(model["id"]) for model in models]
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):
        return ""
    finally:
        connection.close()
    valid = config.SETTINGS["openai.model"].valid
    return next((i for i in ids if valid(i) and len(i) <= LONGEST_NAME and "embed" not in i.lower()), "")
