"""The systemd user units, as text. Pure: looks at nothing, writes nothing (``manager`` does).

A path that a unit file can't hold is a ``UserError``. Every directive has its reason beside it, in the unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from daemon.core.errors import UserError

SERVICE = "reflectd.service"
SOCKET = "reflectd.socket"
FAILED_SETTINGS = 2  # the command line's exit code for what only the person can mend
BACKLOG = 4096
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run. ``program`` is the whole command without its verb."""

    program: tuple[str, ...]
    state_dir: Path
    socket: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, *flags: str) -> tuple[str, ...]:
        """``serve`` as a service: it never ends because it is idle, whatever the settings file says."""
        where = ("--state-dir", str(self.state_dir), "--daemon-idle-exit-minutes", "0")
        return (*self.program, "serve", *where, *flags)


def render(plan: Plan) -> dict[str, str]:
    """File name → text."""
    first, *rest = plan.command()
    if not first.isprintable() or set(first) & set("\"'\\"):
        raise UserError(f"systemd runs no program whose path has quotes or backslashes: {first}")
    command = " ".join([quote(f":{first}"), *map(quote, rest)])
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


def quote(word: str) -> str:
    """One word of ``ExecStart=`` (whose ``:`` leaves ``$`` alone) or ``Environment=``."""
    if _PLAIN.fullmatch(word):
        return word
    escaped = "".join(
        f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else f"\\{c}" if c in '"\\' else c for c in word
    )
    return '"' + escaped.replace("%", "%%") + '"'


def whole_line(path: Path) -> str:
    """A path that is all of a directive's value: only ``%`` is special there. Raises ``UserError``."""
    text = str(path)
    if text != text.strip() or text.endswith("\\") or not text.isprintable():
        raise UserError(f"systemd cannot use the path {text!r}; set REFLECTD_STATE_DIR and REFLECTD_SOCKET")
    return text.replace("%", "%%")


def address(unit: str) -> str:
    """The path that the text of a socket unit listens on; empty when there is none."""
    found = re.search(r"^ListenStream=(.*)$", unit, re.MULTILINE)
    return found[1].strip().replace("%%", "%") if found else ""


_SERVICE = """\
# Written by `reflectd service install`. Your own changes: `systemctl --user edit reflectd.service`.
[Unit]
Description=reflectd, judges whether a coding agent is really done
Requires={socket}
After={socket}
# `reflectd stop` leaves this mark, `reflectd start` takes it away
ConditionPathExists=!{stopped}
# a crash loop ends: five starts in five minutes, then failed until `reflectd start` or the next minutes
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
# the daemon says when its socket serves, and that its event loop turns; a hung one is restarted
Type=notify
NotifyAccess=main
WatchdogSec=60
# no variables are put into this line (the colon); 0: a service does not exit because it is idle
ExecStart={command}
{environment}# not the home folder: a folder `daemon` there would be imported
WorkingDirectory=/
Restart=on-failure
RestartSec=5
# wrong settings: the same again at the next start, so don't
RestartPreventExitStatus={failed}
TimeoutStartSec=60
# a drain takes up to 11 s
TimeoutStopSec=20
SyslogIdentifier=reflectd

# Hardening by system call filters, which any user manager can set up. No directive that needs a mount
# namespace (ProtectSystem=, ProtectHome=, PrivateTmp= …): the daemon writes `.reflection` folders into any
# workspace, /tmp included, and where user namespaces are forbidden the service would not start at all.
NoNewPrivileges=yes
# what services call, without what needs a privilege or changes scheduling
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
# its own socket and the models' APIs; netlink is how names are looked up
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
# files are for the person only; a core dump would hold keys and texts of sessions
UMask=0077
LimitCORE=0
# each host and command is a descriptor
LimitNOFILE=8192

[Install]
Also={socket}
"""

_SOCKET = """\
# Written by `reflectd service install`. Your own changes: `systemctl --user edit reflectd.socket`.
[Unit]
Description=reflectd, the socket that coding agents connect to
# `reflectd stop` leaves this mark, `reflectd start` takes it away
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
