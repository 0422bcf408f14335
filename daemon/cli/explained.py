"""The text of ``reflectd why``: from what was found to lines for people. Reads nothing, decides nothing.

A case file may come with a clone, so every field of it may be missing or of any type.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from daemon.cli.render import clock, first_line, indented, money, plain, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.cli.render import Paint

TEXT_CHARS = 1_200
WIDTH = 160
STATES = {
    "complete": "the task is done; nothing was sent",
    "incomplete": "the task is not done",
    "awaiting_user": "the agent waits for you; nothing was sent",
    "stopped": "reflectd gave up on this task; nothing more is sent",
    "unscored": "nobody could tell; nothing was sent",
    "error": "judging or the host failed; nothing was sent",
    "skipped": "the turn was not judged; nothing was sent",
}
OUTCOMES = {
    "done": "it reached the agent",
    "sent": "sent, no answer from the host yet",
    "pending": "not sent yet",
    "stale": "not delivered: the session moved on before",
    "failed": "not delivered: the host refused it",
    "expired": "not delivered: another host took over or it never came back",
}
Json = dict[str, Any]


def explained(found: Json, paint: Paint, *, full: bool = False) -> list[str]:
    """The whole answer."""
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
        lines += [
            "",
            "There is no case file: this turn was decided without asking a judge, or it was removed.",
        ]
    if "ledger" in found:
        lines += _cost(_object(found["ledger"]), paint)
    if len(verdicts) > 1:
        lines += ["", paint("Before that", "bold")]
        lines += [f"  {clock(_number(v.get('timestamp')))}  {summary(v, paint)}" for v in verdicts[1:]]
    if found.get("case_file"):
        lines += ["", f"Everything: {plain(found['case_file'])}"]
    return lines


def summary(v: Json, paint: Paint) -> str:
    """A verdict in one line: state, severity, and what was said first."""
    severity = short(v.get("severity", ""), 10)
    said = first_line(v.get("feedback") or "") or reason(v)
    state = paint.state(str(v.get("state", "?")))
    return f"{state}{f' {severity}' if severity not in {'', 'NONE'} else ''}  {short(said, 100)}"


def reason(v: Json) -> str:
    """Why, in words, when it was not the judge's answer."""
    found = str(v.get("reason") or "")
    return "" if found == "judged" else found.replace("guard:", "guard ")


def _head(found: Json, verdicts: list[Json], paint: Paint) -> list[str]:
    s = _object(found.get("session"))
    case = _object(_object(found.get("case")).get("case"))
    newest = verdicts[0] if verdicts else {}
    identity = s.get("session") or newest.get("session") or case.get("session") or "?"
    lines = [f"{paint(short(identity, 120), 'bold')}  {short(s.get('title', ''), 60)}".rstrip()]
    folder = s.get("directory") or newest.get("directory")
    if folder:
        lines.append(f"  folder   {short(folder, WIDTH)}")
    if s:
        state = "off" if s.get("off") else "busy" if s.get("busy") else str(s.get("phase", "?"))
        why = short(s.get("reason", ""), 100)
        n = s.get("attempts")
        rounds = f", {n} round{'' if n == 1 else 's'} of feedback" if n else ""
        lines.append(
            f"  now      {paint.state(state)}{f' ({why})' if why not in {'', 'judged'} else ''}{rounds}"
        )
    guard = _object(found.get("guard"))
    if guard:
        said = f"{short(guard.get('guard', ''), 40)}: {short(guard.get('reason', ''), 100)}"
        lines.append(f"  guard    {said} ({clock(_number(guard.get('at')))}, the last one that said no)")
    if found.get("daemon") and not verdicts:
        lines.append("  verdict  none yet")
    return lines


def _verdict(v: Json, paint: Paint, limit: int) -> list[str]:
    state = str(v.get("state", "?"))
    severity = short(v.get("severity", ""), 10)
    lines = [
        "",
        f"{paint('Verdict', 'bold')}  {paint.state(state)} {severity}, {clock(_number(v.get('timestamp')))}",
    ]
    lines.append(f"  {STATES.get(state, 'an unknown state')}")
    if reason(v):
        lines.append(f"  because  {short(reason(v), 400)}")
    by = _object(v.get("judge"))
    if by and not str(v.get("reason", "")).startswith("guard:"):
        name = " ".join(short(by.get(k, ""), 80) for k in ("provider", "model") if by.get(k))
        cost = "" if by.get("provider") == "offline" else f", {money(_cost_of(by.get('cost')))}"
        lines.append(f"  judge    {name}, {_number(by.get('ms')) / 1000:.1f} s{cost}")
    for i, item in enumerate(_list(v.get("missing")), 1):
        m = _object(item)
        what, cites = short(m.get("item", m.get("text", "")), WIDTH), short(m.get("cites", ""), 80)
        lines.append(f"  missing  {i}. {what} [{cites}]")
    lines += [f"  next     {short(action, WIDTH)}" for action in _list(v.get("next_actions"))]
    order = _object(v.get("order"))
    if order:
        outcome = OUTCOMES.get(str(order.get("status")), "")
        lines.append(f"  feedback round {v.get('attempt', '?')}, {outcome}:")
        lines += indented(order.get("text", ""), "    | ", limit=limit)
    elif v.get("feedback"):
        lines.append("  feedback not sent:" if state == "incomplete" else "  said")
        lines += indented(v["feedback"], "    | ", limit=limit)
    return lines


def _case(found: Json, paint: Paint, limit: int, *, other: bool) -> list[str]:
    case = _object(found.get("case"))
    lines = ["", "What follows is of an earlier turn: the newest has no case file."] if other else []
    lines += ["", paint("Asked", "bold")]
    lines += [f"  {i}. {short(text, WIDTH)}" for i, text in enumerate(_list(case.get("requests")), 1)]
    lines += ["", paint("Evidence", "bold")]
    for each in _list(_object(case.get("evidence")).get("rows")):
        row = _object(each)
        name = f"{short(row.get('id', ''), 8)} {short(row.get('kind', ''), 16)}"
        text = f"  {name:14}  {short(row.get('text', ''), WIDTH)}"
        lines.append(paint(text, "yellow") if row.get("open") else text)
    prompts = [_object(p) for p in _list(found.get("prompts"))]
    replies = [_object(r) for r in _list(found.get("replies"))]
    if (
        any(r.get("provider") != "offline" for r in replies) or not replies
    ):  # rules read the rows, not the text
        for i, prompt in enumerate(prompts, 1):
            lines += _prompt(i, prompt, paint, limit)
    for i, reply in enumerate(replies, 1):
        lines += _reply(i, reply, paint, limit)
    if len(replies) < len(prompts):
        lines += ["", f"{len(prompts) - len(replies)} prompts got no reply that could be used."]
    return lines + _decision(found, paint)


def _prompt(number: int, prompt: Json, paint: Paint, limit: int) -> list[str]:
    system, text = str(prompt.get("system", "")), str(prompt.get("text", ""))
    title = (
        f"Prompt {number} ({short(prompt.get('purpose', ''), 20)}, {len(system) + len(text):,} characters)"
    )
    rules, data = indented(system, "  S ", limit=limit), indented(text, "  U ", limit=limit)
    return ["", paint(title, "bold"), *rules, *data]


def _reply(number: int, reply: Json, paint: Paint, limit: int) -> list[str]:
    by = " ".join(short(reply.get(k, ""), 80) for k in ("provider", "model") if reply.get(k))
    title = paint(f"Reply {number}", "bold") + f" ({by}, {_number(reply.get('seconds')):.1f} s)"
    return ["", title, *indented(reply.get("text", ""), "  A ", limit=limit)]


def _decision(found: Json, paint: Paint) -> list[str]:
    """How the reply became the verdict."""
    v = _object(found.get("verdict"))
    lines = ["", paint("Decision", "bold")]
    kept = {str(_object(m).get("text", "")) for m in _list(v.get("missing"))}
    for told, items in _said(found):
        lines.append(f"  {told}")
        lines += [
            f"  not kept: {short(t, 100)} (it cites {short(c, 60) or 'nothing'})"
            for t, c in items
            if t not in kept
        ]
    if found.get("why"):
        lines.append(f"  {short(found['why'], 400)}")
    state, why = str(v.get("state", "?")), short(reason(v), 300)
    lines.append(f"  so it is {paint.state(state)}{f': {why}' if why else ''}")
    kinds = [str(_object(o).get("kind", "?")) for o in _list(found.get("orders"))]
    lines.append(f"  to the host: {short(', '.join(kinds), 100) or 'nothing'}")
    return lines


def _said(found: Json) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What each reply says, by the judge's own parser; and its missing items with what they cite."""
    from daemon.core.errors import BadReply
    from daemon.core.llm import Reply
    from daemon.judge.parse import parse, parse_defence

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
        told = (
            f"reply {i}: {'complete' if j.complete else 'incomplete'}, {j.severity}, {len(j.missing)} missing"
        )
        told += ", only a person can go on" if j.requires_human_action else ""
        yield told, [(m.text, m.cites) for m in j.missing]


def _cost(ledger: Json, paint: Paint) -> list[str]:
    from daemon.cli.cost import told, worked

    lines = ["", paint("Cost", "bold")]
    rows = [_object(r) for r in _list(ledger.get("rows"))]
    asked = [r for r in rows if r.get("provider") != "offline"]
    if asked:
        r = asked[0]
        tokens = f"{r['input']:,} tokens in, {r['output']:,} out"
        spent = money(r["cost"]) if r["cost"] is not None or r["input"] + r["output"] else "cost not told"
        by = f"{short(r['provider'], 40)} {short(r['model'], 60)}".strip()
        lines.append(f"  last call  {clock(r['at'])} {by}: {short(r['outcome'], 60)}, {tokens}, {spent}")
    lines.append(f"  session    {told(_object(ledger.get('sums')))}")
    lines.append(f"  the agent  {worked(_object(ledger.get('agent')))}")
    return lines


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


def _cost_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
