"""The second part of a back-test: a model judges, after the person saw what it takes and said yes.

Through the daemon where one runs: then each call is in its ledger, on the account ``asked``, within the caps.
Without one the provider is asked from here, as `reflectd judge` does. Each opinion is stored when it came, so
whoever ends this or kills it pays for nothing twice. A limit, or a model that does not answer, ends it. Never
more calls are made than the estimate said.
"""

from __future__ import annotations

import secrets
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from ...core.errors import UserError
from ...core.words import PROVIDERS
from ...files.safe import alone
from ...judge.flow import Opinion
from ..progress import Progress
from ..render import count, money, plain
from ..setup.confirm import asked
from ..terminal import say
from .askers import Ended, asker_of
from .reading import problem_of
from .scanning import RULES, kept_of, results, version_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ...core.llm import Prompt, Reply
    from ...core.settings import Settings
    from ...paths import Paths
    from ...store.backtests import Backtests, Version
    from .askers import Asker
    from .judging import Judging
    from .reading import Source

REFUSAL: Final = (
    "there is no terminal to ask on, and a model is asked only after a yes there; --dry-run shows the "
    "estimate. Nothing was asked"
)
BUSY: Final = (
    "another `reflectd backtest` asks a model; nothing was asked, so that nothing is paid for twice. "
    "Run it again when that one is done"
)
LOCK: Final = "backtest"  # a folder beside the database
LOOKS: Final = 2  # of most stops at most; four where a reply broke the form
TOKENS_OUT: Final = 1_500  # of one reply, at most
_OPINION: Final = msgspec.json.Decoder(Opinion)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Spent:
    """How it went. ``ran``: whether there is a report to show."""

    code: int = 0
    ran: bool = True


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is left to ask. ``tokens``: of the first prompts, about. ``usd``: about, None when unknown."""

    stops: int
    tokens: int
    usd: float | None

    def json(self, provider: str) -> dict[str, object]:
        """For scripts."""
        most = self.stops * LOOKS
        return {
            "provider": provider,
            "stops": self.stops,
            "calls": [self.stops, most],
            "tokens_in": self.tokens * LOOKS,
            "tokens_out": most * TOKENS_OUT,
            "usd": self.usd,
        }


def ask_model(
    args: argparse.Namespace,
    files: Sequence[Source],
    kept: Backtests,
    judging: Judging,
    settings: Settings,
    where: Paths,
    since: int,
) -> Spent:
    """Estimate, ask the person, ask the model. Raises ``UserError``, ``Unavailable`` and
    ``KeyboardInterrupt``.
    """
    with (
        nullcontext() if args.dry_run else alone(where.state_dir / LOCK, busy=BUSY),
        closing(asker_of(args.provider, settings, where, dry_run=args.dry_run)) as asker,
    ):
        found = _estimate(asker, kept, judging, since)
        if args.dry_run or (found.stops and not args.json):
            _say(args, found, asker)
        if args.dry_run:
            return Spent(ran=False)
        if found.stops:
            if args.json:
                raise UserError(REFUSAL)
            if not asked(f"Ask the model about {count(found.stops, 'stop')}?", REFUSAL):
                say("Nothing was asked.")
                return Spent(1, ran=False)
        return _ask(files, kept, judging, asker, since, LOOKS * found.stops)


def _estimate(asker: Asker, kept: Backtests, judging: Judging, since: int) -> Estimate:
    """What the rules' results say is left to ask."""
    paid = {mark for _, mark, _ in results(kept, asker.name, judging, since)}
    stops = tokens = 0
    for _, mark, r in results(kept, RULES, judging, since):
        if r.asks and mark not in paid:
            stops, tokens = stops + 1, tokens + r.tokens
    usd = asker.price(tokens * LOOKS, stops * LOOKS * TOKENS_OUT) if stops else 0.0
    return Estimate(stops, tokens, usd)


def _say(args: argparse.Namespace, found: Estimate, asker: Asker) -> None:
    if args.json:
        from ..render import print_json

        print_json({"estimate": found.json(asker.name)})
        return
    if not found.stops:
        say("There is nothing left to ask a model about.")
        return
    most = found.stops * LOOKS
    price = "the price is unknown" if found.usd is None else f"about {money(found.usd)}"
    say(f"to ask     {count(found.stops, 'stop')}; guards and the rules decided the others for free")
    say(f"asked      {asker.model or 'a model that it chooses'} by {PROVIDERS.get(asker.name, asker.name)}")
    say(
        f"estimate   {found.stops:,} to {most:,} calls; {most:,} are about {found.tokens * LOOKS:,} tokens "
        f"in and {most * TOKENS_OUT:,} out: {price}"
    )
    say(f"limits     {asker.limits}")


class _NotAgreedError(Exception):
    """This call is not among those that the person said yes to."""


def _ask(
    files: Sequence[Source], kept: Backtests, judging: Judging, asker: Asker, since: int, calls: int
) -> Spent:
    """File after file, until all are done or something ends it; at most so many calls as were agreed to."""
    progress, done, usd, left, over = Progress(len(files)), 0, 0.0, [calls], False

    def ask(prompt: Prompt) -> Reply:
        if not left[0]:
            raise _NotAgreedError
        left[0] -= 1
        return asker.ask(prompt)

    try:
        for n, file in enumerate(files):
            version = version_of(file, asker.name, judging)
            if kept.is_done(version):
                continue
            problem, whole, turns = "", True, set[str]()
            known = known_opinions(kept, version)
            try:
                for judged in judging.each(file, ask, nonce=_nonce, known=known, since=since):
                    if judged.result.at < since:
                        whole = False
                        continue
                    opinion = _encode(_slim(judged.opinion)).decode() if judged.opinion is not None else ""
                    kept.put_one(version, kept_of(judged, opinion))
                    turns.add(judged.result.turn)
                    done += judged.result.calls > 0
                    usd += judged.result.cost or 0.0
                    progress.show(n, f"{count(done, 'stop')} judged, {money(usd)}")
            except Ended:
                raise
            except _NotAgreedError:
                whole, over = False, True
            except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
                whole, problem = False, problem_of(file, e)  # what was paid for stays
            kept.end(version, turns, done=whole, problem=problem)
    except Ended as e:
        progress.clear()
        say(f"It ended early: {plain(e)}. What was judged is kept; run it again to go on.")
        return Spent(1)
    finally:
        progress.clear()
    if over and calls:
        say("Some stops needed more calls than the estimate said; they are left out. Run it again to go on.")
    return Spent()


def _nonce() -> str:
    return secrets.token_hex(8)


def _slim(opinion: Opinion) -> Opinion:
    """What is needed to decide again: the replies' figures without their prompts and evidence."""
    prompts = tuple(replace(p, text="", system="", evidence=None, schema=None) for p in opinion.prompts)
    return replace(opinion, prompts=prompts)


def known_opinions(kept: Backtests, version: Version) -> Callable[[str], Opinion | None]:
    """The opinions that were paid for, by the mark of a stop."""

    def known(mark: str) -> Opinion | None:
        paid = kept.opinion(version.judge, version.by, mark)
        try:
            return _OPINION.decode(paid) if paid else None
        except msgspec.MsgspecError:
            return None

    return known
