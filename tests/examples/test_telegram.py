"""``telegram.py`` before a Bot API on loopback: messages, refusals, waits, and what breaks on the way."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from types import ModuleType
from typing import Any

import pytest

from tests.examples.running import (
    CHAT,
    CONSUMERS,
    SECRET,
    TOKEN,
    BotApi,
    answers,
    bot_api,
    cut,
    half,
    refused,
    run,
    sent,
    verdict,
)


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as api:
        yield api


@pytest.fixture
def telegram(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, for what a process would have to wait for."""
    monkeypatch.syspath_prepend(str(CONSUMERS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module("telegram")


def fails(api: BotApi, *words: str, what: Any = None, args: tuple[str, ...] = (), **env: str) -> None:
    """Exit code 1 and one line that has these words, and never the token."""
    done = run("telegram.py", what or verdict(), *args, **api.env | env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert [w for w in words if w not in done.stderr] == [], done.stderr
    assert SECRET not in done.stderr


def test_a_verdict_is_sent(api: BotApi) -> None:
    """One plain message: no markup that is obeyed, and no link that Telegram would fetch."""
    item = '*bold* <b>x</b> [a](https://example.org) 😀 "q" \\'
    done = run("telegram.py", verdict("incomplete", missing=[{"item": item}]), **api.env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text, quiet = f"shop: not finished\n- {item}", {"is_disabled": True}
    assert api.messages == [{"chat_id": CHAT, "text": text, "link_preview_options": quiet}]


def test_nothing_is_sent_when_nothing_is_told(api: BotApi) -> None:
    """A quiet verdict and a dry run open no connection, and need no token."""
    assert run("telegram.py", verdict("incomplete", feedback_sent=True), **api.env).returncode == 0
    assert run("telegram.py", verdict("complete"), "--dry-run").stdout == "shop: done\n"
    assert run("telegram.py", verdict("skipped")).returncode == 0
    assert api.messages == []


@pytest.mark.parametrize("piece", ["x", "ä", "😀", "\n", "日"])
def test_a_long_message_is_cut(api: BotApi, piece: str) -> None:
    """Telegram takes 4,096 UTF-16 units; no character is halved."""
    items = [{"item": (piece + " ") * 2000 + str(n)} for n in range(40)]
    done = run("telegram.py", verdict("incomplete", missing=items), "--details", "all", **api.env)
    assert (done.returncode, done.stderr) == (0, "")
    (text,) = api.texts
    assert len(text.encode("utf-16-le")) <= 8192
    assert piece == "\n" or (text.endswith("…") and len(text.encode("utf-16-le")) > 8180)


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(400, "Bad Request: chat not found"), ["400", "chat not found", "TELEGRAM_CHAT_ID"]),
        (refused(401, "Unauthorized"), ["401 Unauthorized", "TELEGRAM_BOT_TOKEN"]),
        (refused(403, "Forbidden: bot was blocked by the user"), ["403", "blocked"]),
        (refused(400, "upgraded to a supergroup", migrate_to_chat_id=-1009), ["TELEGRAM_CHAT_ID is -1009"]),
        (refused(429, "Too Many Requests", retry_after=3600), ["429", "wait 3600 s"]),
        (refused(500, "Internal Server Error"), ["500"]),
        (refused(401, f"no bot {TOKEN} {SECRET} here\x1b[2J\nx"), ["no bot *** *** here"]),
        ((200, {"ok": False, "description": "odd"}), ["odd"]),
        (answers(502, b"<html>Bad Gateway</html>"), ["502", "no answer of a Bot API"]),
        (answers(200, b"welcome to the hotel wifi"), ["no answer of a Bot API"]),
        (answers(200, b"[" * 50_000), ["no answer of a Bot API"]),
        (answers(200, b'{"ok": true, "x": "' + b"y" * 500_000), ["no answer of a Bot API"]),
        (answers(200, b"[]"), ["no answer of a Bot API"]),
        (answers(429, b'{"ok": false, "parameters": 7}'), ["429"]),
        (answers(204, b""), ["no answer of a Bot API"]),
        (cut, ["not sent"]),
        (half, ["not sent"]),
    ],
)
def test_a_refusal_is_told(api: BotApi, answer: Any, words: list[str]) -> None:
    """Exit code 1, one line with what the server says and what to do; no second try, no token."""
    api.script.append(answer)
    fails(api, *words)
    assert len(api.messages) == 1


def test_the_servers_own_refusals(api: BotApi) -> None:
    """A wrong token and a wrong chat, as the server finds them."""
    fails(api, "401 Unauthorized", TELEGRAM_BOT_TOKEN="987654321:AAE-another_token")
    fails(api, "chat not found", TELEGRAM_CHAT_ID="42")


@pytest.mark.shows("I46")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(api: BotApi, code: int) -> None:
    """The address holds the token, so it goes nowhere else."""
    with bot_api() as other:
        elsewhere = f"{other.url}/bot{TOKEN}/sendMessage"
        api.script.append(answers(code, b"", Location=elsewhere))
        fails(api, f"{code}")
        assert other.messages == []


def test_a_server_that_does_not_answer_in_time(api: BotApi) -> None:
    """Silence and a trickle both end with the time limit, counted over the whole call."""

    def silence(_: BaseHTTPRequestHandler) -> None:
        api.over.wait()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not api.over.wait(0.1):
            handler.wfile.write(b" ")

    for slow in (silence, trickle):
        api.script.append(slow)
        fails(api, "no answer within 0.5 s", args=("--timeout", "0.5"))


def test_nobody_is_there(api: BotApi) -> None:
    """A closed port and a server that speaks another language: one line."""
    with bot_api() as gone:
        url = gone.url
    fails(api, "not sent", url, TELEGRAM_API=url)
    fails(api, "not sent", TELEGRAM_API=api.url.replace("http:", "https:"))
    assert api.messages == []


@pytest.mark.shows("I46")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TELEGRAM_BOT_TOKEN", ""),
        ("TELEGRAM_BOT_TOKEN", f"{TOKEN}\r\nX: 1"),
        ("TELEGRAM_BOT_TOKEN", f"{TOKEN}/../x"),
        ("TELEGRAM_CHAT_ID", ""),
        ("TELEGRAM_CHAT_ID", "my friend"),
        ("TELEGRAM_API", "file:///etc/passwd#"),
        ("TELEGRAM_API", "localhost:8081"),
        ("TELEGRAM_API", "http://user:pass@localhost"),
    ],
)
def test_wrong_settings(api: BotApi, name: str, value: str) -> None:
    """Which variable and what it must be; neither the token nor anything else is sent."""
    fails(api, name, **{name: value})
    assert api.messages == []


def test_too_many_requests_are_waited_for_once(api: BotApi, telegram: ModuleType) -> None:
    """429: as long as the server says, then once more; a second no is told."""
    slept: list[float] = []
    bot = telegram.bot(api.env)
    assert SECRET not in repr(bot)
    busy = refused(429, "Too Many Requests: retry after 7", retry_after=7)
    api.script += [busy]
    telegram.send(bot, "first", 10.0, slept.append)
    assert (slept, api.texts) == ([7], ["first", "first"])
    api.script += [busy, busy, sent()]
    with pytest.raises(Exception, match="429 Too Many Requests: retry after 7; it asks to wait 7 s"):
        telegram.send(bot, "second", 10.0, slept.append)
    assert (slept, len(api.messages)) == ([7, 7], 4)


@pytest.mark.parametrize("wait", [0, -5, 31, 10**30, "soon", None, 2.5])
def test_a_wait_that_is_none(api: BotApi, telegram: ModuleType, wait: Any) -> None:
    """A strange or long wait is not waited for; the message is given up."""
    slept: list[float] = []
    body = {"ok": False, "error_code": 429, "description": "x", "parameters": {"retry_after": wait}}
    api.script.append(answers(429, json.dumps(body).encode()))
    with pytest.raises(Exception, match="not sent: 429"):
        telegram.send(telegram.bot(api.env), "x", 10.0, slept.append)
    assert slept == []
