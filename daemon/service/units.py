"""The service's files: the text of the two systemd user units and of the launchd agent; reads, writes and
removes them. ``manager`` talks to systemd and launchd.

Each file carries a digest of its own text, which tells a file that a person edited from one that another
version of reflectd wrote. An edited file is renamed, never overwritten or removed. Raises ``UserError`` for a
path that a file can't hold, ``Unavailable`` when the file system refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from ..core.errors import Unavailable, UserError
from ..files.safe import set_aside, write_atomic

SERVICE = "reflectd.service"
SOCKET = "reflectd.socket"
FAILED_SETTINGS = 2  # the command line's exit code for what only the person can mend
BACKLOG = 4096
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


class Plan(Struct, frozen=True):
    """The service's program. ``program`` is the command without its verb: a Python, ``-m`` and the module."""

    program: tuple[str, ...]
    state_dir: Path
    socket: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, *flags: str) -> tuple[str, ...]:
        """The whole command."""
        where = ("--state-dir", str(self.state_dir))
        return (*self.program, "serve", *where, *flags)


def render(plan: Plan) -> dict[str, str]:
    """The text of each unit, by file name. Raises ``UserError``."""
    command = _command(plan)
    environment = "".join(
        f"Environment={quote(f'{name}={value}')}\n" for name, value in sorted(plan.environment.items())
    )
    stopped = whole_line(plan.state_dir / "stopped")
    service = _SERVICE.format(
        command=command, environment=environment, stopped=stopped, failed=FAILED_SETTINGS, socket=SOCKET
    )
    address = whole_line(plan.socket)
    return {
        SERVICE: service,
        SOCKET: _SOCKET.format(address=address, stopped=stopped, backlog=BACKLOG, service=SERVICE),
    }


def _command(plan: Plan) -> str:
    first, *rest = plan.command()
    if not first.isprintable() or set(first) & set("\"'\\"):
        raise UserError(f"systemd runs no program whose path has quotes or backslashes: {first}")
    return " ".join([quote(f":{first}"), *map(quote, rest)])


def quote(word: str) -> str:
    """One word of ``ExecStart=`` (in which a leading ``:`` keeps ``$`` literal) or of ``Environment=``."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = "".join(
        f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else f"\\{c}" if c in '"\\' else c for c in word
    )
    return '"' + escaped.replace("%", "%%") + '"'


def whole_line(path: Path) -> str:
    """A path as the whole value of a directive, where only ``%`` is special. Raises ``UserError``."""
    text = str(path)
    if text != text.strip() or text.endswith("\\") or not text.isprintable():
        raise UserError(f"systemd cannot use the path {text!r}; set REFLECTD_STATE_DIR and REFLECTD_SOCKET")
    return text.replace("%", "%%")


def address(unit: str) -> str:
    """The path that a socket unit with this text listens on; empty when it has none."""
    found = re.search(r"^ListenStream=(.*)$", unit, re.MULTILINE)
    return found[1].strip().replace("%%", "%") if found else ""


_SERVICE = """\
# Written by `reflectd service install`. Your own changes: `systemctl --user edit reflectd.service`.
[Unit]
Description=reflectd, judges whether a coding agent is really done
Requires={socket}
After={socket}
# `reflectd stop` leaves this file, and `reflectd start` removes it
ConditionPathExists=!{stopped}
# ends a crash loop: after five starts in five minutes the unit has failed, until `reflectd start` resets it
# or the five minutes are over
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
# the daemon tells systemd when its socket answers, and then regularly that its event loop still runs; systemd
# restarts a daemon that stops telling it
Type=notify
NotifyAccess=main
WatchdogSec=60
# the colon keeps systemd from putting variables into this line
ExecStart={command}
{environment}# not the home folder: Python would import a folder there that has the module's name
WorkingDirectory=/
Restart=on-failure
RestartSec=5
# wrong settings: the next start would fail in the same way
RestartPreventExitStatus={failed}
TimeoutStartSec=60
# the daemon takes up to 11 s to finish its work and store its state
TimeoutStopSec=20
SyslogIdentifier=reflectd

# Hardening by system call filters, which any user manager can set up. There is no directive that needs a
# mount namespace (ProtectSystem=, ProtectHome=, PrivateTmp= …): the daemon writes `.reflection` folders into
# any workspace, also below /tmp, and where user namespaces are forbidden the service would not start at all.
NoNewPrivileges=yes
# the system calls that services need, without those that need a privilege or change scheduling
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
# for its own socket and for the models' APIs; names are looked up over netlink
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
# its files are readable for you only; a core dump would hold API keys and texts of sessions
UMask=0077
LimitCORE=0
# each connected host and each command uses a file descriptor
LimitNOFILE=8192

[Install]
Also={socket}
"""

_SOCKET = """\
# Written by `reflectd service install`. Your own changes: `systemctl --user edit reflectd.socket`.
[Unit]
Description=reflectd, the socket that coding agents connect to
# `reflectd stop` leaves this file, and `reflectd start` removes it
ConditionPathExists=!{stopped}

[Socket]
# the daemon's own address; the first one to connect starts it
ListenStream={address}
SocketMode=0600
DirectoryMode=0700
Backlog={backlog}
RemoveOnStop=yes
Service={service}

[Install]
WantedBy=sockets.target
"""


State = Literal["missing", "current", "older", "edited"]
_SEAL = re.compile(r"^(?:# reflectd ([0-9a-f]{64})|<!-- reflectd ([0-9a-f]{64}) -->)\n", re.MULTILINE)
_LIMIT = 256 * 1024


def seal(text: str) -> str:
    """``text`` with its digest in a comment."""
    digest = sha256(text.encode()).hexdigest()
    if text.startswith("<?xml"):
        return text.replace("<plist", f"<!-- reflectd {digest} -->\n<plist", 1)
    return f"# reflectd {digest}\n{text}"


def read(path: Path) -> str:
    """The text of the file; empty when there is no file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LIMIT)
    except FileNotFoundError:
        return ""
    except OSError as e:
        raise Unavailable(f"cannot read {path}: {e.strerror}") from e


def state(path: Path, text: str) -> State:
    """How the file at ``path`` differs from ``text``, which this version would write.

    ``older``: reflectd wrote it, in another version or with other paths, and nobody edited it.
    """
    found = read(path)
    if not found:
        return "edited" if path.is_symlink() or path.exists() else "missing"
    if found == seal(text):
        return "current"
    digest, rest = _SEAL.search(found), _SEAL.sub("", found, count=1)
    ours = digest is not None and sha256(rest.encode()).hexdigest() in digest.groups()
    return "older" if ours else "edited"


def write(path: Path, text: str, stamp: str) -> Path | None:
    """Write ``text`` to ``path``. Returns where an edited file was moved to, None when there was none."""
    aside = set_aside(path, stamp, "edited") if state(path, text) == "edited" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the folder {path.parent}: {e.strerror}") from e
    write_atomic(path, seal(text), 0o644)
    return aside


def remove(path: Path, text: str, stamp: str) -> Path | None:
    """Remove the file. Returns where an edited file was moved to, else None. A missing file is fine."""
    if state(path, text) == "edited":
        return set_aside(path, stamp, "edited")
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot remove {path}: {e.strerror}") from e
    return None


LABEL = "local.reflectd"
FILE = f"{LABEL}.plist"


def agent(plan: Plan) -> dict[str, str]:
    """The text of the agent, by its file name. Raises ``UserError``."""
    import plistlib

    job: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": _arguments(plan),
        "RunAtLoad": True,  # launchd hands a socket over only through a C function, so the daemon makes it
        # started again after a failure, not after `reflectd stop`; launchd never gives up on a crash loop, so
        # the pause between two starts is long
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ProcessType": "Background",
        "WorkingDirectory": "/",  # Python would import a folder in another one that has the module's name
        "ExitTimeOut": 20,  # the daemon takes up to 11 s to finish its work and store its state
        "Umask": 0o077,
        "SoftResourceLimits": {"NumberOfFiles": 8192, "Core": 0},
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": str(plan.state_dir / "launchd.log"),
    }
    if plan.environment:
        job["EnvironmentVariables"] = dict(plan.environment)
    try:
        return {FILE: plistlib.dumps(job, sort_keys=False).decode()}
    except ValueError as e:  # a control character in a path
        raise UserError(f"launchd cannot use these paths: {e}") from e


def is_ours(env: Mapping[str, str]) -> bool:
    """Says whether launchd started this process as our agent."""
    return env.get("XPC_SERVICE_NAME") == LABEL


def _arguments(plan: Plan) -> list[str]:
    return list(plan.command("--log-file", "--socket", str(plan.socket)))
