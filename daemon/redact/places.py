"""Finds secrets by the place where they stand: private keys, addresses with a password, headers, cookies,
commands and their flags, logins, Kubernetes manifests, encoded texts (I46).

Most searches look around a literal, which is found many times faster than a pattern.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from .names import SURE, harmless, mixed, placeholder, strength
from .tables import pattern, rows, text
from .text import Span, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .text import Text

    Find = Callable[[str, int], Iterator[Span]]

BEFORE: Final = 300  # characters of a command that are looked at before a flag
FLAG_COST: Final = 16  # see ``Text.affords``
LOOK_COST: Final = 3
FOUND_COST: Final = 20  # a secret is cut out, and its place is looked at in the next pass
MARK_COST: Final = 10
MANIFEST_COST: Final = 50
COSTS: Final = {  # of a look around a literal that costs more
    b"code": 9, b"@": 9, b"<<<": 16, b"<(": 16, b":5432:": 16, b":*:": 16, b"wpa_passphrase ": 10,
}  # fmt: skip
MOST_PEM: Final = 65_536  # characters of a key
LABELS: Final = ("密码", "密碼", "пароль", "Пароль")
_ATTRIBUTES: Final = frozenset("path domain expires max-age samesite httponly secure priority".split())  # noqa: SIM905
_STARTS: Final = r"(?:^|[\s/|;&(`\"'$])"  # what stands before a command
_PART: Final = re.compile("<<([a-z_]+)>>")


def _filled(part: str) -> str:
    """``<<name>>`` in a row stands for another text of the table."""
    return _PART.sub(lambda m: text(f"places.{m[1]}"), part)


# the flag, the command before it, what follows it
_FLAGGED: Final = [(flag, _filled(command), _filled(value)) for flag, command, value in rows("places.flags")]
_FLAGS: Final = [
    (flag, re.compile(_STARTS + command), re.compile(flag + value)) for flag, command, value in _FLAGGED
]
_COMMAND: Final = re.compile(f"{_STARTS}(?:{'|'.join(dict.fromkeys(row[1] for row in _FLAGGED))})".encode())
_FLAG: Final = re.compile(rb" -(?=%b)" % "|".join(sorted({flag for flag, _, _ in _FLAGS})).lower().encode())

_PIPED: Final = pattern("places.piped")
_WRITTEN: Final = pattern("places.written")
_HERE: Final = pattern("places.here")
_ASKS: Final = pattern("places.asks")
_COMMANDS: Final = pattern("places.commands")
_CODE_KIND: Final = pattern("places.code_kind")
_CODES_KIND: Final = pattern("places.codes_kind")
_CODE: Final = pattern("places.code")
_CODE_BACK: Final = pattern("places.code_back")
_SAYS_CODE: Final = pattern("places.says_code")
_NEXT_CODE: Final = pattern("places.next_code")
_ARGUMENTS: Final = pattern("places.arguments")
_APP_PASSWORD: Final = pattern("places.app_password")
_SCHEMELESS: Final = pattern("places.schemeless")
_BYTES: Final = pattern("places.bytes")
_USER_BEFORE: Final = pattern("places.user_before")
_LOGIN_PAIR: Final = pattern("places.login_pair")
_PEM_MARK: Final = pattern("places.pem_mark")
_PEM_UNIT: Final = pattern("places.pem_unit")
_NO_WORD: Final = pattern("places.no_word")
_USERINFO: Final = pattern("places.userinfo")
_SPACE: Final = pattern("places.space")
_HOOK: Final = pattern("places.hook")
_HOOK_PART: Final = pattern("places.hook_part")
_AUTHORIZATION: Final = pattern("places.authorization")
_REST: Final = pattern("places.rest")
_BEARER: Final = pattern("places.bearer")
_BASIC: Final = pattern("places.basic")
_COOKIE: Final = pattern("places.cookie")
_COOKIE_PAIR: Final = pattern("places.cookie_pair")
_LINK: Final = pattern("places.link")
_RESPONSE: Final = pattern("places.response")
_PGPASS: Final = pattern("places.pgpass")
_BASE64: Final = pattern("places.base64")
_HIDDEN: Final = pattern("places.hidden")
_JWK: Final = pattern("places.jwk")
_MANIFEST: Final = pattern("places.manifest")
_MANIFEST_DATA: Final = pattern("places.manifest_data")
_MANIFEST_FIELD: Final = pattern("places.manifest_field")
_LABELLED: Final = pattern("places.labelled")


def places(view: Text) -> Iterator[Span]:
    """The secrets at all these places."""
    for part, literal, cost, find in _SEARCHES:
        if part in view.present:
            for at in view.places(literal):
                if view.affords(at, cost):
                    for span in find(view.text, at):
                        view.affords(at, FOUND_COST)
                        yield span
    for search in (_private_keys, _flags, _cookies, _jwks, _manifests, _encoded, _labelled):
        yield from search(view)


def _line_before(text: str, at: int) -> str:
    """The line before ``at``, within the searched distance."""
    return text[max(0, at - BEFORE) : at].rpartition("\n")[2]


# Commands


def _flags(view: Text) -> Iterator[Span]:
    """``curl -u user:X``, ``mysql -pX``."""
    first = _FLAG.search(view.low)
    if first is None or _COMMAND.search(view.low) is None:
        return  # builds have thousands of flags and none of these commands
    for found in _FLAG.finditer(view.low, first.start()):
        if view.affords(found.start(), FLAG_COST):
            yield from _flag(view.text, found.start())


def _flag(text: str, at: int) -> Iterator[Span]:
    before = _line_before(text, at)
    for flag, command, value in _FLAGS:
        if text.startswith(flag, at + 2) and command.search(before):
            found = value.match(text, at + 2)
            if found is not None and not harmless(found["value"]) and not found["value"].startswith("-"):
                yield Span(*found.span("value"), "flag")
                return


def _piped(text: str, at: int) -> Iterator[Span]:
    """``echo X | sudo -S``."""
    before = _line_before(text, at)
    found = _PIPED.search(before)
    if found is not None and not placeholder(found["value"]):
        start = at - len(before)
        skipped = found["value"].find(":") + 1 if text.startswith("chpasswd", at) else 0
        yield Span(start + found.start("value") + skipped, start + found.end("value"), "piped")


def _here(text: str, at: int) -> Iterator[Span]:
    """``sudo -S <<< X`` and ``<(echo X)``."""
    found = _HERE.match(text, at)
    if found is None or placeholder(found["value"]) or text[at : at + 3] not in {"<<<", "<(e", "<(p"}:
        return
    if _ASKS.search(_line_before(text, at)):
        yield Span(*found.span("value"), "piped")


def _written(text: str, at: int) -> Iterator[Span]:
    """``echo X > .vault_pass``."""
    before = _line_before(text, at)
    found = _WRITTEN.search(before) if ">" in before else None
    if found is not None and not harmless(found["value"]) and "=" not in found["value"]:
        start = at - len(before)
        yield Span(start + found.start("value"), start + found.end("value"), "written")


def _command(text: str, at: int) -> Iterator[Span]:
    """``vault login X``, ``sqlplus user/X@db`` and others of which the whole form is known."""
    found = _COMMANDS.match(text, at)
    group = found.lastgroup if found is not None else None
    if found is None or group is None or harmless(found[group]):
        return
    if group == "expect" and "assw" not in text[max(0, at - BEFORE) : at]:
        return
    if not (group == "snmp" and found[group] in {"public", "private"}):
        yield Span(*found.span(group), "command")


def _arguments(text: str, at: int) -> Iterator[Span]:
    """``login("user", "X")``: the password is the last argument."""
    found = _ARGUMENTS.match(text, at)
    if found is not None and (_APP_PASSWORD.fullmatch(found["value"]) or _may_be_one(found["value"])):
        yield Span(*found.span("value"), "argument")


def _may_be_one(value: str) -> bool:
    return len(value) >= 6 and " " not in value and not placeholder(value) and mixed(value)


# Told beside a login


def _codes(text: str, at: int) -> Iterator[Span]:
    """``verification code is 482913`` and lists of recovery codes."""
    before = text[max(0, at - 60) : at]
    back = _CODE_BACK.search(text, max(0, at - 60), at) if _SAYS_CODE.search(before) else None
    if back is not None:
        yield Span(*back.span("value"), "code")
    before = before[-30:]
    if _CODE_KIND.search(before) is None:
        return
    found = _CODE.match(text, at)
    if found is not None:
        yield Span(*found.span("value"), "code")
    elif _CODES_KIND.search(before):
        place = at + len("code")
        while following := _NEXT_CODE.match(text, place):
            yield Span(*following.span("value"), "code")
            place = following.end()


def _pair(text: str, at: int) -> Iterator[Span]:
    """``log in with admin / X``."""
    found = _LOGIN_PAIR.match(text, at)
    value = found["value"].rstrip(".;:!?*") if found is not None else ""
    if found is not None and _may_be_one(value) and not re.match(r"[\w.-]+:\d+$|\d", value):
        yield Span(found.start("value"), found.start("value") + len(value), "login")


def _user_and_password(text: str, at: int) -> Iterator[Span]:
    """``user / password: root / X``: the label says what stands in which place."""
    if _USER_BEFORE.search(text[max(0, at - 20) : at]):
        yield from _pair(text, at)


def _labelled(view: Text) -> Iterator[Span]:
    """``密码: X``. The copies of a text in which a character is a byte don't hold these names."""
    text = view.text
    for label in LABELS:
        at = text.find(label)
        while at >= 0 and view.affords(at, LOOK_COST):
            found = _LABELLED.match(text, at + len(label))
            if found is not None and SURE.search(found["value"]) and not placeholder(found["value"]):
                view.affords(at, FOUND_COST)
                yield Span(*found.span("value"), "named")
            at = text.find(label, at + len(label))


# Addresses


def _before_host(text: str, at: int) -> Iterator[Span]:
    """``user:X@host`` without a scheme."""
    start = max(0, at - 120)
    found = _SCHEMELESS.search(text[start:at])
    following = text[at + 1 : at + 8]
    if found is None or harmless(found["value"]) or following.startswith("sha256"):
        return
    if following.startswith(("tcp(", "unix(", "/")) or (
        _may_be_one(found["value"]) and following[:1].isalnum()
    ):
        yield Span(start + found.start("value"), start + found.end("value"), "url")


def _address(text: str, at: int) -> Iterator[Span]:
    """Links that log somebody in, and ``https://user:X@host``."""
    following = text.find("://", at + 3, at + 300)
    link = _LINK.search(text, at, following if following >= 0 else at + 300)
    if link is not None and not _SPACE.search(text, at, link.start()):
        yield Span(*link.span("value"), "link")
    found = _USERINFO.match(text, at)
    if found is None:
        return
    if found["token"]:
        yield Span(*found.span("token"), "url")
    elif not harmless(found["password"]) and found["password"] != found["user"]:
        yield Span(*found.span("password"), "url")


def _hook(text: str, at: int) -> Iterator[Span]:
    """``https://hooks.example.com/X``."""
    found = _HOOK.match(text, at)
    if found is None or "://" not in text[max(0, at - 100) : at]:
        return
    part = _HOOK_PART.search(found["value"])
    if part is not None:
        yield Span(found.start("value"), found.end(), "webhook")


def _pgpass(text: str, at: int) -> Iterator[Span]:
    """``host:port:database:user:X``: the literal stands in the word that this is."""
    floor = max(0, at - 160)
    start = max(floor, *(text.rfind(border, floor, at) + 1 for border in " \n\t\"'`"))
    found = _PGPASS.match(text, start)
    if found is not None and not placeholder(found["value"]):
        yield Span(*found.span("value"), "pgpass")


# Headers


def _authorization(text: str, at: int) -> Iterator[Span]:
    found = _AUTHORIZATION.match(text, at)
    if found is None:
        return
    value, scheme = found["value"], (found["scheme"] or "").strip().lower()
    if scheme == "digest":
        response = _RESPONSE.search(text, found.end(), found.end() + 800)
        if response is not None:
            yield Span(*response.span("value"), "digest")
    elif not placeholder(value) and (scheme or re.search("[0-9]", value)):
        rest = _REST.match(text, found.end())
        end = rest.end() if rest else found.end()
        yield Span(found.start("value"), end, scheme if scheme in {"bearer", "basic"} else "header")


def _bearer(text: str, at: int) -> Iterator[Span]:
    found = _BEARER.match(text, at)
    if found is not None and re.search("[0-9]", found["value"]) and not placeholder(found["value"]):
        yield Span(*found.span("value"), "bearer")


def _basic(text: str, at: int) -> Iterator[Span]:
    """``Basic`` and base64 of ``user:password``; ``Basic training`` is plain English."""
    found = _BASIC.match(text, at)
    if found is not None and b":" in _decoded(found["value"] + "=" * (-len(found["value"]) % 4)):
        yield Span(*found.span("value"), "basic")


def _decoded(value: str) -> bytes:
    """The text behind the base64, empty where it is none."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _cookies(view: Text) -> Iterator[Span]:
    done = 0
    for at in view.places(b"cookie"):
        found = _COOKIE.match(view.text, at) if at >= done and view.affords(at, LOOK_COST) else None
        place = found.end() if found is not None else -1
        while place >= 0 and (pair := _COOKIE_PAIR.match(view.text, place)) is not None:
            done = pair.end()
            if not view.affords(done - 1, LOOK_COST):
                break
            if _may_log_in(pair["name"], pair["value"] or ""):
                yield Span(*pair.span("value"), "cookie")
            place = done if pair[0].rstrip().endswith(";") else -1


def _may_log_in(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or len(value) < 6 or placeholder(value):
        return False
    telling = strength(name) in {"fair", "strong"} or re.search(r"(?i)sess|sid|auth|remember|logged", name)
    return bool((telling and (mixed(value) or len(value) >= 12)) or (mixed(value) and len(value) >= 16))


# Keys, and texts that hold a secret


def _private_keys(view: Text) -> Iterator[Span]:
    """Private keys between their BEGIN and END lines, and parts of one with only one of these lines."""
    if b"private key" not in view.low:
        return
    text = view.text
    marks = [found for found in _PEM_MARK.finditer(text) if view.affords(found.start(), MARK_COST)]
    done = 0
    for number, found in enumerate(marks):
        if found.start() < done:
            continue
        if found["which"] == "BEGIN":
            start, stop = found.start(), found.end() + _body(text[found.end() : found.end() + MOST_PEM])
            if stop == found.end():
                continue
            following = marks[number + 1] if number + 1 < len(marks) else None
            if following and following["which"] == "END" and following.start() - stop < 200:
                stop = following.end()
        else:
            floor = max(done, found.start() - MOST_PEM, marks[number - 1].end() if number else 0)
            start, stop = found.start() - _body(text[floor : found.start()][::-1]), found.end()
            if start == found.start():
                continue
        yield Span(start, stop, "private")
        done = stop


def _body(text: str) -> int:
    """The number of characters of ``text`` that belong to a key: lines of base64, between them additions of a
    tool. The last line may be short; words are no line.
    """
    at = end = short = 0
    while unit := _PEM_UNIT.match(text, at):
        run = unit["run"]
        if run is not None and len(run) < 16:
            short += 1
            if short > 3 or (end and not _NO_WORD.search(run)):
                break
        elif run is not None:
            short, end = 0, unit.end()
        at = unit.end()
        end = at if end else 0
    return end


def _numbers(text: str, at: int) -> Iterator[Span]:
    """The bytes of a key pair, as Solana's tools write them."""
    found = _BYTES.search(text, at, at + 600)
    if found is not None and found[0].count(",") in {31, 63}:
        yield Span(*found.span(), "bytes")


def _jwks(view: Text) -> Iterator[Span]:
    """The private numbers of JSON web keys."""
    done = 0
    for at in view.places(b'"kty"'):
        for found in _JWK.finditer(view.text, max(done, at - 2000), at + 4000):
            yield Span(*found.span("value"), "jwk")
        done = at + 4000


def _encoded(view: Text) -> Iterator[Span]:
    """Base64 of a text that holds a secret: JSON, ``user:password``, a private key."""
    text = view.text
    for start, end in view.runs(24):
        for found in _BASE64.finditer(text, start, end + 2):
            if not view.affords(found.start(), 1 + len(found[0]) // 64):
                break
            if not text[max(0, start - 60) : start].endswith("base64,") and _hides(found[0]):
                yield Span(*found.span(), "base64")


def _hides(value: str) -> bool:
    if value.islower() or value.isupper() or ("/" in value[:200:2] and "=" not in value and len(value) < 40):
        return False
    inner = _decoded(value[: len(value) // 4 * 4] if "=" not in value else value)
    if not inner.isascii():
        return False
    decoded = inner.decode("ascii")
    shown = decoded.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in decoded)
    return shown and _HIDDEN.search(decoded) is not None


def _manifests(view: Text) -> Iterator[Span]:
    """The fields of Kubernetes Secrets, before and after the line that says the kind."""
    text, done = view.text, 0
    for at in view.places(b"kind"):
        if at < done or _MANIFEST.match(text, at) is None or not view.affords(at, MANIFEST_COST):
            continue
        start = max(done, at - 4000, text.rfind("\n---", max(0, at - 4000), at))
        end = text.find("\n---", at, at + 20_000)
        done = end if end >= 0 else min(len(text), at + 20_000)
        for block in _MANIFEST_DATA.finditer(text, start, done):
            place = block.end() + 1
            while field := _MANIFEST_FIELD.match(text, place):
                if not placeholder(field["value"]):
                    yield Span(*field.span("value"), "manifest")
                place = text.find("\n", field.end()) + 1 or len(text)


def _form(kind: str, name: str) -> Find:
    """A finder for one pattern, which is matched at the literal."""
    form = pattern(f"places.{name}")

    def find(text: str, at: int) -> Iterator[Span]:
        found = form.match(text, at)
        if found is not None:
            group = found.lastgroup or "value"
            if not placeholder(found[group]):
                yield Span(*found.span(group), kind)

    return find


# what looks around which literals
_FINDERS: Final[tuple[tuple[Find, tuple[bytes, ...]], ...]] = (
    (_piped, (b"-stdin", b"sudo -", b"chpasswd", b"--with-token", b"cryptsetup")),
    (_here, (b"<<<", b"<(")),
    (_command, (b"vault login", b"sqlplus ", b"net use ", b"wpa_passphrase ", b"stats auth ")),
    (_command, (b"snmp-server ", b"securestring", b"send ", b"login ")),
    (_arguments, (b"credential", b"auth", b"login", b"pdo(", b"mysqli", b"connect(")),
    (_pair, (b"login", b"log in", b"credential")),
    (_user_and_password, (b"pass",)),
    (_written, (b"pass", b"secret", b"token", b"cred")),
    (_codes, (b"code",)),
    (_before_host, (b"@",)),
    (_numbers, (b"keypair", b"id.json", b"uint8array")),
    (_address, (b"://",)),
    (_hook, (b"hook",)),
    (_authorization, (b"authorization",)),
    (_bearer, (b"bearer",)),
    (_basic, (b"basic",)),
    (_pgpass, (b":5432:", b":*:")),
    (_form("hash", "htpasswd"), (b"sha}",)),
    (_form("cookie", "jar"), (b"\ttrue\t", b"\tfalse\t")),
    (_form("digest", "response"), (b"response=",)),
    (_form("sql", "identified"), (b"identified ",)),
    (_form("wifi", "wifi"), (b"wifi:",)),
    (_form("words", "phrase"), (b"mnemonic", b"seed", b"recovery")),
    (_form("private", "putty"), (b"private-lines:",)),
)  # fmt: skip
_SEARCHES: Final = tuple(
    (part_of(literal), literal, COSTS.get(literal, LOOK_COST), find)
    for find, literals in _FINDERS
    for literal in literals
)
LITERALS: Final = (*(search[1] for search in _SEARCHES), b" -", b"cookie", b"kind", b'"kty"')
