"""``reflectd doctor``: looks at everything that reflectd needs, and says what is wrong and how to mend it.

Changes nothing but outdated copies of the plugins, and uses the network only with ``--online``, which asks
each model once. Wrong settings are a finding, not an error.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

from ...core.errors import BadReply, ReflectdError, Unavailable, UserError, told
from ...core.llm import Prompt
from ...core.ports import Client
from ...paths import config_file, find_socket
from ..control.start import status
from ..render import Paint, plain, print_json
from ..settings import add_flags, load
from . import checks
from .checks import About, Check

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from ...core.errors import Fault
    from ...core.ports import Provider
    from ..render import Style
    from .checks import Outcome

# ``reflectd doctor --online``: asks each model API that is set up one short question.

ASK_S = 30.0
MENDS: dict[Fault, str] = {
    "auth": "the key is wrong or may not use this model",
    "billing": "the account has no credit",
    "model": "there is no such model: set its name (reflectd config shows it)",
    "connection": "the address cannot be reached: look at base_url and the network",
}
CLI_LOGIN = "run claude and type /login"


def online(about: About) -> Iterator[Check]:
    """One finding per API. The models of a host are not asked: that needs a session of the host."""
    from ...keys import load_keys
    from ...llm.select import providers

    keys = load_keys(about.env, about.settings)
    found = [p for p in providers("auto", about.settings, keys) if p.name != "offline"]
    judge = about.settings.judge
    if "claude-cli" in {judge.provider, judge.claude_code, judge.codex}:
        found += providers("claude-cli", about.settings, keys, folder=about.where.judge_folder)
    if not found:
        yield Check("online", "ok", "no model API is set up; the host's models need no key")
    for provider in found:
        yield asyncio.run(_ask(provider))


async def _ask(provider: Provider) -> Check:
    prompt = Prompt(
        purpose="judge", tier="judge", system="Answer with one word.", text="Say ok.", max_tokens=64
    )
    vendor, model = provider.model_for(prompt)
    own = vendor in {"", provider.name}
    name = f"{provider.name} ({model})" if own else f"{provider.name} ({vendor} {model})"
    try:
        async with asyncio.timeout(ASK_S):
            reply = await provider.complete(prompt, ASK_S)
    except BadReply:  # it answered, if not in the form that was asked for
        return Check("online", "ok", f"{name} answers")
    except TimeoutError:
        late = f"{name} gave no answer in {ASK_S:.0f} s"
        return Check("online", "fail", late, "try again, or another base_url")
    except Unavailable as e:
        needs_login = provider.name == "claude-cli" and e.fault == "auth"
        mend = CLI_LOGIN if needs_login else MENDS.get(e.fault, "try again later")
        return Check("online", "fail", f"{name}: {str(e).removeprefix(f'{provider.name}: ')}", mend)
    finally:
        if isinstance(provider, Client):
            await provider.close()
    return Check("online", "ok", f"{name} answers in {reply.seconds:.1f} s")


EPILOG = """examples:
  reflectd doctor                  every check that needs no model
  reflectd doctor --online         also one tiny call per model API that is set up (a fraction of a cent)

exit codes: 0 nothing failed, 1 something failed, 2 wrong arguments"""
STYLES: dict[Outcome, Style] = {"ok": "green", "warn": "yellow", "fail": "red"}
COUNTED: dict[Outcome, str] = {"fail": "failed", "warn": "to look at"}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("doctor", epilog=EPILOG)
    parser.add_argument(
        "--online", action="store_true", help="make one tiny call per model API that is set up"
    )
    add_flags(parser, run, json="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run every check. A check that raises an error is a finding too, and the next ones run."""
    found = examine(args, os.environ)
    failed = any(c.outcome == "fail" for c in found)
    if args.json:
        print_json({"ok": not failed, "checks": [c._asdict() for c in found]})
        return int(failed)
    paint = Paint()
    for check in sorted(found, key=lambda c: list(STYLES).index(c.outcome), reverse=True):
        print("\n".join(_lines(check, paint)))
    counts = Counter(check.outcome for check in found)
    told = [f"{counts[o]} {word}" for o, word in COUNTED.items() if counts[o]]
    print(f"\n{', '.join(told) or 'all is well'}")
    return int(failed)


def examine(args: argparse.Namespace, env: Mapping[str, str]) -> list[Check]:
    """All findings, in the order in which a person would mend them."""
    findings = _guarded("package", checks.package) + _guarded("command", checks.command, env)
    mend, file = "mend it; `reflectd config` says when it is right", config_file(env)
    wrong: list[str] = []
    try:
        settings, where = load(args, left_out=wrong)
    except UserError as e:
        return [*findings, Check("settings", "fail", str(e), mend)]
    if wrong:
        text = "; ".join(wrong) + ". The checks below go without it, the daemon does not start with it"
        findings.append(Check("settings", "fail", text, mend))
    else:
        valid = f"{file} is valid" if file.exists() else f"defaults ({file} does not exist)"
        findings.append(Check("settings", "ok", valid))
    about = About(env, settings, where, status(find_socket(where)))
    for name, check in checks.CHECKS.items():
        findings += _guarded(name, check, about)
    return findings + (_guarded("online", online, about) if args.online else [])


def _guarded(name: str, check: Callable[..., Iterator[Check]], *about: object) -> list[Check]:
    try:
        return list(check(*about))
    except (OSError, ReflectdError) as e:
        return [Check(name, "warn", f"could not be checked: {told(e)}")]
    except Exception as e:  # noqa: BLE001 - the person wants the other findings too
        return [Check(name, "fail", f"a bug of reflectd: {type(e).__name__}: {e}", "please report it")]


def _lines(c: Check, paint: Paint) -> list[str]:
    lines = paint.row(f"{paint(f'{c.outcome:4}', STYLES[c.outcome])}  {c.name:11} ", plain(c.text))
    return lines + (paint.row(f"{' ' * 18}-> ", plain(c.mend)) if c.mend else [])
