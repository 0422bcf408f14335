"""Finds secrets by the place where they stand: private keys, addresses with a password, headers, cookies,
Kubernetes manifests, encoded texts (I46).
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from .secret_names import harmless, placeholder, strength
from .secret_prose import SURE
from .secret_text import Span, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .secret_text import Text

# Finds secrets in commands, in the arguments of a login, and in what is told beside a login (I46).

_BEFORE: Final = 300  # characters of a command that are looked at before a flag
_CLIENTS = r"(?:curl|https?|xh|wget|lftp|smbclient|rpcclient|crackmapexec|aria2c|influx|jira|ab|hey|rclone)\b"
_LOGIN = r"(?:login|registry|mongo\w*|sshpass|bcp|mosquitto_\w+|zip|unzip|kinit|arangosh|cqlsh|ipmitool|clickhouse-client)\b"
_WITH_NAME = r"[ =]?(?P<quote>[\"'])?(?P<user>[^\s:%\"']{1,100})[:%](?P<value>(?(quote)[^\"'\n]{1,200}|[^\s\"'`]{1,200}))"
_ALONE = r"[ =]{1,3}(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{1,200}|[^\s\"'`|;&)]{1,200}))"
_ATTACHED = r"(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{1,200}|[^\s\"'`|;&)]{1,200}))"
# after " -": the flag, the command before it, what follows it
_FLAGGED: Final = (
    ("u", _CLIENTS, _WITH_NAME),
    ("U", _CLIENTS, _WITH_NAME),
    ("u", r"lftp\b", r"[ ][\"']?[^\s,\"']{1,100},(?P<value>[^\s\"'`]{1,200})"),
    ("a", r"https?\b", _WITH_NAME),
    ("c", r"snmp\w*\b", _ALONE),
    ("N", r"ssh-keygen\b", _ALONE),
    ("b", _CLIENTS, r"[ ][\"']?[\w.%$-]{1,80}=(?P<value>[^;\s\"']{6,4096})"),
    ("b", r"gh[ ]secret\b", _ALONE),
    ("-body", r"gh[ ]secret\b", _ALONE),
    ("-user", _CLIENTS, _WITH_NAME),
    ("-proxy-user", _CLIENTS, _WITH_NAME),
    ("p", r"(?:mysql\w*|maria\w*|mycli|sshpass|7z[az]?|xtrabackup|mydumper|rar)\b", _ATTACHED),
    ("p", _LOGIN, _ALONE),
    ("P", r"(?:zip|unzip|sqlcmd|bcp|isql|ncat|mosquitto_\w+|ipmitool)\b", _ALONE),
    ("a", r"(?:redis-cli|valkey-cli|keydb-cli)\b", _ALONE),
    ("w", r"ldap\w+\b", _ALONE),
    ("k", r"openssl\b", _ALONE),
    ("K", r"openssl\b", _ALONE),
    ("pw", r"(?:plink|pscp|psftp|putty)\b", _ALONE),
    ("pass", r"openssl\b", r"(?:in|out)?[ ]pass:" + _ATTACHED),
    (
        "b",
        r"htpasswd\b",
        r"[A-Za-z]{0,4}(?:[ ]-[A-Za-z]{1,4}){0,3}[ ][^\s]{1,200}[ ][^\s]{1,80}" + _ALONE,
    ),
    ("nb", r"htpasswd\b", r"[A-Za-z]{0,4}[ ][^\s]{1,80}" + _ALONE),
    ("P", r"(?:smb\w*|snmp\w*)\b", _ALONE),
    ("A", r"snmp\w*\b", _ALONE),
    ("X", r"snmp\w*\b", _ALONE),
)
_STARTS: Final = r"(?:^|[\s/|;&(`\"'$])"
_FLAGS: Final = tuple(
    (flag, re.compile(_STARTS + command), re.compile(flag + value)) for flag, command, value in _FLAGGED
)
_COMMAND: Final = re.compile(
    f"{_STARTS}(?:{'|'.join(dict.fromkeys(command for _, command, _ in _FLAGGED))})".encode()
)
_FLAG: Final = re.compile(rb" -(?=%b)" % "|".join(sorted({flag for flag, _, _ in _FLAGS})).lower().encode())
FLAG_COST: Final = 16  # see ``Text.affords``
_ECHO: Final = (
    r"(?:echo|printf)[ ](?:-\w{1,4}[ ])?(?:[\"']%s(?:\\n)?[\"'] )?"
    r"(?P<quote>[\"'])?(?P<value>(?(quote)[^\"'\n]{3,200}|[^\s\"'|>]{3,200}))(?(quote)[\"'])[ ]?"
)
_PIPED: Final = re.compile(_ECHO + r"\|[ ]?(?:[\w./-]{1,30}[ ]){0,8}[\w./-]{0,30}$")
_WRITTEN: Final = re.compile(_ECHO + r">{1,2}[ ]?[\w./~-]{0,60}$")
_HERE: Final = re.compile(r"(?:<<<|<\()[ ]?(?:(?:echo|printf)[ ])?[\"']?(?P<value>[^\s\"')<(]{3,200})")
_ASKS: Final = re.compile(
    r"sudo|kinit|login|passw|docker|stdin|token|cryptsetup|luks|openssl|gpg|ssh-add|secret|vault"
)
_COMMANDS: Final = re.compile(
    r"vault[ ]login[ ](?:-[\w=/-]{1,40}[ ]){0,3}(?P<token>[^\s=-][^\s=]{7,200})"
    r"|login[ ](?:-[\w-]{1,20}[ ]){0,3}(?P<key>(?=[a-z-]{0,60}[0-9])[A-Za-z0-9_-]{24,200})(?!\S)"
    r"|sqlplus[ ](?:-\w{1,4}[ ]){0,3}[\"']?[\w.-]{1,60}/(?P<sql>[^\s@\"']{1,100})@"
    r"|net[ ]use[ ][^\n]{0,120}?/user:[^\s]{1,80}[ ](?P<share>[^\s/][^\s]{0,80})"
    r"|net[ ]use[ ](?:[A-Z*]:?[ ])?\\\\[^\s]{1,80}[ ](?P<drive>[^\s/][^\s]{0,80})[ ]/user"
    r"|wpa_passphrase[ ](?:[\"'][^\"'\n]{1,60}[\"']|[^\s]{1,60})[ ][\"']?(?P<wifi>[^\s\"']{8,64})"
    r"|stats[ ]auth[ ][^\s:]{1,60}:(?P<stats>[^\s]{1,80})"
    r"|snmp-server[ ]community[ ](?P<snmp>[^\s]{1,60})"
    r"|securestring(?:[ ]-String)?[ (]{1,2}[\"'](?P<shell>[^\"'\n]{1,100})[\"']"
    r"|send(?:line)?[ ](?:-\w{1,4}[ ]|--[ ]){0,2}[\"'](?P<expect>[^\"'\\\n$]{4,80})\\[rn]",
    re.IGNORECASE,
)
_CODE_KIND: Final = re.compile(
    r"(?i)(?:verification|security|one[- ]time|login|log[- ]in|sign[- ]?in|2fa|mfa|two[- ]factor|sms|otp|confirmation|access|"
    r"recovery|backup|scratch|auth\w{0,14}|pass|pairing|pin|reset|device)[ _-]{0,2}$"
)
_CODES_KIND: Final = re.compile(r"(?i)(?:recovery|backup|scratch|emergency)[ _-]?$")
_CODE: Final = re.compile(
    r"(?i)code[ ]?(?:[ ](?:for|to)(?:[ ][\w.@-]{1,30}){1,4}?)?(?:[ ]is:?|:|=|[ ]was)?[ ]{1,2}[\"'`*]{0,2}"
    r"(?P<value>(?:[A-Z]-)?[0-9]{3,4}[ -]?[0-9]{3,4}|(?=[A-Z-]{0,9}[0-9])[A-Z0-9]{3,5}-[A-Z0-9]{3,5})(?!\w|\.\w)"
)
_CODE_BACK: Final = re.compile(
    r"(?i)(?<![\w.])(?P<value>(?:G-)?[0-9]{6,8})[ ](?:is|as)[ ](?:your|the|my)[ ](?:[\w-]{1,20}[ ]){0,3}$"
)
_SAYS_CODE: Final = re.compile(r"(?i) [ia]s ")
_NEXT_CODE: Final = re.compile(
    r"[^\n\w]{0,10}(?:s\b[^\n:]{0,40}(?=[:\n]))?[\s:*\"',;\[\]-]{0,40}(?:[0-9]{1,2}[.)][ ])?"
    r"(?P<value>(?=[A-Za-z-]{0,12}[0-9])[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,4})(?![\w.])"
)
_ARGUMENTS: Final = re.compile(
    r"(?:pdo|mysqli\w{0,20}|login|log_in|signin|sign_in|authenticate|basic_?auth\w{0,20}|auth|credentials?|connect)"
    r"[\w.]{0,20}[ ]?[=(:,]{1,2}[ ]?[(\[]{0,2}(?:(?:[\"'][^\"'\n]{0,120}[\"']|[$\w.]{1,40}),[ ]?){1,3}[\"'](?P<value>[^\"'\n]{5,100})[\"'][ ]?[)\]]",
    re.IGNORECASE,
)
_APP_PASSWORD: Final = re.compile(r"(?:[a-z]{4} ){3}[a-z]{4}")
_SCHEMELESS: Final = re.compile(r"(?<![\w.+%/:-])[\w.+%-]{1,64}:(?P<value>[^\s\"'`@:/,;(){}<>]{4,100})$")
_BYTES: Final = re.compile(r"\[(?:\s{0,4}[0-9]{1,3},){31,63}\s{0,4}[0-9]{1,3}\s{0,4}\]")
_USER_BEFORE: Final = re.compile(r"(?i)(?:user|name|login|account|e-?mail)[ ]{0,2}[/|+&][ ]{0,2}$")
_LOGIN_PAIR: Final = re.compile(
    r"[^\n/:]{0,24}?[\s\"'`(:=]{1,3}[\w.@+-]{2,40}[\"'`]?[ ]?[/:|][ ]?[\"'`]?(?P<value>[^\s\"'`,/)]{5,80})"
)


def flags(view: Text) -> Iterator[Span]:
    """``curl -u user:X``, ``mysql -pX``."""
    first = _FLAG.search(view.low)
    if first is None or _COMMAND.search(view.low) is None:
        return  # builds have thousands of flags and none of these commands
    for found in _FLAG.finditer(view.low, first.start()):
        if view.affords(found.start(), FLAG_COST):
            yield from _flag(view.text, found.start())


def _flag(text: str, at: int) -> Iterator[Span]:
    line = text.rfind("\n", max(0, at - _BEFORE), at)
    before = text[max(line + 1, at - _BEFORE) : at]
    for flag, command, value in _FLAGS:
        if text.startswith(flag, at + 2) and command.search(before):
            found = value.match(text, at + 2)
            if found is not None and not harmless(found["value"]) and not found["value"].startswith("-"):
                yield Span(*found.span("value"), "flag")
                return


def _piped(text: str, at: int) -> Iterator[Span]:
    before = text[max(0, at - _BEFORE) : at].rpartition("\n")[2]
    start = at - len(before)
    found = _PIPED.search(before)
    if found is not None and not placeholder(found["value"]):
        skipped = found["value"].find(":") + 1 if text.startswith("chpasswd", at) else 0
        yield Span(start + found.start("value") + skipped, start + found.end("value"), "piped")


def _here(text: str, at: int) -> Iterator[Span]:
    """``sudo -S <<< X`` and ``<(echo X)``."""
    found = _HERE.match(text, at)
    if found is not None and not placeholder(found["value"]) and text[at : at + 3] in {"<<<", "<(e", "<(p"}:
        before = text[max(0, at - _BEFORE) : at].rpartition("\n")[2]
        if _ASKS.search(before):
            yield Span(*found.span("value"), "piped")


def _command(text: str, at: int) -> Iterator[Span]:
    found = _COMMANDS.match(text, at)
    if found is None or found.lastgroup is None or harmless(found[found.lastgroup]):
        return
    value = found[found.lastgroup]
    if found.lastgroup == "expect" and "assw" not in text[max(0, at - _BEFORE) : at]:
        return
    if not (found.lastgroup == "snmp" and value in {"public", "private"}):
        yield Span(*found.span(found.lastgroup), "command")


def _written(text: str, at: int) -> Iterator[Span]:
    """``echo X > .vault_pass``."""
    before = text[max(0, at - _BEFORE) : at].rpartition("\n")[2]
    found = _WRITTEN.search(before) if ">" in before else None
    if found is not None and not harmless(found["value"]) and "=" not in found["value"]:
        start = at - len(before)
        yield Span(start + found.start("value"), start + found.end("value"), "written")


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
        return
    place = at + len("code")
    if not _CODES_KIND.search(before):
        return
    while following := _NEXT_CODE.match(text, place):
        yield Span(*following.span("value"), "code")
        place = following.end()


def _arguments(text: str, at: int) -> Iterator[Span]:
    """``login("user", "X")``: the password is the last argument."""
    found = _ARGUMENTS.match(text, at)
    if found is not None and (_APP_PASSWORD.fullmatch(found["value"]) or _mixed(found["value"])):
        yield Span(*found.span("value"), "argument")


def _mixed(value: str) -> bool:
    return (
        len(value) >= 6
        and " " not in value
        and not placeholder(value)
        and re.search("[A-Za-z]", value) is not None
        and re.search("[0-9]", value) is not None
    )


def _before_host(text: str, at: int) -> Iterator[Span]:
    """``user:X@host`` without a scheme."""
    found = _SCHEMELESS.search(text[max(0, at - 120) : at])
    following = text[at + 1 : at + 8]
    if found is None or harmless(found["value"]) or following.startswith("sha256"):
        return
    if following.startswith(("tcp(", "unix(", "/")) or (_mixed(found["value"]) and following[:1].isalnum()):
        start = max(0, at - 120)
        yield Span(start + found.start("value"), start + found.end("value"), "url")


def _numbers(text: str, at: int) -> Iterator[Span]:
    """The bytes of a key pair, as Solana's tools write them."""
    found = _BYTES.search(text, at, at + 600)
    if found is not None and found[0].count(",") in {31, 63}:
        yield Span(*found.span(), "bytes")


def _pair(text: str, at: int) -> Iterator[Span]:
    """``log in with admin / X``."""
    found = _LOGIN_PAIR.match(text, at)
    if found is None:
        return
    value = found["value"].rstrip(".;:!?*")
    mixed = re.search("[0-9]", value) and re.search("[A-Za-z]", value)
    if len(value) >= 6 and mixed and not placeholder(value) and not re.match(r"[\w.-]+:\d+$|\d", value):
        yield Span(found.start("value"), found.start("value") + len(value), "login")


def _user_and_password(text: str, at: int) -> Iterator[Span]:
    """``user / password: root / X``: the label says what stands in which place."""
    if _USER_BEFORE.search(text[max(0, at - 20) : at]):
        yield from _pair(text, at)


# what is searched for, and what looks there
COMMANDS: Final[tuple[tuple[bytes, Callable[[str, int], Iterator[Span]]], ...]] = (
    (b"-stdin", _piped),
    (b"sudo -", _piped),
    (b"chpasswd", _piped),
    (b"--with-token", _piped),
    (b"cryptsetup", _piped),
    (b"<<<", _here),
    (b"<(", _here),
    (b"vault login", _command),
    (b"sqlplus ", _command),
    (b"net use ", _command),
    (b"wpa_passphrase ", _command),
    (b"stats auth ", _command),
    (b"snmp-server ", _command),
    (b"securestring", _command),
    (b"send ", _command),
    (b"credential", _arguments),
    (b"login", _pair),
    (b"login ", _command),
    (b"log in", _pair),
    (b"pass", _user_and_password),
    (b"credential", _pair),
    (b"pass", _written),
    (b"secret", _written),
    (b"token", _written),
    (b"cred", _written),
    (b"code", _codes),
    (b"auth", _arguments),
    (b"login", _arguments),
    (b"pdo(", _arguments),
    (b"mysqli", _arguments),
    (b"connect(", _arguments),
    (b"@", _before_host),
    (b"keypair", _numbers),
    (b"id.json", _numbers),
    (b"uint8array", _numbers),
)


LOOK_COST: Final = 3  # see ``Text.affords``
COSTS: Final = {
    b"code": 9,
    b"@": 9,
    b"<<<": 16,
    b"<(": 16,
    b":5432:": 16,
    b":*:": 16,
    b"wpa_passphrase ": 10,
}  # of a look around a literal that costs more
FOUND_COST: Final = 20  # a secret is cut out, and its place is looked at in the next pass
MARK_COST: Final = 10
MANIFEST_COST: Final = 50
MOST_PEM: Final = 65_536  # characters of a key

_PEM_MARK: Final = re.compile(r"-----(?P<which>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# between lines of base64: white space, quotes, escaped line ends (whose n reads as base64), line numbers
_GAP: Final = r"[\s\\\"'+,>|#*:→-]{0,48}+"
_PEM_UNIT: Final = re.compile(
    rf"{_GAP}(?:n?(?:Proc-Type|DEK-Info|Version|Comment|Hash)[^\n\\]{{0,200}}+"
    r"|[0-9]{1,6}+(?=[ \t]{0,8}[|:→\t])"
    r"|\[\.\.\.[^\]\n]{0,80}\]"
    r"|(?P<run>[A-Za-z0-9/+=]++))"
)
_NO_WORD: Final = re.compile("[0-9+/=]")
_USERINFO: Final = re.compile(
    r"://(?:(?P<user>[^\s/:@'\"<>\\]{0,256}+):(?P<password>[^\s/'\"<>\\]{1,256})"
    r"|(?P<token>(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,256}+))@"
)
_SPACE: Final = re.compile(r"[\s\"'<>`]")
_HOOK: Final = re.compile(r"hook[a-z0-9.]{0,20}/(?P<value>[^\s\"'<>`?)\]]{16,400})")
_HOOK_PART: Final = re.compile(r"(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{16}")
_AUTHORIZATION: Final = re.compile(
    r"authorization[\"'\]\\]{0,6}[ \t]{0,4}[:=,][ \t]{0,4}[\"'\\]{0,5}"
    r"(?P<scheme>(?:bearer|basic|token|digest|apikey|key|bot|ssws|splunk|negotiate|genie[kK]ey)[ \t]{1,4})?+"
    r"(?P<value>[^\s\"'`\\,;<>]{4,512}+)",
    re.IGNORECASE,
)
_REST: Final = re.compile(r"[^\s\"'`\\,;<>]+")
_BEARER: Final = re.compile(r"bearer[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{8,}+)", re.IGNORECASE)
_BASIC: Final = re.compile(r"basic[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{6,1024}+={0,2})", re.IGNORECASE)
_COOKIE: Final = re.compile(
    r"cookies?[\"']?[ \t]{0,3}(?:[:=,]|[ \t])[ \t]{0,3}[\"']?(?=[\w.%$-]{1,80}=)", re.IGNORECASE
)
_PAIR: Final = re.compile(r"(?P<name>[\w.%$-]{1,80})(?:=(?P<value>[^;\s\"'`\\,]{1,8192}))?(?:;[ \t]{0,3})?")
_ATTRIBUTES: Final = frozenset(
    {"path", "domain", "expires", "max-age", "samesite", "httponly", "secure", "priority"}
)
_HTPASSWD: Final = re.compile(r"sha[0-9]{0,3}\}(?P<value>[A-Za-z0-9+/=]{16,200})", re.IGNORECASE)
_JAR: Final = re.compile(
    r"\t(?:TRUE|FALSE)\t[^\t\n]{0,200}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\t\n]{1,80}\t(?P<value>[^\s]{6,4096})",
    re.IGNORECASE,
)
_LINK: Final = re.compile(
    r"(?i)/(?:reset|magic|verify|verification|confirm|invite|invitation|activate|activation|token|auth|login|sso|password|recover)"
    r"[\w-]{0,20}/(?P<value>(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{16,200})(?![\w.-])"
)
_RESPONSE: Final = re.compile(r"response=[\"\\]{0,3}(?P<value>[0-9a-f]{16,128})", re.IGNORECASE)
_IDENTIFIED: Final = re.compile(
    r"identified[ ](?:with[ ][\w'\"`]{1,40}[ ])?(?:by|as)[ ](?:password[ ])?[\"'](?P<value>[^\"'\n]{1,200})",
    re.IGNORECASE,
)
_PGPASS: Final = re.compile(
    r"[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:(?P<value>[^\s:]{1,200})"
)
_WIFI: Final = re.compile(
    r"wifi:[^\n\"']{0,100}?;P:(?P<value>[^;\n]{1,100})|wifi:P:(?P<first>[^;\n]{1,100})", re.IGNORECASE
)
_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/]{24,16384}={0,2}")
_HIDDEN: Final = re.compile(
    r"(?i)\A[\w.@+\\-]{0,64}:[^\s:/]{5,200}\Z|private key---|\"(?:auth|password|secret|token|private_?key|client_secret|api_?key)\"[ ]?:"
    r"|(?:password|secret|token|api_?key)[ ]?[=:]"
)
_WORDS: Final = re.compile(
    r"(?:mnemonic|(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?))[^\n:=\"'`]{0,30}[:=\"'`\n]{1,3}\s{0,4}[\"'`]?"
    r"(?P<value>(?:[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})",
    re.IGNORECASE,
)
_PUTTY: Final = re.compile(
    r"private-lines:[ ]?[0-9]{1,4}\s{0,4}(?P<value>[A-Za-z0-9+/=\s]{16,8192})", re.IGNORECASE
)
_JWK: Final = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\"(?P<value>[A-Za-z0-9_-]{16,})\"")
_MANIFEST: Final = re.compile(r"kind[\"']?:[ ]?[\"']?secret\b(?!\w)", re.IGNORECASE)
_DATA: Final = re.compile(r"^(?P<indent>[ ]{0,12})(?:data|stringData):[ ]{0,4}$", re.MULTILINE)
_FIELD: Final = re.compile(
    r"[ ]{1,20}[\"']?(?P<name>[\w.-]{1,80})[\"']?:[ ]{1,4}[\"']?(?P<value>[^\s\"'#|>][^\s\"']{0,8192})"
)


def places(text: Text) -> Iterator[Span]:
    """All that these places hold."""
    low = text.low
    if b"private key" in low:
        yield from _private_keys(text)
    for part, literal, cost, find in _SEARCHES:
        if text.present is None or part in text.present:
            for at in text.places(literal):
                if text.affords(at, cost):
                    for span in find(text.text, at):
                        text.affords(at, FOUND_COST)
                        yield span
    for search in (flags, _cookies, _jwks, _manifests, _encoded, _labelled):
        yield from search(text)


def _private_keys(view: Text) -> Iterator[Span]:
    """Private keys between their BEGIN and END lines, and a part of one that has only one of them."""
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
    """How many characters of ``text`` belong to a key: lines of base64, between them what a tool may have
    added. The last line may be short; words are no line.
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


def _address(text: str, at: int) -> Iterator[Span]:
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
    found = _HOOK.match(text, at)
    if found is None or "://" not in text[max(0, at - 100) : at]:
        return
    part = _HOOK_PART.search(found["value"])
    if part is not None:
        yield Span(found.start("value"), found.end(), "webhook")


def _authorization(text: str, at: int) -> Iterator[Span]:
    found = _AUTHORIZATION.match(text, at)
    if found is None:
        return
    value, scheme = found["value"], (found["scheme"] or "").strip().lower()
    if scheme == "digest":
        response = _RESPONSE.search(text, found.end(), found.end() + 800)
        if response is not None:
            yield Span(*response.span("value"), "digest")
        return
    if not placeholder(value) and (scheme or re.search("[0-9]", value)):
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
    if found is None:
        return
    value = found["value"]
    try:
        if b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True):
            yield Span(*found.span("value"), "basic")
    except binascii.Error:
        pass


def _cookies(text: Text) -> Iterator[Span]:
    done = 0
    for at in text.places(b"cookie"):
        found = _COOKIE.match(text.text, at) if at >= done and text.affords(at, LOOK_COST) else None
        if found is not None:
            for span, end in _pairs(text.text, found.end()):
                done = end
                if not text.affords(end - 1, LOOK_COST):
                    break
                if span is not None:
                    yield span


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


def _pairs(text: str, place: int) -> Iterator[tuple[Span | None, int]]:
    """The values in one header that may log somebody in, and how far it was read."""
    while place >= 0:
        pair = _PAIR.match(text, place)
        if pair is None:
            return
        span = None
        value = pair["value"] or ""
        known = pair["name"].lower() in _ATTRIBUTES
        if not known and not placeholder(value) and _may_log_in(pair["name"], value):
            span = Span(*pair.span("value"), "cookie")
        yield span, pair.end()
        place = pair.end() if pair[0].rstrip().endswith(";") else -1


def _may_log_in(name: str, value: str) -> bool:
    if len(value) < 6:
        return False
    telling = strength(name) in {"fair", "strong"} or re.search(r"(?i)sess|sid|auth|remember|logged", name)
    mixed = re.search("[0-9]", value) and re.search("[A-Za-z]", value)
    return bool((telling and (mixed or len(value) >= 12)) or (mixed and len(value) >= 16))


def _encoded(text: Text) -> Iterator[Span]:
    """Base64 of a text that holds a secret: JSON, ``user:password``, a private key."""
    whole = text.text
    for start, end in text.runs(24):
        for found in _BASE64.finditer(whole, start, end + 2):
            if not text.affords(found.start(), 1 + len(found[0]) // 64):
                break
            if not text.text[max(0, start - 60) : start].endswith("base64,") and _hides(found[0]):
                yield Span(*found.span(), "base64")


def _hides(value: str) -> bool:
    if value.islower() or value.isupper() or ("/" in value[:200:2] and "=" not in value and len(value) < 40):
        return False
    try:
        inner = base64.b64decode(value[: len(value) // 4 * 4] if "=" not in value else value, validate=True)
        decoded = inner.decode("ascii")
    except (binascii.Error, ValueError):
        return False
    if not decoded.isprintable() and not all(c.isprintable() or c in "\r\n\t" for c in decoded):
        return False
    return _HIDDEN.search(decoded) is not None


def _pgpass(text: str, at: int) -> Iterator[Span]:
    """``host:port:database:user:X``: the literal stands in the word that this is."""
    floor = max(0, at - 160)
    start = max(floor, *(text.rfind(border, floor, at) + 1 for border in " \n\t\"'`"))
    found = _PGPASS.match(text, start)
    if found is not None and not placeholder(found["value"]):
        yield Span(*found.span("value"), "pgpass")


def _at_value(kind: str, pattern: re.Pattern[str]) -> Callable[[str, int], Iterator[Span]]:
    """A finder for one pattern, which is matched at the literal."""

    def find(text: str, at: int) -> Iterator[Span]:
        found = pattern.match(text, at)
        if found is not None:
            group = found.lastgroup or "value"
            if not placeholder(found[group]):
                yield Span(*found.span(group), kind)

    return find


def _jwks(text: Text) -> Iterator[Span]:
    """The private numbers of JSON web keys."""
    done = 0
    for at in text.places(b'"kty"'):
        for found in _JWK.finditer(text.text, max(done, at - 2000), at + 4000):
            yield Span(*found.span("value"), "jwk")
        done = at + 4000


def _manifests(text: Text) -> Iterator[Span]:
    """The fields of Kubernetes Secrets, before and after the line that says the kind."""
    whole, done = text.text, 0
    for at in text.places(b"kind"):
        if at < done or _MANIFEST.match(whole, at) is None or not text.affords(at, MANIFEST_COST):
            continue
        start = max(done, at - 4000, whole.rfind("\n---", max(0, at - 4000), at))
        end = whole.find("\n---", at, at + 20_000)
        done = end if end >= 0 else min(len(whole), at + 20_000)
        for block in _DATA.finditer(whole, start, done):
            place = block.end() + 1
            while field := _FIELD.match(whole, place):
                if not placeholder(field["value"]):
                    yield Span(*field.span("value"), "manifest")
                place = whole.find("\n", field.end()) + 1 or len(whole)


_FINDERS: Final[tuple[tuple[bytes, Callable[[str, int], Iterator[Span]]], ...]] = (
    *COMMANDS,
    (b"://", _address),
    (b"hook", _hook),
    (b"authorization", _authorization),
    (b"bearer", _bearer),
    (b"basic", _basic),
    (b"sha}", _at_value("hash", _HTPASSWD)),
    (b"\ttrue\t", _at_value("cookie", _JAR)),
    (b"\tfalse\t", _at_value("cookie", _JAR)),
    (b"response=", _at_value("digest", _RESPONSE)),
    (b"identified ", _at_value("sql", _IDENTIFIED)),
    (b":5432:", _pgpass),
    (b":*:", _pgpass),
    (b"wifi:", _at_value("wifi", _WIFI)),
    (b"mnemonic", _at_value("words", _WORDS)),
    (b"seed", _at_value("words", _WORDS)),
    (b"recovery", _at_value("words", _WORDS)),
    (b"private-lines:", _at_value("private", _PUTTY)),
)
_SEARCHES: Final = tuple(
    (part_of(literal), literal, COSTS.get(literal, LOOK_COST), find) for literal, find in _FINDERS
)
LABELS: Final = ("密码", "密碼", "пароль", "Пароль")
_LABELLED: Final = re.compile(
    r"[ \t]{0,4}[:=\uff1a][ \t]{0,4}[\"'`\u201c]?(?P<value>[^\s\"'`\u201d,\uff0c\u3002\uff1b;\u3001)\uff09]{5,200})"
)
LITERALS: Final = (*(literal for literal, _ in _FINDERS), b" -", b"cookie", b"kind", b'"kty"')
