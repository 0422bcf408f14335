"""Which names hold a secret, and which values can be one (I46).

A name is split into words: ``openaiApiKey`` is openai, api, key. ``strength`` says how sure the name is;
``daemon.core.secret_values`` decides by it, by the notation and by the value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

Strength = Literal["", "weak", "fair", "strong"]

# what a telling name holds, in lower case; of SHORT_STEMS no other letter of the same word stands beside it
STEMS: Final = (
    b"pass", b"pwd", b"secret", b"token", b"key", b"cred", b"auth", b"salt", b"cookie", b"sessid", b"signature",
    b"bearer", b"mnemonic",
)  # fmt: skip
SHORT_STEMS: Final = (
    b"pin",
    b"sig",
    b"sas",
    b"otp",
    b"pat",
    b"pw",
    b"sid",
    b"jwt",
    b"dsn",
    b"psk",
    b"seed",
    b"code",
)
_PASSWORDS = frozenset({
    "password", "passwords", "passwd", "passphrase", "passcode", "passwort", "pwd", "pswd", "passwrd", "secret",
    "secrets", "credential", "credentials", "creds", "psk", "mnemonic", "userpass", "dbpass", "rootpw", "rootpass",
    "storepass", "keypass", "pw", "masterauth", "requirepass", "passkey", "privkey",
})  # fmt: skip
_TRIED = frozenset(
    {"first", "second", "next", "last", "single", "multi", "render", "test", "tests", "all", "did", "can"}
)
_NO_PASS = frozenset({"bypass", "compass", "trespass", "surpass", "overpass", "encompass", "onepass"})
_ENDINGS = (
    "password",
    "passwd",
    "secret",
    "apikey",
    "accesskey",
    "authtoken",
    "passphrase",
    "secretkey",
    "privatekey",
)
_FAIR = frozenset({
    "pass", "pin", "auth", "salt", "cookie", "sid", "sessid", "phpsessid", "jsessionid",
    "signature", "sig", "jwt", "bearer", "token", "dsn", "otp", "totp", "seed", "pat", "sas", "csrf", "cred",
    "pepper", "hmac", "license", "webhook", "passw", "key", "keys", "tokens",
})  # fmt: skip
_QUALIFIER = re.compile(
    r"access|account|admin|age|ansible|anthropic|api|app|application|auth|azure|bearer|bot|bucket|cdn|ci|client|cloud|"
    r"consumer|crypto|csrf|db|deploy|deployment|device|encryption|encrypt|git|github|gitlab|hf|hmac|host|id|ingest|"
    r"instrumentation|integration|jwt|license|login|machine|mail|master|npm|oauth|openai|personal|plugin|private|prod|"
    r"production|project|proxy|push|read|recovery|refresh|registry|registration|reset|root|runner|sa|secret|security|"
    r"send|sendgrid|server|service|session|shared|sign|signing|slack|ssh|ssl|storage|stripe|subscription|sudo|team|"
    r"test|tls|twilio|unlock|upload|user|vault|verification|verify|vpn|web|webhook|wifi|worker|workspace|write|xsrf"
)
# before "key" or "token" they say that it finds or counts something
_PLAIN_KEY = frozenset({
    "sort", "primary", "foreign", "partition", "cache", "range", "hash", "group", "lookup", "index", "unique", "row",
    "map", "dict", "object", "translation", "i18n", "hot", "short", "public", "registry", "query", "event", "routing",
    "shard", "join", "natural", "candidate", "order", "search", "s3", "menu", "arrow", "tab", "enter", "escape", "meta",
    "ctrl", "control", "shift", "alt", "home", "next", "prev", "first", "last", "message", "locale", "label", "field",
    "column", "config", "setting", "settings", "property", "by", "data", "json", "yaml", "react", "item", "list",
    "feature", "flag", "metric", "surrogate", "composite", "answer", "dedupe", "dedup", "idempotency", "storage",
    "state", "store", "trace", "document", "file", "path", "of", "per", "max", "min", "num", "total", "prompt",
    "completion", "input", "output", "eos", "bos", "pad", "unk", "stop", "start", "end", "special", "mask", "sep",
    "current", "used", "cached", "expected", "page", "continuation", "cursor", "cancellation", "context", "lock",
})  # fmt: skip
# as the last word they say that the value is about a secret
_ABOUT = frozenset({
    "file", "files", "path", "paths", "dir", "url", "uri", "endpoint", "name", "names", "id", "ids", "type", "types",
    "length", "len", "min", "max", "count", "limit", "limits", "size", "expiry", "expires", "expiration", "ttl",
    "timeout", "age", "policy", "field", "label", "hint", "prompt", "placeholder", "regex", "pattern", "rule", "rules",
    "format", "version", "algorithm", "alg", "algo", "method", "methods", "mode", "header", "headers", "prefix",
    "suffix", "enabled", "disabled", "required", "optional", "error", "errors", "message", "status", "state", "ref",
    "provider", "strategy", "usage", "budget", "rate", "used", "left", "at", "by", "in", "date", "time", "env", "var",
    "variable", "scope", "scopes", "class", "schema", "column", "index", "store", "manager", "service", "lifetime",
    "validator", "validation", "form", "input", "page", "link", "reset", "strength", "set", "valid", "changed",
    "rotation", "source", "backend", "domain", "host", "port", "user", "username", "role", "issuer", "audience",
    "callback", "redirect", "map", "list", "spec", "test", "tests", "check", "checks", "rounds", "iterations", "bits",
    "fingerprint", "thumbprint", "digest", "arn", "region", "lock", "handler", "func", "fn", "view",
    "title", "text", "description", "doc", "docs", "help", "icon", "button", "width", "height",
})  # fmt: skip
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PLACEHOLDER = re.compile(
    r"(?i)\[redacted:|\$[a-z_{(]|%[a-z_({]|<[^>]{0,200}>?$|\{\{|f?\{[\w.]{0,200}\}$|\*{3,}|\*+$|\.\.\.|…|•|x{3,}|"
    r"\[[a-z]|\#\{|@[a-z]+[.({@]|(?:your|my|the|some|insert|enter|replace|put|add|paste)[-_ ](?:[a-z]|$)|yourpass|yourtoken|"
    r"change[-_]?me|changeit|placeholder|dummy|todo\b|fixme\b|redacted|removed|hidden|masked|omitted|censored|sample|"
    r"process\.env|import\.meta|os\.(?:environ|getenv)|env[.\[(:]|secrets?[.:]|vault[:(]|var\.|"
    r"[^\s]{0,60}?(?:\*{4}|[xX]{6}|\.\.\.$|…)|"
    r"ref\+|op://|arn:|!(?:ref|sub|vault|secret)|enc\[|file:|"
    r"(?:true|false|null|none|nil|undefined|yes|no|on|off|empty|unset|required|optional|example|test|foo|bar|foobar|"
    r"string|n/a|tbd|\?+|-+|_+)$"
)
_MENTION = re.compile(r"(?i)pass|token|secret|key|credential|example|value|here|placeholder")


def mark(kind: str) -> str:
    """The text that replaces a secret. No kind holds a word such as "key", so no mark is taken for a name."""
    return f"[redacted:{kind}]"


def placeholder(value: str) -> bool:
    """Whether a value stands for a secret without being one: empty, ``$X``, ``<key>``, ``[redacted:…]``,
    ``YOUR_API_KEY``.
    """
    if not value or _PLACEHOLDER.match(value) is not None:
        return True
    return (
        value.replace("_", "").replace("-", "").isalpha() and value.isupper() and bool(_MENTION.search(value))
    )


def is_secret_name(name: str) -> bool:
    """Whether the value under this key of a JSON object is a secret."""
    level = strength(name)
    return level == "strong" or (level == "fair" and (name.isupper() or name.lower().endswith("token")))


@lru_cache(maxsize=8192)
def strength(name: str) -> Strength:
    """``strong`` for a name that holds a secret, ``fair`` for one that mostly does, ``weak`` for one that may,
    else empty.
    """
    if name in {"PWD", "OLDPWD"}:
        return ""
    words = [word.lower() for word in _WORDS.findall(name.rpartition(".")[2] or name)]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _SUFFIXES):
        words.pop()
    if not words or words[0] in {"no", "ask", "without", "skip", "utf"} or name == "PASS":
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _ABOUT:
        return "fair" if last == "id" and before == "secret" else ""
    if last in _PASSWORDS or last.endswith(_ENDINGS) or (last.endswith("pw") and len(last) > 4):
        return "strong"
    if last in {"key", "keys", "token", "tokens"}:
        if before in _PLAIN_KEY:
            return ""
        if _QUALIFIER.fullmatch(before) and last in {"key", "token"}:
            return "strong"
        return "fair" if before or last == "token" else "weak"
    if last == "pass" and before and before not in _TRIED:
        return "strong"
    if last in _FAIR or (last.endswith(("pass", "token")) and last not in _NO_PASS):
        return "fair"
    told = {"password", "passwd", "secret", "token", "passphrase", "pwd", "key"}.intersection(words)
    return "weak" if told else ""


_SUFFIXES = frozenset({
    "prod", "production", "dev", "development", "staging", "stage", "live", "base", "value", "raw", "plain", "plaintext",
    "old", "new", "current", "default", "data", "b64", "base64", "hex", "main", "primary", "secondary", "backup", "s",
    "temp", "tmp", "local", "eu", "us",
})  # fmt: skip


def looks_random(value: str) -> bool:
    """Whether it is no word, path or number: it has eight or more letters and digits in a row, mixed."""
    if len(value) < 12 or not re.fullmatch(r"[A-Za-z0-9+/=_.~-]+", value):
        return False
    return any(
        len(piece) >= 8 and re.search("[0-9]", piece) and re.search("[A-Za-z]", piece)
        for piece in re.split(r"[-_.~/]", value)
    )


def harmless(value: str) -> bool:
    """Whether a password in a command or an address only stands for one."""
    return placeholder(value) or value.lower() in {
        "password",
        "passwd",
        "pass",
        "pwd",
        "pw",
        "secret",
        "token",
        "key",
    }
