"""What ``reflectd playbook bootstrap`` says to a person: the estimate, each session, and the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ...core.words import PROVIDERS
from ..render import clock, count, money, place, plain, short

if TYPE_CHECKING:
    from ..render import Paint
    from .plan import Plan, Run
    from .shown import Json

REASONS: Final = 8
TEXT: Final = 400
AGAIN: Final = "`reflectd playbook bootstrap` goes on with the rest"
HISTORY: Final = "`reflectd playbook history` each change"
STATES: Final = {"failed": "its answer could not be used", "silent": "no answer", "over": "not asked"}


def estimate(plan: Plan, max_cost: float | None, paint: Paint) -> list[str]:
    """What would be done and what it would cost at most."""
    told, chosen = plan.told, plan.chosen
    lines = paint.row("", paint(f"past sessions of {place(plan.project)}", "bold"), "  ")
    what = count(len(chosen), "session")
    if len(chosen) < plan.left:
        what += f", the oldest of {plan.left:,} (--limit)"
    if chosen:
        what += f"; {clock(chosen[0].past.at)} to {clock(chosen[-1].past.at)}"
    lines += paint.row("  to do     ", what)
    reasons = Counter(why for _, why in plan.out).most_common()
    for n, (why, number) in enumerate(reasons[:REASONS]):
        lines += paint.row("            " if n else "  left out  ", f"{number:,}: {plain(why)}")
    if len(reasons) > REASONS:
        lines += paint.row("            ", "… (--json names all)")
    if not chosen:
        return [*lines, *paint.row("  ", "There is nothing to look back on.")]
    size = f"about {told['tokens_in']:,} tokens in, at most {told['tokens_out']:,} out"
    lines += paint.row("  estimate  ", f"at most {count(told['calls'], 'call')}, {size}: {_price(told)}")
    lines += paint.row("  asked     ", "; ".join(dict.fromkeys(_model(m) for m in told["models"])))
    lines += paint.row("  limits    ", _limits(told, max_cost))
    kept = "What it learns is kept apart until a later session shows that it is true, or you approve it."
    return [*lines, *paint.row("  ", kept)]


def _price(told: Json) -> str:
    if told["usd"] is None:
        return "the price is unknown, so tokens are counted"
    return f"{told['usd']:.2f} USD" if told["usd"] >= 0.01 else "less than 0.01 USD"


def _model(model: Json) -> str:
    name = short(model["model"], 60) or "a model that it chooses"
    plan = ", which uses up the limits of your plan" if model["provider"] == "claude-cli" else ""
    return f"{name} by {PROVIDERS.get(model['provider'], short(model['provider'], 40))}{plan}"


def _limits(told: Json, max_cost: float | None) -> str:
    spent, limits = told["spent_24h"], told["limits"]
    most, used = f"{limits['usd']:.2f} USD", f"{spent['usd']:.2f} USD"
    if told["usd"] is None:
        most, used = f"{limits['tokens']:,} tokens", f"{spent['tokens']:,}"
    own = f", and before {max_cost:g} USD (--max-cost)" if max_cost is not None else ""
    return f"it ends before {most} in 24 hours, with what judging cost ({used} so far){own}"


def session_lines(session: Json, paint: Paint) -> list[str]:
    """One session, and what it taught."""
    state = session["state"]
    words = _learned(session) or "nothing new" if state == "learned" else STATES.get(state, "left out")
    if session.get("why") and state != "over":  # that is told at the end
        words += f": {short(session['why'], 300)}"
    title = short(session["title"], 60) or short(session["session"], 40)
    lines = paint.row(f"{clock(session['at'])}  ", f"{paint(title, 'bold')}  {words}")
    for label in ("new", "confirmed"):
        for found in session.get(label, ()):
            lines += paint.row(f"    {label:<10} ", short(found["text"], TEXT))
    for label in ("removed", "merged"):
        if session.get(label):
            lines += paint.row(f"    {label:<10} ", short(", ".join(session[label]), TEXT))
    return lines


def _learned(session: Json) -> str:
    told = [(len(session.get(what, ())), what) for what in ("new", "confirmed", "removed", "merged")]
    counted = Counter(session.get("tags", {}).values())
    told += [(counted[tag], tag) for tag in ("helpful", "harmful")]
    return ", ".join(f"{number} {what}" for number, what in told if number)


def so_far(ran: Run) -> str:
    """In a few words, beside the bar."""
    new, confirmed = (sum(len(s.get(what, ())) for s in ran.sessions) for what in ("new", "confirmed"))
    return f"{new} new, {confirmed} confirmed, {_cost(ran)}"


def _cost(ran: Run) -> str:
    usd, tokens = ran.spent["usd"], ran.spent["tokens"]
    if not tokens:
        return money(usd)
    unknown = f"{tokens:,} tokens at an unknown price"
    return f"{money(usd)} and {unknown}" if usd else unknown


def end(plan: Plan, ran: Run, paint: Paint) -> list[str]:
    """What came of all of it, and what to do next."""
    done = sum(s["state"] in {"learned", "failed"} for s in ran.sessions)
    new, confirmed = (sum(len(s.get(what, ())) for s in ran.sessions) for what in ("new", "confirmed"))
    said = f"looked back on {count(done, 'session')}: {count(new, 'new text')}, {confirmed} confirmed"
    lines = ["", *paint.row("", f"{said}; {_cost(ran)}", "  ")]
    gone = sum(s["state"] in {"learned", "failed", "done", "skipped"} for s in ran.sessions)
    if ran.stopped:
        lines += paint.row("", f"It ended early: {plain(ran.stopped)}", "  ")
    if left := plan.left - gone:
        lines += paint.row("", f"{count(left, 'session')} left; {AGAIN}", "  ")
    if new or confirmed:
        lines += paint.row("", f"`reflectd playbook approve` lists what is kept apart, {HISTORY}", "  ")
    return lines
