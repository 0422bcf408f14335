"""Asks a person at a terminal: the review of all patterns (FR4), and one question for `learn` and its like.

Only a terminal is asked on. Each decision is kept when it is made, so Ctrl-C, a closed terminal and a kill
lose none. Nothing is decided by accident: Enter writes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.errors import Unavailable, UserError
from ...learning.rules.places import AGENTS
from ..render import Paint, count, place, plain, print_json
from ..terminal import Choice, attended, choose, entered, say
from .decisions import Decisions, Outcome, answers, cut, lines, one_line, rules_of
from .model import own_model

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...learning.rules.learned_rules import LearnedRules
    from .decisions import Answer, Proposal

MOST_WORDS: Final = 20  # messages that nobody read, which one review asks about
LETTERS: Final[dict[Answer, str]] = {
    "rule": "a", "soft": "w", "dismiss": "d", "skip": "s", "replace": "r", "both": "b", "reword": "t",
    "archive": "a", "delete": "x", "do": "y",
}  # fmt: skip
BACK: Final = Choice("g", "Go back", "decide nothing yet")


def consent(what: str) -> None:
    """A person wants this. An agent's shell is no terminal. Raises ``UserError`` where nobody said so."""
    if not attended():
        raise UserError(f"{what} is a person's decision: do it on a terminal. Nothing was changed")


def which_file(decisions: Decisions) -> None:
    """Of two files that have nothing to do with each other the person says which one has the rules."""
    if decisions.place is not None or len(decisions.places) < 2:
        return
    say("Two files could have the rules. Which one shall it be?")
    places = {str(i): p for i, p in enumerate(decisions.places, 1)}
    options = [
        Choice(key, place(p.path), f"{'opencode' if p.via == AGENTS else 'Claude Code'} reads it")
        for key, p in places.items()
    ]
    decisions.place = places[choose(options, "1")]


def decided(name: str, args: argparse.Namespace) -> int:
    """An action that changes something: ask about it, and do it; 1 when nothing was changed."""
    rules, shows = rules_of(args), args.json or args.dry_run
    model = own_model(rules) if name == "learn" and not shows else None
    decisions = Decisions(rules, model.compare if model is not None else None)
    asks = decisions.wanted(name, args)
    p = asks[0]
    if args.json:
        there = (
            [Outcome("there already", p.text, file=p.stands[0].where).object()] if p.kind == "same" else []
        )
        shown = [] if there else [each.shown() for each in asks]
        print_json({"project": str(rules.journal.project), "done": there, "ask": shown, "changed": False})
        return 0
    if p.kind == "same":
        say(f"nothing to do, it stands there already: {plain(p.text)} [{plain(p.stands[0].where)}]")
        return 0
    if args.dry_run:
        for each in asks:
            say("you would be asked: " + " ".join(lines(each)))
        return 0
    consent("a change of what was learned")
    try:
        if name == "learn" and not args.soft and decisions.place is None:
            which_file(decisions)
            asks = decisions.wanted(name, args)
        outcome = _one(decisions, asks, why=getattr(args, "why", ""))
    except EOFError:
        outcome = None
    if outcome is None or outcome.status == "skipped for now":
        say("Nothing was changed.")
        return 1
    _tell(outcome)
    if outcome.change:
        say(f"undo with: reflectd reflect undo {outcome.change}")
    elif outcome.status == "dismissed":
        say(f"take that back with: reflectd reflect restore {' '.join(args.names)}")
    return 0


def _one(decisions: Decisions, asks: Sequence[Proposal], *, why: str) -> Outcome | None:
    """Ask about the one of these that the person means; None for none of them."""
    p = asks[0]
    if len(asks) > 1:
        say("Which one?")
        known = {str(i): p for i, p in enumerate(asks, 1)}
        options = [Choice(key, p.stands[0].id, cut(p.stands[0].text, 200)) for key, p in known.items()]
        key = choose([*options, Choice("s", "None of them")], "s")
        if key not in known:
            return None
        p = known[key]
    return _asked(decisions, p, why=why)


def _asked(decisions: Decisions, p: Proposal, *, back: bool = False, why: str = "") -> Outcome | None:
    """Ask one question, and carry out the answer; None when the person went back (``back``: they may). A
    contradiction of a new rule is asked about next.
    """
    _print([*lines(p), *_goes_to(decisions, p)])
    options = [*_options(p), *([BACK] if back else [])]
    key = choose(options, options[-1].key if back else "s")
    if key == BACK.key:
        return None
    outcome = decisions.decide(p, _meant(p, key), why=why)
    return _asked(decisions, outcome.ask, back=back) if outcome.ask else outcome


def review(rules: LearnedRules) -> int:
    """Ask about each pattern, and say what was decided. Returns the exit code."""
    from .status import worn_lines

    model = own_model(rules)
    decisions = Decisions(rules, model.compare if model is not None else None)
    patterns, words = decisions.patterns(), decisions.words()
    here = plain(place(rules.journal.project))
    if not patterns and not words:
        say(f"No pattern in {here} came up often enough to be suggested as a rule.")
    else:
        more = f", and {count(len(words), 'message')} of yours that no model read" if words else ""
        say(f"{count(len(patterns), 'pattern')} in {here}{more}. Nothing is written before you say so.")
        if code := _all(decisions, [*patterns, *words[:MOST_WORDS]]):
            return code
    _print(worn_lines(rules, rules.look(), Paint(), suggested=True))
    return 0


def _all(decisions: Decisions, waiting: Sequence[Proposal]) -> int:
    """Ask about each of these, and sum up; the exit code."""
    made, code = list[Outcome](), 0
    try:
        which_file(decisions)
        target = decisions.base().target
        for number, p in enumerate(waiting, 1):
            head = f"Pattern {number} of {len(waiting)}"
            outcome = _decided(decisions, replace(p, target=target), head)
            if outcome is None:
                break
            made.append(outcome)
            _tell(outcome)
    except EOFError:
        say("")  # the terminal is gone, or Ctrl-D: as if they quit
    except KeyboardInterrupt:
        say("")
        code = 130
    many = Counter(outcome.status for outcome in made)
    left = {"not decided": len(waiting) - len(made)} if len(made) < len(waiting) else {}
    told = ", ".join(f"{status}: {n}" for status, n in {**many, **left}.items())
    say(f"{count(len(made), 'decision')}. {told}")
    if any(outcome.change for outcome in made):
        say("`reflectd reflect undo` takes the last change of a file back")
    if "dismissed" in many:
        say("`reflectd reflect restore ID` takes a dismissal back")
    return code


def _decided(decisions: Decisions, p: Proposal, head: str) -> Outcome | None:
    """Ask about one until something is decided; None when the person quits. A decision that can't be done is
    told, and asked again.
    """
    text, shown = p.text, None
    while True:
        if not decisions.waits(p):
            return Outcome("decided elsewhere meanwhile", p.said)
        if shown != text:
            wording = [f'Wording: "{one_line(text)}"'] if text != p.text else []
            _print(["", head, *lines(p), *wording, *_goes_to(decisions, p)])
            shown = text
        asked = replace(p, kind="pattern") if text else p  # words that were worded are decided as a pattern
        edit = Choice("e", "Edit the wording") if text else Choice("e", "Word it yourself", "then decide")
        key = choose([*_options(asked), edit, Choice("q", "Quit", "what you decided is kept")], "s")
        try:
            if key == "q":
                return None
            if key == "e":
                text = entered(f"Rule now: {text or 'none'}. In your words (empty keeps it): ") or text
                continue
            if not decisions.waits(p):
                continue
            answer = _meant(asked, key)
            if p.words is not None and answer in {"rule", "soft"}:
                worded = decisions.worded([p.words.key], text)
                if worded is None:
                    return Outcome("dismissed", text)
                p = replace(worded, target=p.target)
            outcome = decisions.decide(p if p.words else replace(p, text=text), answer)
            if outcome.ask is None:
                return outcome
            further = _asked(decisions, outcome.ask, back=True)
        except (UserError, Unavailable) as error:
            say(f"reflectd: {plain(error)}")
            continue
        if further is not None:
            return further
        shown = None


def _tell(outcome: Outcome) -> None:
    """Say what became of a decision."""
    _print([outcome.line(), *(f"  {plain(told)}" for told in outcome.told)])


def _options(p: Proposal) -> list[Choice]:
    return [Choice(LETTERS[answer], label, note) for label, (answer, note) in answers(p).items()]


def _meant(p: Proposal, key: str) -> Answer:
    return next(answer for answer, _ in answers(p).values() if LETTERS[answer] == key)


def _goes_to(decisions: Decisions, p: Proposal) -> list[str]:
    """The file that a rule would go to, with its path, or why there is none."""
    if p.soft or p.kind not in {"pattern", "learn"}:
        return []
    where = decisions.place
    if where is None:
        return [f"  file  none for a rule: {plain(decisions.no_place)}"]
    return [f"  file  {plain(place(where.path))}" + (f" ({plain(where.note)})" if where.note else "")]


def _print(texts: Sequence[str]) -> None:
    for line in texts:
        say(line)
