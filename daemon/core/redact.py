"""Secrets out of text, before it reaches a prompt, a log, a verdict file or the database (I46).

The shapes of well-known tokens are here; values known by the name they are assigned to are in
``core.secret_names``. Code that only *mentions* a secret stays readable: ``password: str``, ``$TOKEN``,
``key=lambda x: x``, git hashes. In doubt a value under a telling name goes.

Time is linear on any input: patterns start with a literal and use bounded or possessive repeats, and scans by
hand have a bound. A result is a fixed point: ``redact(redact(t)) == redact(t)``.
"""

from __future__ import annotations

import base64
import binascii
import re

from daemon.core.secret_names import is_secret_name, mark, placeholder, redact_named

MAX_DEPTH = 100  # of nested JSON
MAX_PASSES = 3  # one is enough for all that fuzzing found; the others only prove it

_RUN = r"[A-Za-z0-9_-]"
_HAS_DIGIT = r"(?=[A-Za-z_-]{0,60}+[0-9])"  # words joined by hyphens are no key
# kind, literal starts, what follows them
_TOKENS = (
    ("anthropic", ("sk-ant-",), _RUN + "{10,}+"),
    ("openai", ("sk-",), _HAS_DIGIT + _RUN + "{20,}+"),
    ("stripe", ("sk_live_", "rk_live_", "sk_test_", "rk_test_"), r"[A-Za-z0-9]{16,}+"),
    ("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}+"),
    ("github", ("github_pat_",), r"[A-Za-z0-9_]{20,}+"),
    ("gitlab", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"), _RUN + "{16,}+"),
    ("slack", ("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), r"[A-Za-z0-9-]{10,}+"),
    ("slack", ("hooks.slack.com/services/",), r"[A-Za-z0-9/]{16,}+"),
    ("aws", ("AKIA", "ASIA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google", ("AIza",), _RUN + "{30,}+"),
    ("google", ("ya29.", "GOCSPX-"), _RUN + "{20,}+"),
    ("npm", ("npm_",), r"[A-Za-z0-9]{30,}+"),
    ("pypi", ("pypi-",), _HAS_DIGIT + _RUN + "{32,}+"),
    ("huggingface", ("hf_",), r"[A-Za-z0-9]{20,}+"),
    ("groq", ("gsk_",), r"[A-Za-z0-9]{20,}+"),
    ("xai", ("xai-",), _HAS_DIGIT + _RUN + "{20,}+"),
    ("digitalocean", ("dop_v1_",), r"[a-f0-9]{32,}+"),
    ("sendgrid", ("SG.",), r"[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,}+"),
)


def _bordered(literal: str, run: str, rest: str) -> re.Pattern[str]:
    """``literal`` where no word of class ``run`` goes on, then ``rest``.

    The border is checked after the literal, so that ``re`` can search for the literal. In JSON text a token
    may follow the n of an escaped line end.
    """
    start = re.escape(literal)
    return re.compile(rf"{start}(?:(?<!{run}{start})|(?<=\\[nrt]{start})){rest}")


_TOKEN_PATTERNS = tuple(
    (mark(kind), literal, _bordered(literal, "[A-Za-z0-9]", rest))
    for kind, literals, rest in _TOKENS
    for literal in literals
)
# this border keeps a run without a dot from being scanned again from every "eyJ" in it
_JWT = _bordered("eyJ", _RUN, r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?+")
_TELEGRAM = re.compile(r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{32,}+")
_USERINFO = re.compile(
    r"://(?:(?P<user>[^\s/:@'\"<>\\]{0,256}+):(?P<password>[^\s/'\"<>\\]{1,256})"
    rf"|(?P<token>{_HAS_DIGIT}{_RUN}{{20,256}}+))@"
)
_HEADER = re.compile(
    r"authorization[\"'\]\\]{0,6}[ \t]{0,4}[:=][ \t]{0,4}[\"'\\]{0,5}"
    r"(?P<scheme>(?:bearer|basic|token|digest|apikey)[ \t]{1,4})?+(?P<value>[^\s\"'`\\,;<>]{4,}+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"[Bb](?:earer|EARER)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{8,}+)")
_BASIC = re.compile(r"[Bb](?:asic|ASIC)[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{6,1024}+={0,2})")
_PEM_MARK = re.compile(r"-----(?P<which>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# lines of base64 between white space, quotes or escaped line ends (whose n reads as base64)
_PEM_GAP = r"[\s\\\"'+,>|#*]*+"
_PEM_BODY = re.compile(
    rf"(?:{_PEM_GAP}(?:Proc-Type|DEK-Info|Version|Comment|n?Proc-Type|nDEK-Info)[^\n\\]{{0,200}}+)*+"
    rf"(?:{_PEM_GAP}[A-Za-z0-9/+=]{{1,15}}+(?=[\s\\])){{0,3}}+(?:{_PEM_GAP}[A-Za-z0-9/+=]{{16,}}+)++"
)
_PEM_TAIL = re.compile(r"[A-Za-z0-9/+=\s\\\"',>|#*]*")


def redact(text: str) -> str:
    """``text`` with every secret replaced by ``[redacted:<kind>]``."""
    for _ in range(MAX_PASSES):
        clean = redact_named(_headers(_shapes(_private_keys(text))))
        if clean == text:
            break
        text = clean
    return text


def redact_value(value: object) -> object:
    """A JSON value with every text redacted; what stands under a secret's name is replaced whole."""
    return _nested(value, 0)


def _nested(value: object, depth: int) -> object:
    if isinstance(value, str):
        return redact(value)
    if depth >= MAX_DEPTH and isinstance(value, dict | list | tuple):
        return mark("depth")
    if isinstance(value, dict):
        return {
            redact(key) if isinstance(key, str) else key: mark("named")
            if isinstance(key, str) and is_secret_name(key) and _holds_something(inner)
            else _nested(inner, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_nested(inner, depth + 1) for inner in value]
    return value


def _holds_something(value: object) -> bool:
    if isinstance(value, str):
        return not placeholder(value)
    return value is not None and not isinstance(value, bool) and value not in ({}, [])


def _shapes(text: str) -> str:
    for replacement, literal, pattern in _TOKEN_PATTERNS:
        if literal in text:
            text = pattern.sub(replacement, text)
    if "eyJ" in text:
        text = _JWT.sub(mark("jwt"), text)
    if ":AA" in text:
        text = _TELEGRAM.sub(":" + mark("telegram"), text)
    if "://" in text:
        text = _USERINFO.sub(_userinfo, text)
    return text


def _userinfo(match: re.Match[str]) -> str:
    if match["token"]:
        return f"://{mark('url')}@"
    if placeholder(match["password"]):
        return match[0]
    return f"://{match['user']}:{mark('url')}@"


def _headers(text: str) -> str:
    text = _HEADER.sub(_header, text)
    text = _BEARER.sub(lambda m: _value(m, "bearer") if re.search("[0-9]", m["value"]) else m[0], text)
    return _BASIC.sub(lambda m: _value(m, "basic") if _is_userpass(m["value"]) else m[0], text)


def _header(match: re.Match[str]) -> str:
    value = match["value"]
    if placeholder(value) or not (match["scheme"] or re.search("[0-9]", value)):
        return match[0]
    return _value(match, (match["scheme"] or "header").strip().lower())


def _value(match: re.Match[str], kind: str) -> str:
    return match[0][: match.start("value") - match.start()] + mark(kind if kind != "token" else "header")


def _is_userpass(value: str) -> bool:
    """``Basic training`` is English; the header's value is base64 of ``user:password``."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False


def _private_keys(text: str) -> str:
    """Keys between their marks, and halves of one whose other mark was cut off."""
    marks = list(_PEM_MARK.finditer(text)) if "PRIVATE KEY" in text else []
    kept: list[str] = []
    done = 0
    for number, found in enumerate(marks):
        if found.start() < done:
            continue
        if found["which"] == "BEGIN":
            body = _PEM_BODY.match(text, found.end())
            if body is None:
                continue
            start, stop = found.start(), body.end()
            following = marks[number + 1] if number + 1 < len(marks) else None
            if (
                following
                and following.start() - stop < 200
                and _PEM_TAIL.fullmatch(text[stop : following.start()])
                and following["which"] == "END"
            ):
                stop = following.end()
        else:
            floor = max(done, found.start() - 8192, marks[number - 1].end() if number else 0)
            body = _PEM_BODY.match(text[floor : found.start()][::-1])
            if body is None:
                continue
            start, stop = found.start() - body.end(), found.end()
        kept += [text[done:start], mark("private")]
        done = stop
    return "".join([*kept, text[done:]])
