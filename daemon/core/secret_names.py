"""Secrets known by the name they are assigned to: ``.env``, JSON, YAML, INI, code, query strings (I46).

A name is read by its words (``openaiApiKey`` is openai, api, key). The stricter the notation, the less a
value has to look like a secret: ``export X_KEY=…`` always goes, ``key = …`` in code only if it looks random.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_LOOK = 128  # characters of a value that a decision is made on; then the whole value goes
MAX_NAME = 64  # characters looked at before and after the telling word

_PASSWORDS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials"}
)
_QUALIFIER = re.compile(
    r"access|account|admin|anthropic|api|app|auth|bearer|bot|client|db|deploy|encryption|github|gitlab|hf|id|"
    r"license|master|npm|openai|personal|private|refresh|secret|service|session|shared|signing|slack|ssh|sudo|"
    r"user|webhook"
)
_HARMLESS = re.compile(
    r"(?i)key(?:board|bind|code|frame|map|note|point|press|ring|space|stroke|up|down|word)|tokeni[sz]|"
    r"(?:mon|tur|hot|don|hoc)key|public_?key"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TELLING = re.compile(r"(?i)key|token|secret|passw|passphrase|credential|pwd")
_ASSIGNED = re.compile(
    r"(?:key|token|secret|passw|passphrase|credential|pwd)(?P<tail>[A-Za-z0-9_.-]{0,64}+)"
    r"(?P<closed>\\{0,4}[\"']?\]?)"
    r"(?P<sep>(?:[ \t]{0,4}:[ \t]{0,4}[A-Za-z][A-Za-z0-9_.\[\]| ]{0,40}?)?[ \t]{0,16}=[ \t]{0,16}(?![=>~])"
    r"|[ \t]{0,16}(?:=>|:=|==|:)[ \t]{0,16}|[ \t]{1,4})"
    r"(?P<quote>\\{0,4}[\"'`])?",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"[A-Za-z0-9_.-]*$")
# where a line of settings begins: line numbers of a read tool, diff signs, list dashes, shell keywords
_LINE_START = re.compile(
    r"(?:^|\n|\\n)[ \t]*(?:[0-9]{1,7}[|:\t→ ]+)?[ \t+>-]*(?:(?:export|set|ENV|ARG|declare -x)[ \t]+)?[\"']?$"
)
_BARE = re.compile(r"[^\s\"'`\\]++")
_DELIMITED = re.compile(r"[^\s\"'`\\,;&)}\]<>]++")
_PLACEHOLDER = re.compile(
    r"(?i)\[redacted:|\$[a-z_{(]|%[a-z_({]|<[^>]*>?$|\{\{|f?\{[\w.]*\}$|\*+$|\.\.\.|…|x{3,}$|your[-_ ]|"
    r"process\.env|os\.(?:environ|getenv)|env[.\[(]|secrets\.|(?:true|false|null|none|nil|undefined|yes|no|on|off)$"
)
_CODE = re.compile(r"[()\[\]{}]|::|->|=>|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^\W+$")
_LABEL = re.compile(r"(?i)\b(?:your|enter|must|invalid|required|forgot|reset|confirm|the|is|for)\b")
_TYPE = re.compile(
    r"str|string|bytes|int|integer|float|number|bool|boolean|any|object|dict|list|unknown|never|text|hidden|"
    r"required|optional|password|passwd|secret|token|key|char|varchar|void|self|ref|data|func|interface|json|"
    r"and|or|is|the|a|an|in|to|for|not"
)


def mark(kind: str) -> str:
    """What stands in a secret's place. Kinds hold no telling word, so a mark never looks like a name."""
    return f"[redacted:{kind}]"


def placeholder(value: str) -> bool:
    """Whether a value stands for a secret without being one: empty, ``$X``, ``<key>``, ``[redacted:…]``."""
    return not value or _PLACEHOLDER.match(value) is not None


def is_secret_name(name: str) -> bool:
    """Whether whatever stands under this key of a JSON object is a secret."""
    return strength(name) == "strong" or _shouted(name) or name.lower().endswith("token")


def strength(name: str) -> str:
    """``strong`` for a name that holds a secret, ``weak`` for one that may, else empty."""
    if not _TELLING.search(name) or _HARMLESS.search(name) or name in {"PWD", "OLDPWD"}:
        return ""
    words = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2] or name)]
    last = words[-1] if words else ""
    if last in _PASSWORDS or last.endswith(
        ("password", "passwd", "secret", "apikey", "accesskey", "authtoken")
    ):
        return "strong"
    if last in {"key", "token"} and len(words) > 1 and _QUALIFIER.fullmatch(words[-2]):
        return "strong"
    return "weak"


def _shouted(name: str) -> bool:
    """An environment variable's name with a telling word."""
    return name.isupper() and strength(name) != ""


def redact_named(text: str) -> str:
    """``text`` with the values of telling names replaced."""
    kept: list[str] = []
    done = at = 0
    while found := _ASSIGNED.search(text, at):
        at = found.end()
        span = _secret_span(text, found, done)
        if span is not None:
            kept += [text[done : span[0]], mark("named")]
            done = at = span[1]
    return "".join([*kept, text[done:]]) if kept else text


def _secret_span(text: str, found: re.Match[str], floor: int) -> tuple[int, int] | None:
    """Where the value lies, if it is a secret."""
    before = text[max(floor, found.start() - MAX_NAME) : found.start()]
    if before.endswith("[redacted:"):
        return None
    prefix = _BEFORE.search(before)
    head = prefix[0] if prefix else ""
    context = text[max(0, found.start() - len(head) - 40) : found.start() - len(head)]
    if context.endswith("\\") and head[:1] in {"n", "r", "t"}:  # an escaped line end in JSON text
        context, head = context + head[0], head[1:]
    name = (head + text[found.start() : found.end("tail")]).strip("-.")
    level = strength(name)
    if not level:
        return None
    quote, sep, start = found["quote"], found["sep"], found.end()
    tight = sep == "=" and not found["closed"]
    shouted = tight and _shouted(name)
    query = context.endswith(("?", "&"))
    own_line = bool(_LINE_START.search(context))
    strict = shouted or (tight and level == "strong" and (query or own_line))
    ending = _closer(quote) if quote else _BARE if strict and not query else _DELIMITED
    trailing = ",;)}]" if strict and not quote else ""
    value = _run(ending, text, start, start + MAX_LOOK).rstrip(trailing)
    if placeholder(value) or value.lower() == name.lower() or _is_plain_number(name, value):
        return None
    if quote:
        secret = strict or _quoted(level, value, sep)
    elif not sep.strip():
        secret = head.startswith("--") and level == "strong" and _has_symbol(value)
    elif strict:
        secret = not _CODE.search(value) or (shouted and "(" not in value)
    else:
        following = text[start + len(value) : start + len(value) + 1]
        secret = "==" not in sep and _unquoted(level, value, sep, following, own_line=own_line)
    if not secret:
        return None
    return start, start + len(_run(ending, text, start, len(text)).rstrip(trailing))


def _run(pattern: re.Pattern[str], text: str, start: int, end: int) -> str:
    found = pattern.match(text, start, end)
    return found[0] if found else ""


def _quoted(level: str, value: str, sep: str) -> bool:
    if level == "weak":
        return looks_random(value)
    # "password": "Enter your password" is a label
    return not (":" in sep and " " in value and _LABEL.search(value))


def _unquoted(level: str, value: str, sep: str, following: str, *, own_line: bool) -> bool:
    if _CODE.search(value) or following in {"(", "[", "{", "<"}:
        return False
    if level == "weak":
        return looks_random(value)
    if _has_symbol(value):
        return True
    # YAML, or an annotation: a type is a known or capitalised word and goes on with , or =
    plain = own_line and ":" in sep and following in {"", "\n", "\r"}
    return plain and value.islower() and not _TYPE.fullmatch(value)


def _has_symbol(value: str) -> bool:
    """Not a name as code would have it."""
    return len(value) >= 6 and (not value.isidentifier() or bool(re.search("[0-9]", value)))


def looks_random(value: str) -> bool:
    """No words, path or number: a run of eight or more letters and digits, mixed."""
    if len(value) < 12 or not re.fullmatch(r"[A-Za-z0-9+/=_.~-]+", value):
        return False
    return any(
        len(piece) >= 8 and re.search("[0-9]", piece) and re.search("[A-Za-z]", piece)
        for piece in re.split(r"[-_.~/]", value)
    )


def _is_plain_number(name: str, value: str) -> bool:
    """``MAX_TOKENS=4096`` and ``password_min_length: 8`` count something; ``password: 123456`` doesn't."""
    return (
        value.isdigit()
        and len(value) < 12
        and not name.lower().endswith(("password", "passwd", "passphrase", "pwd"))
    )


@lru_cache(maxsize=32)
def _closer(quote: str) -> re.Pattern[str]:
    """What lies before the closing ``quote`` or the line's end; an escaped quote is closed by its like."""
    if len(quote) == 1:
        return re.compile(rf"(?:[^{quote}\\\n]|\\[^\n])*+")
    return re.compile(rf"(?:(?!{re.escape(quote)})[^\n])*+")
