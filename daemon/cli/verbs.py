"""Every verb: its module, its line in the help, and its group. ``page`` is the help of `reflectd` itself; it
imports nothing, so that it comes at once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERBS: dict[str, tuple[str, str]] = {
    "status": (".control.status", "is it running, and what does it see"),
    "why": (".verdicts.why", "why a session was judged as it was"),
    "history": (".verdicts.history", "what was judged: sessions and their rounds"),
    "watch": (".verdicts.watch", "verdicts as they come; runs a command for each"),
    "dashboard": (".control.dashboard", "what happens, why, and what it costs, in your browser"),
    "cost": (".verdicts.cost", "what judging cost"),
    "line": (".control.line", "one line for prompts and status bars: where a session stands"),
    "off": (".control.switch", "leave this project (or one session) alone"),
    "on": (".control.switch", "judge this project (or one session) again"),
    "dispute": (".verdicts.dispute", "say that a verdict was wrong, and keep its case as a test"),
    "proof": (".proof", "the project's own checks, which reflectd may run"),
    "judge": (".judge.judge", "judge a case, a session or all past ones, without a daemon"),
    "learned": (".learned.learned", "all that was learned about this project: show, approve, take back"),
    "reflect": (".reflect.reflect", "what you keep correcting in past sessions, as rules to approve"),
    "playbook": (".learned.learned", "what agents learned about this project: its points"),
    "memory": (".learned.learned", "lessons from tasks that ended badly"),
    "mcp": (".mcp", "serve the memory to MCP clients, on stdin and stdout"),
    "setup": (".setup.setup", "connect coding agents, choose a judge; completion, examples"),
    "doctor": (".doctor.doctor", "what is wrong with this installation, and how to mend it"),
    "config": (".setup.config", "show every setting, its value and where it comes from"),
    "trust": (".setup.trust", "let a project's own prompts be used, after looking at them"),
    "daemon": (".main", "start, stop, restart, serve, service, logs, prune"),
    "uninstall": (".setup.uninstall", "remove all that reflectd left on this machine"),
    "start": (".control.start", "start the daemon in the background"),
    "stop": (".control.start", "stop the daemon"),
    "restart": (".control.start", "restart the daemon, after an upgrade or a change of settings"),
    "serve": (".control.serve", "run the daemon in the foreground"),
    "service": (".control.service", "run the daemon as a service (systemd, launchd)"),
    "logs": (".control.logs", "show the daemon's log"),
    "prune": (".control.prune", "what is too old to keep, and that the clock is right after a jump"),
    "completion": (".setup.completion", "completion of verbs, flags and values for your shell"),
    "examples": (".setup.examples", "scripts that tell you of verdicts: speech, Telegram, desktop"),
}
"""Verb → (module, its line in the help). The module has ``add_parser``. A leading dot: in this package."""

BELOW: dict[str, tuple[str, ...]] = {
    "daemon": ("start", "stop", "restart", "serve", "service", "logs", "prune"),
    "setup": ("completion", "examples"),
}
"""Verbs below a verb. Typed without it they do the same; the help lists them below it."""

OLDER = {"case": ("dispute",), "backtest": ("judge", "--past")}

GROUPS = {
    "every day": ("status", "why", "history", "watch", "dashboard", "cost", "line", "off", "on"),
    "verdicts": ("dispute", "judge", "proof"),
    "what was learned": ("learned", "reflect", "playbook", "memory", "mcp"),
    "this machine": ("setup", "doctor", "config", "trust", "daemon", "uninstall"),
}
USAGE = "usage: reflectd VERB [FLAGS]"
ABOUT = "Judges whether your coding agent is really done, and makes it go on if not."
CODES = """\
exit codes: 0 done, 1 not available, 2 wrong arguments or settings,
3 not running (status), 10 not done and 11 not judged (judge).
`reflectd help VERB` says more about each."""


def page(known: Mapping[str, tuple[str, str]] = VERBS) -> str:
    """The help, in groups. It fits 80 columns and 40 lines."""
    lines = [USAGE, "", ABOUT]
    groups = {**GROUPS, "more": tuple(verb for verb in known if verb not in VERBS)}
    for title, verbs in groups.items():
        lines += ["", title, *(f"  {verb:10} {known[verb][1]}" for verb in verbs)] if verbs else []
    lines += ["", *CODES.split("\n")]
    return "\n".join(lines)
