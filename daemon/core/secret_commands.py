"""Finds secrets in commands, in the arguments of a login, and in what is told beside a login (I46)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .secret_names import harmless, placeholder
from .secret_text import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .secret_text import Text


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
