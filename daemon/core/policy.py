"""Which providers answer a prompt, how often each is asked, and how long to wait: one row per purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .errors import Fault

if TYPE_CHECKING:
    from collections.abc import Collection

    from .settings import Settings

Account = Literal["judging", "learning", "asked"]
"""The account that pays a call, with a limit of its own. ``asked``: a person asked for the work."""
PASSING: Final[frozenset[Fault]] = frozenset({"connection", "rate_limit", "overloaded", "server"})


class Policy(Struct, frozen=True):
    """``order``: the providers, best first. ``attempts``: calls to each of them.

    ``first_delay_s``: the wait before the second call; it doubles from call to call up to ``max_delay_s``,
    give or take the share ``jitter``. A longer wait that a server asks for counts too, up to the same limit.
    ``retry``: the faults after which another call is made. ``account``: what the calls are paid from.
    ``call_s``: the most seconds for one call. ``gives``: it gives what was learned, so the account's other
    calls leave room for one of these.
    """

    order: tuple[str, ...]
    attempts: int = 3
    first_delay_s: float = 1.0
    max_delay_s: float = 20.0
    jitter: float = 0.2
    retry: frozenset[Fault] = PASSING
    account: Account = "judging"
    call_s: float | None = None
    gives: bool = False


AUTO: Final = ("host", "anthropic", "openai", "offline")
"""The providers of ``auto``, as far as they are set up."""
MODELS: Final = ("host", "anthropic", "openai", "claude-cli")
MONTH_EUR: Final = 10.0
"""A month that is expected to cost more is told once; a USD counts as a EUR there."""
MAX_RETRIES: Final = 3
BASE_DELAY: Final = 2.0
LEARNING: Final = Policy(
    MODELS, attempts=MAX_RETRIES, first_delay_s=BASE_DELAY, jitter=0.25, account="learning"
)
"""The calls of the playbook: as often, and with the pauses, that its requirements name."""
ASKED: Final = replace(LEARNING, order=tuple(n for n in MODELS if n != "host"), account="asked")
"""The same for sessions of the past: a host lends its models only to a session that runs."""
REFLEXION: Final = Policy(
    MODELS,
    attempts=5,
    max_delay_s=8.0,
    retry=frozenset({"rate_limit", "overloaded", "timeout"}),
    account="learning",
    call_s=30.0,
)
"""Four more calls after 1, 2, 4 and 8 s, only after 429, 503 and a time-out: the memory's requirements."""
REFLECT: Final = replace(LEARNING, attempts=2, first_delay_s=1.0, account="asked")
"""The questions of `/reflect`. Inside a host its session runs, so the host's own models may answer too."""
POLICIES: Final[dict[str, Policy]] = {
    "judge": Policy((*MODELS, "offline")),
    # the fixed rules have no second opinion: without a model there is no answer, and nothing is sent
    "judge.again": Policy(MODELS),
    "judge.second": Policy(MODELS),
    # a failed evaluation never nudges (I30), so no rules answer in place of a model here either
    "stuck": Policy(MODELS, attempts=2),
    "compaction": Policy(MODELS, attempts=2),
    # the playbook; no rules can learn, so none answer in place of a model
    **dict.fromkeys(("reflect", "curate", "keypoints"), LEARNING),
    # `reflectd judge --past --provider`
    **dict.fromkeys(("asked.judge", "asked.judge.again", "asked.judge.second"), ASKED),
    **dict.fromkeys(("haiku_reflexion", "haiku_eval"), REFLEXION),
    # one call for a task that a person gave: a late answer is of no use
    "lessons": replace(LEARNING, attempts=1, call_s=20.0, gives=True),
    # `/reflect`: a person asked for it, and waits
    **dict.fromkeys(("signals", "contradicts"), REFLECT),
}


def account_of(purpose: str) -> Account:
    policy = POLICIES.get(purpose)
    return policy.account if policy is not None else "judging"


class Judging(NamedTuple):
    """The judges of one host's sessions.

    ``setting`` decided it, with the value ``chosen``. ``asked``: the providers, best first; empty when the
    chosen one is not there.
    """

    setting: str
    chosen: str
    asked: tuple[str, ...]


def judging(settings: Settings, host: str, there: Collection[str], *, lends: bool) -> Judging:
    """The judges of the sessions of ``host``. ``there``: the providers that are set up. ``lends``: whether
    the host asks its own models for us. ``auto`` takes none that was chosen for another host.
    """
    setting, chosen = settings.judge.of(host)
    others = {provider for other, (_, provider) in settings.judge.own.items() if other != host}
    names = tuple(n for n in AUTO if n == "offline" or n not in others) if chosen == "auto" else (chosen,)
    return Judging(setting, chosen, tuple(n for n in names if n in there and (n != "host" or lends)))


def forbids(settings: Settings) -> str:
    """The limit on spending that is 0, with which no model is ever asked; "" when none is."""
    spend = settings.spend
    limits = {
        "spend.cents_per_day": spend.cents_per_day,
        "spend.cents_per_session": spend.cents_per_session,
        "spend.tokens_per_day": spend.tokens_per_day,
    }
    return next((key for key, limit in limits.items() if limit == 0), "")


def in_force(settings: Settings, found: Judging) -> Judging:
    """``found``, or the rules where a limit on spending is 0."""
    zero = forbids(settings)
    return Judging(zero, "0", ("offline",)) if zero and found.asked else found
