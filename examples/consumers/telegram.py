#!/usr/bin/env python3
"""Sends a verdict by a Telegram bot: reflectd watch --exec 'python3 telegram.py'

TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID say who sends and to whom; TELEGRAM_API is the address of a Bot API
server of your own. One message per verdict, plain text; no redirect is followed and no token is printed.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import telling

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

LIMIT_S = 10.0
LONGEST_WAIT_S = 30  # twice LIMIT_S and this stay below the minute that `watch --exec` gives
MESSAGE_UNITS = 4096  # of UTF-16, as Telegram counts
MAX_ANSWER = 100_000
API = "https://api.telegram.org"
HINTS = {
    400: "is TELEGRAM_CHAT_ID right, and have you written to the bot?",
    401: "is TELEGRAM_BOT_TOKEN right?",
    403: "has the bot been blocked, or is it not in the group?",
    404: "are TELEGRAM_BOT_TOKEN and TELEGRAM_API right?",
}


@dataclass(frozen=True)
class Bot:
    """The bot that sends, and the chat it sends to. The token is in no text that we print."""

    token: str = field(repr=False)
    chat: str
    api: str = API


@dataclass(frozen=True)
class Answer:
    """What the server said: ``status`` is 200 when the message was sent."""

    status: int
    text: str = ""
    wait_s: int = 0


def bot(env: Mapping[str, str]) -> Bot:
    """From the environment."""
    found = Bot(
        env.get("TELEGRAM_BOT_TOKEN", "").strip(),
        env.get("TELEGRAM_CHAT_ID", "").strip(),
        (env.get("TELEGRAM_API", "").strip() or API).rstrip("/"),
    )
    if not re.fullmatch(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}", found.token):
        raise telling.NotToldError("TELEGRAM_BOT_TOKEN must be a bot's token, as @BotFather gave it")
    if not re.fullmatch(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}", found.chat):
        raise telling.NotToldError("TELEGRAM_CHAT_ID must be a number or @channel")
    if not re.fullmatch(r"https?://[^\s/?#@]{1,253}(?:/[^\s?#]{0,200})?", found.api):
        raise telling.NotToldError("TELEGRAM_API must be an address such as http://localhost:8081")
    return found


def words(message: telling.Message) -> str:
    """The message, cut to the length that Telegram allows."""
    text = "\n- ".join((message.title, *message.lines))
    data = text.encode("utf-16-le")
    if len(data) <= 2 * MESSAGE_UNITS:
        return text
    return data[: 2 * MESSAGE_UNITS - 2].decode("utf-16-le", "ignore") + "…"


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because the address holds the token."""

    def redirect_request(self, *_: object) -> None:
        """Not followed."""


def post(to: Bot, text: str, limit_s: float) -> Answer:
    """One ``sendMessage``."""
    body = {"chat_id": to.chat, "text": text, "link_preview_options": {"is_disabled": True}}
    request = urllib.request.Request(  # noqa: S310 - `bot` lets only http and https through
        f"{to.api}/bot{to.token}/sendMessage",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "User-Agent": "reflectd-telegram"},
    )
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=limit_s) as answer:
            return _answer(answer.status, answer.read(MAX_ANSWER))
    except urllib.error.HTTPError as e:
        with e:
            return _answer(e.code, e.read(MAX_ANSWER))


def _answer(status: int, data: bytes) -> Answer:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "ok" not in found:
        return Answer(status if status >= 300 else 0, "no answer of a Bot API")
    if found["ok"] is True and status == 200:
        return Answer(200)
    more = found.get("parameters")
    more = more if isinstance(more, dict) else {}
    text, wait = str(found.get("description", "")), more.get("retry_after", 0)
    if "migrate_to_chat_id" in more:
        text += f"; the group's new TELEGRAM_CHAT_ID is {more['migrate_to_chat_id']}"
    return Answer(status if status >= 300 else 0, text, wait if isinstance(wait, int) else 0)


def send(to: Bot, text: str, limit_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Send it. If Telegram says there were too many, wait as long as it asks and send once more."""
    answer = _within(limit_s, to, text)
    if answer.status == 429 and 0 < answer.wait_s <= LONGEST_WAIT_S:
        sleep(answer.wait_s)
        answer = _within(limit_s, to, text)
    if answer.status == 200:
        return
    wait = f"; it asks to wait {answer.wait_s} s" if answer.wait_s else ""
    hint = f" ({HINTS[answer.status]})" if answer.status in HINTS else ""
    raise telling.NotToldError(_hide(f"not sent: {answer.status or '?'} {answer.text}{wait}{hint}", to))


def _within(limit_s: float, to: Bot, text: str) -> Answer:
    """``post`` in a thread: a slow name server, or a server that sends byte by byte, ignores a time limit."""
    got: list[Answer | Exception] = []

    def work() -> None:
        try:
            got.append(post(to, text, limit_s))
        except (OSError, HTTPException, ValueError) as e:
            got.append(e)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    found: Any = got[0] if got else TimeoutError()
    if isinstance(found, Answer):
        return found
    why = getattr(found, "reason", found)
    if isinstance(why, TimeoutError):
        why = f"no answer within {limit_s:g} s"
    raise telling.NotToldError(_hide(f"not sent: {to.api}: {why or type(why).__name__}", to)) from None


def _hide(text: str, to: Bot) -> str:
    """``text`` without the token."""
    return text.replace(to.token, "***").replace(to.token.partition(":")[2], "***")


def tell(message: telling.Message, args: argparse.Namespace) -> None:
    """Send it."""
    send(bot(os.environ), words(message), args.timeout)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    return telling.run(telling.parser(__doc__ or "", LIMIT_S), argv, words, tell)


if __name__ == "__main__":
    sys.exit(main())
