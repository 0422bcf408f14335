"""Names that hold a secret, and values that only stand for one (I46).

A name is split into words: ``openaiApiKey`` is openai, api, key. ``strength`` says how sure the name is;
``values`` decides by it, by the notation and by the value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from .tables import pattern, words

Strength = Literal["", "weak", "fair", "strong"]

STEMS: Final = tuple(stem.encode() for stem in words("names.stems"))
SHORT_STEMS: Final = tuple(stem.encode() for stem in words("names.short_stems"))
_SURE: Final = frozenset(words("names.sure"))
_SURE_ENDINGS: Final = words("names.sure_endings")
_FAIR: Final = frozenset(words("names.fair"))
_TRIED: Final = frozenset(words("names.tried"))
_NO_PASS: Final = frozenset(words("names.no_pass"))
_PLAIN_KEY: Final = frozenset(words("names.plain_key"))
_QUALIFIER: Final = frozenset(words("names.qualifier"))
_ABOUT: Final = frozenset(words("names.about"))
_SUFFIXES: Final = frozenset(words("names.suffixes"))
_HARMLESS: Final = frozenset(words("names.harmless"))
_TELLING: Final = frozenset({"password", "passwd", "secret", "token", "passphrase", "pwd", "key"})
_WORDS: Final = pattern("names.words")
_PLACEHOLDER: Final = pattern("names.placeholder")
_MENTION: Final = pattern("names.mention")
SURE: Final = pattern("names.sure_value")  # no plain word: letters and digits, or a special character


def placeholder(value: str) -> bool:
    """Says whether a value stands for a secret without being one: empty, ``$X``, ``<key>``, ``[redacted:…]``,
    ``YOUR_API_KEY``.
    """
    if not value or _PLACEHOLDER.match(value) is not None:
        return True
    letters = value.replace("_", "").replace("-", "")
    return letters.isalpha() and value.isupper() and bool(_MENTION.search(value))


def harmless(value: str) -> bool:
    """Says whether a password in a command or an address only stands for one."""
    return placeholder(value) or value.lower() in _HARMLESS


def is_secret_name(name: str) -> bool:
    """Says whether the value under this key of a JSON object is a secret."""
    level = strength(name)
    return level == "strong" or (level == "fair" and (name.isupper() or name.lower().endswith("token")))


@lru_cache(maxsize=8192)
def strength(name: str) -> Strength:
    """``strong`` for a name that holds a secret, ``fair`` for one that mostly does, ``weak`` for one that
    may, else empty.
    """
    if name in {"PWD", "OLDPWD"}:
        return ""
    parts = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2] or name)]
    while len(parts) > 1 and (parts[-1].isdigit() or parts[-1] in _SUFFIXES):
        parts.pop()
    if not parts or parts[0] in {"no", "ask", "without", "skip", "utf"} or name == "PASS":
        return ""
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last in _ABOUT:
        return "fair" if last == "id" and before == "secret" else ""
    if last in _SURE or last.endswith(_SURE_ENDINGS) or (last.endswith("pw") and len(last) > 4):
        return "strong"
    if last in {"key", "keys", "token", "tokens"}:
        if before in _PLAIN_KEY:
            return ""
        if before in _QUALIFIER and last in {"key", "token"}:
            return "strong"
        return "fair" if before or last == "token" else "weak"
    if last == "pass" and before and before not in _TRIED:
        return "strong"
    if last in _FAIR or (last.endswith(("pass", "token")) and last not in _NO_PASS):
        return "fair"
    return "weak" if _TELLING.intersection(parts) else ""


def looks_random(value: str) -> bool:
    """Says whether it is no word, path or number: eight or more letters and digits in a row, mixed."""
    if len(value) < 12 or not re.fullmatch(r"[A-Za-z0-9+/=_.~-]+", value):
        return False
    return any(len(piece) >= 8 and mixed(piece) for piece in re.split(r"[-_.~/]", value))


def mixed(value: str) -> bool:
    """Says whether it has letters and digits."""
    return re.search("[0-9]", value) is not None and re.search("[A-Za-z]", value) is not None
