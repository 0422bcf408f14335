"""Finds secrets that are told in plain English, and says which words can be one (I46)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .secret_names import placeholder

if TYPE_CHECKING:
    from .secret_names import Strength

MAX_LOOK: Final = 128  # characters of a value that are looked at; a secret is then removed whole
_PROSE: Final = re.compile(
    r"(?:[ \t](?:provided|given|supplied|used|below|here|value|found|again|in use))?"
    r"(?:[ \t](?:for|to|of|on|at|in|from|we use|für|zum|de|du|pour|para)(?:[ \t][\w.@/'-]{1,30}){1,4}?)?"
    r"[ \t\n]{0,2}(?:(?:[ \t]?\([^()\n]{1,40}\))?[:=]|\b(?:is|was|are|will be|shall be|should be|set to|changed to|reset to|equals|being|to|lautet|ist|est|es)\b:?)[ \t]{1,3}"
    r"(?:(?:now|still|currently|just|set to|changed to|reset to|updated to|literally|simply|probably|always)[ \t]){0,2}(?P<quote>\*\*[\"'`]?|[\"'`“\u2018«<]{0,2})"
)
_IN_CODE: Final = frozenset("[],;{}<>/\\|+&@#$%^~")
BARE: Final = re.compile(r"[^\s\"'`\\]+")
CALL: Final = re.compile(r"[A-Za-z_][\w.:]{0,60}[(\[]")
TYPE: Final = re.compile(
    r"(?i)str|string|bytes|int|integer|float|number|bool|boolean|any|object|dict|list|unknown|never|text|hidden|"
    r"required|optional|password|passwd|passphrase|secret|token|key|apikey|pin|char|varchar|void|self|ref|data|func|"
    r"interface|json|and|or|is|the|a|an|in|to|for|not|basic|bearer|oauth|oauth2|oidc|saml|ldap|jwt|digest|ntlm|"
    r"kerberos|trust|md5|peer|ident|session|cookie|user|admin|name|value|field|input|email|username|plain|file|stdin|"
    r"flag|option|argument|prompt|should|will|would|can|must|and|auto|manual|default|local|global|public|private|"
    r"enabled|disabled|inherit|exist|exists|missing|invalid|valid|expired|wrong|correct|incorrect|set|unset|with|"
    r"from|via|if|when|that|which|it|as|on|at|by|of|be|are|was|has|have|no|new|old|same|different|unique|random|read|write|none|all|"
    r"empty|secure|safe|strong|weak|hashed|encrypted|stored|rotated|used|given|provided|passed|sent|needed|changed"
)
PATH: Final = re.compile(
    r"(?:~|\.{1,2})?/[\w.@-]{1,60}/|\./|\.\./|~/|[A-Za-z]:\\|[a-z][a-z0-9+.-]{1,20}://|[\w-]{1,40}\.(?:py|ts|js|json|ya?ml|md|txt|env|toml|ini|go|rs|java|pem|key|crt|com|org|io|net|dev)$"
)
_TO_NAME: Final = re.compile(
    r"(?:(?:is|as|was)[ ](?:(?:the|my|our|your|a|its|their)[ ])?|\((?:the|my|our|your)[ ])(?:[\w-]{1,20}[ ]){0,2}"
)
_WORD_QUOTED: Final = re.compile(r"[^\s\"'`“”\u2018\u2019«»<>]+")
SURE: Final = re.compile(r"(?=[^0-9]{0,80}[0-9])(?=[^A-Za-z]{0,80}[A-Za-z])|[^\s\w.,:;'\"/()<>-]")


def in_prose(text: str, start: int, end: int, name: str, level: Strength) -> tuple[int, int] | None:
    """``the password for staging is X``, or ``X is the password``."""
    if level == "weak" or name.lower().endswith(("cookie", "pass")) or text[end : end + 1] in _IN_CODE:
        return None
    found = _PROSE.match(text, end)
    if found is not None:
        quoted = bool(found["quote"])
        value = run(_WORD_QUOTED if quoted else BARE, text, found.end(), found.end() + MAX_LOOK).rstrip(
            ".,;:)!?*"
        )
        if _told(value, name, level, quoted=quoted):
            return found.end(), found.end() + len(value)
    before = text[max(0, start - 120) : start]
    word = _word_before(before)
    if word is not None and _told(before[word[0] : word[1]], name, level, quoted=False):
        return start - len(before) + word[0], start - len(before) + word[1]
    return None


def _word_before(before: str) -> tuple[int, int] | None:
    """Where the X of ``X is the`` and ``X (the wifi`` stands in what precedes a name."""
    cut = max(before.rfind(verb) for verb in (" is ", " as ", " was ", " ("))
    if cut < 0 or _TO_NAME.fullmatch(before, cut + 1) is None:
        return None
    end = len(before[:cut].rstrip("\"'`"))
    return max(before.rfind(border, 0, end) for border in " \n\t\"'`(") + 1, end


def _told(value: str, name: str, level: Strength, *, quoted: bool) -> bool:
    """Whether a word in plain English is a secret."""
    if (
        placeholder(value)
        or TYPE.fullmatch(value)
        or CALL.match(value)
        or PATH.match(value)
        or len(value) < 4
        or value[0] in "([{"
    ):
        return False
    if value.isdigit():
        return is_number(name, value)
    if value[0].isdigit() and value.partition("/")[2].isalpha():
        return False  # so many a minute
    sure = len(value) >= 5 and SURE.search(value) is not None
    if level == "strong":
        return sure or (quoted and " " not in value) or value.count("-") >= 3
    return sure and len(value) >= 8


def is_number(name: str, value: str) -> bool:
    """``MAX_RETRIES=4096`` counts something; ``password: 123456`` and ``pin: 4821`` don't."""
    if name.lower().endswith(("password", "passwd", "passphrase", "pwd", "passcode", "pass")):
        return len(value) >= 3
    return len(value) >= 12 or (len(value) >= 4 and name.lower().endswith(("pin", "otp")))


def run(pattern: re.Pattern[str], text: str, start: int, end: int) -> str:
    found = pattern.match(text, start, end)
    return found[0] if found else ""
