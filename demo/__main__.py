"""``python -m demo``: a real opencode session, recorded once, judged now by a real daemon.

Everything happens in a temporary folder that is removed again: socket, state, workspace. No opencode, no
model, no network, no key. Exit code 0 when it went as it should, 1 when not, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from daemon.core.errors import ReflectdError
from demo.play import RECORDING, Daemon, DemoFailed, Shim
from demo.show import shown

Json = dict[str, Any]

EXPECTED = ("incomplete", "unscored")
FOLDER = ".reflection"
NEXT = {
    "uv tool install .": "installs the command (or: pipx install .)",
    "reflectd setup opencode": "adds one line to opencode's settings; then restart opencode",
}
FILE_S = 60.0


def main(argv: list[str]) -> int:
    """Run the demo and print it."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        found = play()
        text = json.dumps(found, ensure_ascii=False, indent=1) if args.json else shown(found)
        print(text, flush=True)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `make demo | head`
        sys.stderr.close()
        return 0
    except (DemoFailed, ReflectdError, OSError, KeyError, ValueError) as e:
        print(f"demo: failed: {e or type(e).__name__}", file=sys.stderr)
        return 1
    return 0


def play() -> Json:
    """Both rounds, and the files they left; plain JSON."""
    try:
        recording: Json = json.loads(RECORDING.read_text("utf-8"))
    except (OSError, ValueError) as e:
        raise DemoFailed(f"the recorded session cannot be read ({e}); restore {RECORDING}") from e
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rd-demo-") as name:
        folder = Path(name).resolve()
        workspace = folder / "workspace"
        workspace.mkdir()
        rounds: list[Json] = []
        with (daemon := Daemon(folder)), Shim(daemon, recording, workspace) as shim:
            for number, expected in enumerate(EXPECTED):
                order = shim.play(number)
                read = recording["rounds"][number]["read"]
                messages = read["messages"]
                file = workspace / FOLDER / f"verdict_{read['session']['id']}.json"
                verdict = _verdict(file, messages[-1]["info"]["id"], daemon)
                if verdict["state"] != expected:
                    raise daemon.failed(f"round {number + 1} was judged {verdict['state']}, not {expected}")
                rounds.append({"said": _said(messages), "verdict": verdict, "order": order})
        # the daemon has stopped, so everything is on disk
        files = {p.name: p.read_text("utf-8") for p in sorted((workspace / FOLDER).iterdir())}
        cases = sorted((json.loads(t) for n, t in files.items() if _is_case(n)), key=_at)
        if len(cases) != len(rounds):
            raise daemon.failed(f"{len(cases)} cases were filed for {len(rounds)} rounds: {sorted(files)}")
        for this, case in zip(rounds, cases, strict=True):
            this["evidence"] = case["case"]["evidence"]["rows"]
    return {
        "judge": rounds[-1]["verdict"]["judge"]["provider"],
        "host": recording["host"],
        "request": recording["request"],
        "rounds": rounds,
        "files": {n: t if n.startswith(".git") else json.loads(t) for n, t in files.items()},
        "seconds": round(time.monotonic() - started, 2),
        "next": NEXT,
    }


def _verdict(file: Path, turn: str, daemon: Daemon) -> Json:
    """The verdict file of a turn, as soon as it is final."""
    end = time.monotonic() + FILE_S
    found: Json = {}
    while time.monotonic() < end:
        if file.exists():
            found = json.loads(file.read_text("utf-8"))
            if found["turn"] == turn and found["state"] != "judging":
                return found
        time.sleep(0.01)
    raise daemon.failed(f"there is no final verdict for {turn} after {FILE_S:.0f} s; last seen: {found}")


def _said(messages: list[Json]) -> list[Json]:
    """What happened since the last message of the user role: tools, and the agent's words."""
    last = max(i for i, m in enumerate(messages) if m["info"]["role"] == "user")
    lines: list[Json] = []
    for part in (p for m in messages[last + 1 :] for p in m["parts"]):
        if part["type"] == "text":
            lines.append({"text": part["text"]})
        elif part["type"] == "tool":
            given, state = part["state"]["input"], part["state"]
            what = given.get("command") or given.get("filePath") or ""
            lines.append({"tool": part["tool"], "what": what, "exit": state.get("exit")})
    return lines


def _is_case(name: str) -> bool:
    return name.endswith(".json") and not name.startswith("verdict_")


def _at(case: Json) -> int:
    return int(case["case"]["at"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
