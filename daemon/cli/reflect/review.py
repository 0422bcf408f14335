"""Asks a person at a terminal: the review of all patterns (FR4), and one question for `learn` and its like.

Only a terminal is asked on. Each decision is kept when it is made, so Ctrl-C, a closed terminal and a kill
lose none. Nothing is decided by accident: Enter writes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, UserError
from ...learning.rules.candidates import Candidate, for_a_model, for_a_person
from ...redact import redact
from ..render import Paint, count, place, plain, print_json
from ..terminal import Choice, asked, attended, choose, entered, say
from .decisions import Decisions, Outcome, answers, cut, lines, one_line, rules_of
from .reading import Scan, own_model, stands_in

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...paths import Paths
    from .decisions import Answer, Proposal

MOST_WORDS: Final = 20  # messages that nobody read, which one review asks about
NOTHING: Final = "-"  # typed instead of a wording
LETTERS: Final[dict[Answer, str]] = {
    "rule": "a", "soft": "w", "dismiss": "d", "skip": "s", "replace": "r", "both": "b", "reword": "t",
    "archive": "a", "delete": "x",
}  # fmt: skip
SKIP: Final = Choice("s", "Skip for now", "nothing is written")
QUIT: Final = Choice("q", "Quit", "what you decided is kept")


def consent(what: str) -> None:
    """A person wants this. An agent's shell is no terminal. Raises ``UserError`` where nobody said so."""
    if not attended():
        raise UserError(f"{what} is a person's decision: do it on a terminal. Nothing was changed")


# --- one change ------------------------------------------------------------------------------------


def decided(name: str, args: argparse.Namespace) -> int:
    """An action that changes something: ask about it, and do it; 1 when nothing was changed."""
    rules = rules_of(args)
    decisions = Decisions(rules, own_model(rules) if name == "learn" and not args.json else None)
    p = decisions.wanted(name, args)
    there = Outcome("there already", p.text, file=p.stands[0].where) if p.kind == "same" else None
    if args.json:
        done, shown = ([there.object()], []) if there else ([], [p.shown()])
        print_json({"project": str(rules.project), "done": done, "ask": shown, "changed": False})
        return 0
    if there:
        say(f"nothing to do, it stands there already: {plain(p.text)} [{plain(there.file)}]")
        return 0
    consent("a change of what was learned")
    try:
        outcome = _asked(decisions, p, why=getattr(args, "why", ""))
    except EOFError:
        outcome = None
    if outcome is None or outcome.status == "skipped for now":
        say("Nothing was changed.")
        return 1
    _tell(outcome)
    if outcome.change:
        say(f"undo with: reflectd learned undo r{outcome.change}")
    return 0


def _asked(decisions: Decisions, p: Proposal, *more: Choice, why: str = "") -> Outcome | None:
    """Ask a question and do the answer, then ask about contradictions; None for one of ``more``."""
    _print([*lines(p), *_goes_to(decisions, p)])
    letters = {LETTERS[answer]: (answer, label, note) for label, (answer, note) in answers(p).items()}
    options = [Choice(key, label, note) for key, (_, label, note) in letters.items()]
    options += [*([] if SKIP.key in letters else [SKIP]), *more]
    key = choose(options, SKIP.key)
    if key not in letters:
        return Outcome("skipped for now", p.text) if key == SKIP.key else None
    if p.kind == "pattern" and not decisions.waits(p):
        return Outcome("decided elsewhere meanwhile", p.text)
    outcome = decisions.decide(p, letters[key][0], why=why)
    return outcome if outcome.ask is None else _asked(decisions, outcome.ask, *more)


# --- the review ------------------------------------------------------------------------------------


def review(args: argparse.Namespace, where: Paths) -> int:
    """Read new sessions, ask about each pattern, and say what was decided. Returns the exit code."""
    from .status import worn_lines

    consent("a review")
    rules = rules_of(args)
    scan, model = Scan(rules), own_model(rules)
    found = scan.all(where)
    waiting = for_a_model(rules.journal.unread())
    if model is not None and waiting:
        say(model.estimate(waiting, stands_in(rules)))
        if asked("Ask the model?", "no terminal"):
            scan.have_read(model)
    _print([f"reflectd: {plain(line)}" for line in scan.told])
    say(f"Read {scan.line()}." if found else "No session of this project was found.")
    decisions = Decisions(rules, model)
    patterns, words = decisions.patterns(), for_a_person(rules.journal.unread())[:MOST_WORDS]
    here = plain(place(rules.journal.project))
    if patterns or words:
        more = f", and {count(len(words), 'message')} of yours that no model read" if words else ""
        say(f"{count(len(patterns), 'pattern')} in {here}{more}. Nothing is written before you say so.")
        if code := _all(decisions, patterns, words):
            return code
    else:
        say(f"No pattern in {here} came up often enough to be suggested as a rule.")
    _print(worn_lines(rules.look(), Paint()))
    return 0


def _all(decisions: Decisions, patterns: Sequence[Proposal], words: Sequence[Candidate]) -> int:
    """Ask about each of these, and sum up; the exit code."""
    waiting: list[Proposal | Candidate] = [*patterns, *words]
    made, code = list[Outcome](), 0
    try:
        for number, each in enumerate(waiting, 1):
            say(f"\nPattern {number} of {len(waiting)}")
            outcome = _worded(decisions, each) if isinstance(each, Candidate) else _pattern(decisions, each)
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
        say("`reflectd learned undo` lists what can be taken back")
    return code


def _pattern(decisions: Decisions, p: Proposal) -> Outcome | None:
    """Ask about one until a decision can be done; None when the person quits."""
    while decisions.waits(p):
        try:
            outcome = _asked(decisions, p, QUIT)
            if outcome is None:
                return None
        except (UserError, Unavailable) as error:
            say(f"reflectd: {plain(error)}")
            continue
        return outcome
    return Outcome("decided elsewhere meanwhile", p.text)


def _worded(decisions: Decisions, c: Candidate) -> Outcome | None:
    """Have the person word an unread message, then ask about it as a pattern; None when they quit."""
    book, often = decisions.rules.journal, count(c.sessions, "occurrence")
    _print([f'Your words: "{one_line(redact(c.text))}" ({often}, {", ".join(c.reasons)})'])
    if c.prior:
        _print([f'The agent before: "{cut(redact(c.prior), 240)}"'])
    while c.key in {each.key for each in book.unread()}:
        text = entered(f"A rule in your words (Enter skips, {NOTHING} if it teaches nothing, q quits): ")
        try:
            if text == QUIT.key:
                return None
            if not text:
                return Outcome("skipped for now", c.text)
            if text == NOTHING:
                book.drop([c.key])
                return Outcome("teaches nothing", c.text)
            p = decisions.worded([c.key], text)
        except (UserError, Unavailable) as error:
            say(f"reflectd: {plain(error)}")
            continue
        return _pattern(decisions, p) if p else Outcome("dismissed before", text)
    return Outcome("decided elsewhere meanwhile", c.text)


def _tell(outcome: Outcome) -> None:
    _print([outcome.line(), *(f"  {plain(told)}" for told in outcome.told)])


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
