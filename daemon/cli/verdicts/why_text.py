"""The text of ``reflectd why``: makes lines for people from what ``why`` found.

A case file may come with a clone, so any field of it may be missing or have a wrong type.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...core.verdict import NO_PROOF
from ...core.words import HOSTS, OUTCOMES, PROVIDERS, STATES, UNJUDGED
from ..judging import read, who_judges
from ..render import clock, count, first_line, indented, money, place, plain, severity, short, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..render import Paint, Style

TEXT_CHARS = 1_200
WIDTH = 160  # characters of one text, before it is wrapped
HANG = "    "
NAMES = 20
Json = dict[str, Any]


def explained(found: Json, paint: Paint, *, full: bool = False) -> list[str]:
    """All lines. ``full`` shows whole texts, else long ones are cut in the middle."""
    case, limit = _object(found.get("case")), 0 if full else TEXT_CHARS
    verdicts = [_object(v) for v in _list(found.get("verdicts"))]
    decided = _object(case.get("verdict"))
    if not verdicts and decided:
        verdicts = [{**decided, "timestamp": decided.get("at", 0), "order": None}]
    lines = _head(found, verdicts, paint)
    if verdicts:
        lines += _verdict(verdicts[0], paint, limit)
    if case:
        other = bool(verdicts) and decided.get("turn") != verdicts[0].get("turn")
        lines += _case(case, paint, limit, other=other)
    elif verdicts:
        none = "There is no case file: no judge was asked about this turn, or the file was removed."
        lines += ["", *paint.row("", none)]
    if "ledger" in found:
        lines += _cost(_object(found["ledger"]), paint)
    if len(verdicts) > 1:
        lines += ["", paint("Before that", "bold")]
        for v in verdicts[1:]:
            when = f"  {_numbered(v)}{clock(_number(v.get('timestamp')))}  "
            lines += paint.row(when, summary(v, paint), " " * 12)
    if found.get("case_file"):
        lines += ["", f"Everything: {plain(found['case_file'])}"]
    return lines


def summary(v: Json, paint: Paint) -> str:
    """A verdict in one line: state, severity, and the first line of its feedback."""
    grade = severity(v.get("severity"))
    state = paint.state(str(v.get("state", "?")))
    return f"{state}{grade}  {short(gist(v), 100)}"


def gist(v: Json) -> str:
    """The first line of the verdict's feedback, else its reason; a foreign text."""
    return first_line(v.get("feedback") or "") or reason(v)


def reason(v: Json) -> str:
    """Why the verdict is what it is, when that was not the judge's answer; else empty."""
    found = str(v.get("reason") or "")
    return "" if found == "judged" else found.removeprefix("unscored: ").replace("guard:", "guard ")


def _head(found: Json, verdicts: list[Json], paint: Paint) -> list[str]:
    s = _object(found.get("session"))
    case = _object(_object(found.get("case")).get("case"))
    newest = verdicts[0] if verdicts else {}
    identity = s.get("session") or newest.get("session") or case.get("session") or "?"
    title = f"{paint(short(identity, 120), 'bold')}  {short(s.get('title', ''), 60)}".rstrip()
    lines = paint.row("", title, "  ")
    folder = s.get("directory") or newest.get("directory")
    if folder:
        lines += paint.row("  folder   ", place(folder))
    if s:
        state = "off" if s.get("off") else "busy" if s.get("busy") else str(s.get("phase", "?"))
        why = short(s.get("reason", ""), 100)
        n = s.get("attempts")
        rounds = f", {count(n, 'round')} of feedback" if n else ""
        now = f"{paint.state(state)}{f' ({why})' if why not in {'', 'judged'} else ''}{rounds}"
        lines += paint.row("  now      ", now)
        if waiting(s):
            lines += paint.row("  judging  ", waiting(s))
    who = _object(found.get("judge"))
    if who:
        host = str(who["host"])
        lines += paint.row("  judge    ", f"{HOSTS.get(host, host)} -> {who_judges(host, read(who))}")
    guard = _object(found.get("guard"))
    if guard:
        said = f"{short(guard.get('guard', ''), 40)}: {short(guard.get('reason', ''), 100)}"
        when = clock(_number(guard.get("at")))
        lines += paint.row("  guard    ", f"{said} ({when}, the last one that said no)")
    if found.get("daemon") and not verdicts:
        lines.append("  verdict  none yet")
    return lines


def _verdict(v: Json, paint: Paint, limit: int) -> list[str]:
    state = str(v.get("state", "?"))
    grade = severity(v.get("severity"))
    when = clock(_number(v.get("timestamp")))
    lines = ["", f"{paint('Verdict', 'bold')}  {_numbered(v)}{paint.state(state)}{grade}, {when}"]
    unjudged = str(v.get("reason") or "").startswith(NO_PROOF)
    lines += paint.row("  ", UNJUDGED if unjudged else STATES.get(state, "an unknown state"))
    if reason(v):
        lines += paint.row("  because  ", short(reason(v), 400))
    by = _object(v.get("judge"))
    if by and by.get("provider") != "none" and not str(v.get("reason", "")).startswith("guard:"):
        provider = short(by.get("provider", ""), 80)
        name = PROVIDERS.get(provider, provider)
        if provider == "offline":
            name, cost = f"{name}, without a model", ""
        else:
            name, cost = f"{name}, {short(by.get('model', ''), 80)}", f", {money(_cost_of(by.get('cost')))}"
        lines += paint.row("  by       ", f"{name}, {_number(by.get('ms')) / 1000:.1f} s{cost}")
    for i, item in enumerate(_list(v.get("missing")), 1):
        m = _object(item)
        what, cites = short(m.get("item", m.get("text", "")), WIDTH), short(m.get("cites", ""), 80)
        lines += paint.row(f"  missing  {i}. ", f"{what} [{cites}]")
    for action in _list(v.get("next_actions")):
        lines += paint.row("  next     ", short(action, WIDTH))
    order = _object(v.get("order"))
    if order:
        outcome = OUTCOMES.get(str(order.get("status")), "")
        lines += paint.row("  feedback ", f"{v.get('attempt', '?')} of this task, {outcome}:")
        lines += indented(order.get("text", ""), "    | ", limit=limit, width=paint.width)
    elif v.get("feedback"):
        lines.append("  feedback not sent:" if state == "incomplete" else "  said")
        lines += indented(v["feedback"], "    | ", limit=limit, width=paint.width)
    return lines


def _numbered(v: Json) -> str:
    """Which round of its session it is; a case file does not tell."""
    number = int(_number(v.get("round")))
    return f"round {number}: " if number else ""


def _case(found: Json, paint: Paint, limit: int, *, other: bool) -> list[str]:
    case = _object(found.get("case"))
    lines = ["", "What follows is of an earlier turn: the newest has no case file."] if other else []
    lines += ["", paint("Asked", "bold")]
    for i, text in enumerate(_list(case.get("requests")), 1):
        lines += paint.row(f"  {i}. ", short(text, WIDTH))
    lines += ["", paint("Evidence", "bold")]
    for each in _list(_object(case.get("evidence")).get("rows")):
        row = _object(each)
        name = f"{short(row.get('id', ''), 8)} {short(row.get('kind', ''), 16)}"
        text = short(row.get("text", ""), WIDTH)
        styles: tuple[Style, ...] = ("yellow",) if row.get("open") else ()
        lines += paint.row(paint(f"  {name:14}  ", *styles), paint(text, *styles))
    lines += _changed(_object(case.get("changed")), paint)
    prompts = [_object(p) for p in _list(found.get("prompts"))]
    replies = [_object(r) for r in _list(found.get("replies"))]
    # the offline rules read the rows, not the prompt
    if any(r.get("provider") != "offline" for r in replies) or not replies:
        for i, prompt in enumerate(prompts, 1):
            lines += _prompt(i, prompt, paint, limit)
    for i, reply in enumerate(replies, 1):
        lines += _reply(i, reply, paint, limit)
    if len(replies) < len(prompts):
        unanswered = count(len(prompts) - len(replies), "prompt")
        lines += ["", f"{unanswered} got no reply that could be used."]
    return lines + _decision(found, paint)


def _changed(changed: Json, paint: Paint) -> list[str]:
    """What git listed in the workspace; nothing where it was not asked."""
    if not changed:
        return []
    since = "since the task began" if changed.get("since_task") is True else "now, may be older than the task"
    names = [str(name) for name in _list(changed.get("names"))]
    more = int(_number(changed.get("more"))) + max(0, len(names) - NAMES)
    shown = ", ".join(short(name, 80) for name in names[:NAMES]) or "nothing"
    told = f"changed {since}: {shown}{f' and {more} more' if more > 0 else ''}"
    return paint.row(f"  {'git status':14}  ", told)


def _prompt(number: int, prompt: Json, paint: Paint, limit: int) -> list[str]:
    system, text = str(prompt.get("system", "")), str(prompt.get("text", ""))
    title = (
        f"Prompt {number} ({short(prompt.get('purpose', ''), 20)}, {len(system) + len(text):,} characters)"
    )
    rules = indented(system, "  S ", limit=limit, width=paint.width)
    data = indented(text, "  U ", limit=limit, width=paint.width)
    return ["", paint(title, "bold"), *rules, *data]


def _reply(number: int, reply: Json, paint: Paint, limit: int) -> list[str]:
    by = " ".join(short(reply.get(k, ""), 80) for k in ("provider", "model") if reply.get(k))
    title = paint(f"Reply {number}", "bold") + f" ({by}, {_number(reply.get('seconds')):.1f} s)"
    return ["", title, *indented(reply.get("text", ""), "  A ", limit=limit, width=paint.width)]


def _decision(found: Json, paint: Paint) -> list[str]:
    """The lines on how the replies became the verdict."""
    v = _object(found.get("verdict"))
    lines = ["", paint("Decision", "bold")]
    kept = {str(_object(m).get("text", "")) for m in _list(v.get("missing"))}
    for told, items in _said(found):
        lines += paint.row("  ", told, HANG)
        for t, c in items:
            if t not in kept:
                cited = short(c, 60) or "nothing"
                lines += paint.row("  ", f"not kept: {short(t, 100)} (it cites {cited})", HANG)
    if found.get("why"):
        lines += paint.row("  ", short(found["why"], 400), HANG)
    state, why = str(v.get("state", "?")), short(reason(v), 300)
    lines += paint.row("  ", f"so it is {paint.state(state)}{f': {why}' if why else ''}", HANG)
    kinds = [str(_object(o).get("kind", "?")) for o in _list(found.get("orders"))]
    lines += paint.row("  ", f"to the host: {short(', '.join(kinds), 100) or 'nothing'}", HANG)
    return lines


def _said(found: Json) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What the judge's parser reads in each reply, and its missing items with the rows that they cite."""
    from ...core.errors import BadReply
    from ...core.llm import Reply
    from ...judge.parse import parse, parse_defence

    nonce = str(_object(found.get("case")).get("nonce") or "")
    for i, each in enumerate(_list(found.get("replies")), 1):
        r = _object(each)
        data = r.get("data")
        reply = Reply(str(r.get("text", "")), "", data=data if isinstance(data, dict) else None)
        with suppress(BadReply):
            d = parse_defence(reply, nonce)
            yield f"reply {i}, a second look: the stop can {'' if d.defended else 'not '}be defended", []
            continue
        try:
            j = parse(reply, nonce)
        except BadReply as e:
            yield f"reply {i} could not be used: {short(e, 200)}", []
            continue
        state = "complete" if j.complete else "incomplete"
        told = f"reply {i}: {state}{severity(j.severity, ', ')}, {len(j.missing)} missing"
        told += ", only a person can go on" if j.requires_human_action else ""
        yield told, [(m.text, m.cites) for m in j.missing]


def _cost(ledger: Json, paint: Paint) -> list[str]:
    from .cost import told, worked

    lines = ["", paint("Cost", "bold")]
    rows = [_object(r) for r in _list(ledger.get("rows"))]
    asked = [r for r in rows if r.get("provider") != "offline"]
    if asked:
        r = asked[0]
        tokens = f"{r['input']:,} tokens in, {r['output']:,} out"
        spent = money(r["cost"]) if r["cost"] is not None or r["input"] + r["output"] else "cost not told"
        by = f"{short(r['provider'], 40)} {short(r['model'], 60)}".strip()
        call = f"{clock(r['at'])} {by}: {short(r['outcome'], 60)}, {tokens}, {spent}"
        lines += paint.row("  last call  ", call)
    lines += paint.row("  session    ", told(_object(ledger.get("sums"))))
    lines += paint.row("  the agent  ", worked(_object(ledger.get("agent"))))
    return lines


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


def _cost_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
