"""Secrets in a commit, and files in it that nobody asked for.

Which files a commit took in is read from git's own output (``create mode 100644 .env``) and from the paths
of ``git add``. Templates (``.env.example``) and files that the request names are no secrets.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from ..core.evidence import Row
from .calls.gitfiles import forgotten
from .calls.writes import file_name
from .words import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calls.work import Commit, Work

MAX_NAMES: Final = 6
_SECRET: Final = re.compile(
    r"(?:^|/)(?:[^/]{0,60}\.env(?:\.[\w-]{1,40}){0,3}|\.netrc|\.pgpass|\.pypirc|\.git-credentials"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]{1,100}\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|credentials(?:\.json|\.csv)?|(?:client_?)?secrets?\.(?:json|ya?ml|toml|env|txt|properties)"
    r"|[^/]{0,60}service[-_]?account[^/]{0,60}\.json|[^/]{1,60}-adminsdk-[^/]{1,60}\.json"
    r"|terraform\.tfstate(?:\.backup)?|kubeconfig|[^/]{1,80}\.(?:dump|pgdump)"
    r"|[^/]{0,80}(?:dump|backup)[^/]{0,60}\.(?:sql|sql\.gz|gz|bak|dump|tar|zip))$",
    re.IGNORECASE,
)
_HARMLESS_NAME: Final = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|dist|tpl|defaults?|schema|seeds?|pub|public|tests?|ci|dev"
    r"|development|vault|enc|encrypted|list|debug|mock|dummy|table)(?=[._-]|$)"
    r"|(?:^|[._-])(?:certs?|ca|chain)(?=[._-]).{0,200}\.pem$",  # with other endings they hold the key
    re.IGNORECASE,
)
_HARMLESS_FOLDER: Final = re.compile(
    r"(?:^|/)(?:tests?|testdata|fixtures?|mocks?|specs?|stubs?|examples?|vendor|node_modules)/", re.IGNORECASE
)
_LOCKS: Final = re.compile(
    r"(?:^|/)(?:[^/]{1,60}[.-]lock(?:\.\w{1,5}|b)?|package-lock\.json|go\.sum|[^/]{1,40}\.snap|Gemfile\.lock)$"
)


def is_secret(path: str) -> bool:
    """Whether a file of this name usually holds secrets or a copy of data."""
    name = file_name(path)
    harmless = _HARMLESS_NAME.search(name) or _HARMLESS_FOLDER.search(path)
    return bool(_SECRET.search(path)) and not harmless


def leaks(work: Work, asked: str, told: str) -> list[Row]:
    """The rows of kind ``leak``, without ids: at most one for secrets and one for other files.

    The row of secrets is open until git was told to forget the files; ``detail`` is ``pushed`` where a push
    followed. It is closed where the request names the file, and where the agent was told once (``told``: the
    feedback of this task): what it did about it may not be readable. The row of other files is closed too.
    """
    rows: list[Row] = []
    said = asked.lower()
    secret = [(c, p) for c in work.commits for p in c.files if is_secret(p)]
    if secret:
        rows.append(_secret_row(secret, work, said, told))
    if work.commits and not (work.blind_writes or work.delegated):
        rows += _stranger_rows(work, said)
    return rows


def _secret_row(found: Sequence[tuple[Commit, str]], work: Work, said: str, told: str) -> Row:
    last = {path: commit.at for commit, path in found}  # the last commit that holds it
    pushed = any(d.at > min(c.at for c, _ in found) and d.outcome != "failed" for d in work.did("push"))
    tracked = [p for p, at in last.items() if not forgotten(p, at, work)]
    shown = (tracked or list(last))[:MAX_NAMES]
    names = ", ".join(f"`{shorten(p, 100)}`" for p in shown)
    text = f"{names} {'was committed and pushed' if pushed else 'was committed'}"
    if not tracked:
        text += "; it is no longer tracked"
        text += (
            ", but what it held is public to all who can read the remote: the person has to rotate it"
            * pushed
        )
    if any(_names(said, p) for p in shown):
        text += " (the request names it)"
    wanted = [p for p in tracked if not _names(said, p) and not _names(told, p)]
    return Row(
        "", "leak", text, outcome="failed", open=bool(wanted), detail="pushed" if pushed else "committed",
        command=shlex.join(shown), settled=not tracked and not pushed,
    )  # fmt: skip


def _stranger_rows(work: Work, said: str) -> list[Row]:
    written = {file_name(w.path) for w in work.writes}
    strangers = [
        path
        for path in dict.fromkeys(p for c in work.commits for p in c.created)
        if file_name(path) not in written and not _LOCKS.search(path) and not _names(said, path)
        and not is_secret(path)
    ]  # fmt: skip
    if not strangers or not written:
        return []
    names = ", ".join(shorten(p, 100) for p in strangers[:MAX_NAMES])
    more = f" and {len(strangers) - MAX_NAMES} more" if len(strangers) > MAX_NAMES else ""
    text = f"the commit adds files that no call wrote and the request does not name: {names}{more}"
    return [Row("", "leak", text, detail="strangers")]


def _names(said: str, path: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(file_name(path).lower())}(?![\w.])", said.lower()))
