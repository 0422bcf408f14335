"""``python -m evals.proof``: how often a run of the project's own check stops wrong work, and how often it
sends right work back.

A case is a small repository, a request, and the agent's steps, which are really carried out in a git
repository. The judge believes every agent, so that the figures are those of the check alone. ``reveal`` is a
hidden command that tells whether the work is right; ``--verify`` compares it with the labels. Exit code 1
when an aim is missed, 2 for wrong cases.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from daemon import config, log, paths
from daemon.app import Daemon
from daemon.core.errors import UserError
from daemon.core.llm import Prompt, Reply, Usage
from daemon.core.proof import Known
from daemon.core.session import Session
from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.core.verdict import JudgedBy
from daemon.engine.page import wilson
from daemon.judge.case import make_case
from daemon.judge.decide import Round, decide
from daemon.store import proofs
from daemon.testing import ScriptedLLM
from evals.report import counted

CASES: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "proof"
SPLITS: Final = ("heldout", "tuning")
STOPPED, SENT_BACK = 0.70, 0.02
STEP_S: Final = 60.0
BEFORE: Final = 1_750_000_000  # epoch s: the repository and its commit are older than the task
BELIEVES: Final = {"complete": True, "severity": "NONE"}
GIT: Final = (
    "git",
    "-c",
    "user.name=case",
    "-c",
    "user.email=case@example.org",
    "-c",
    "commit.gpgsign=false",
)


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One case. ``chosen``: the person set ``check``; else it counts only where an agent ran it: in this
    task, or in an earlier one (``earlier``).
    """

    language: str
    label: Literal["right", "wrong"]
    kind: str
    request: str
    answer: str
    check: str
    chosen: bool
    reveal: str
    files: dict[str, str]
    steps: list[dict[str, str]]
    earlier: list[str] = []
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case. ``changed``: files of the repository that are others than before the run.
    ``again``: the judge was asked once more.
    """

    name: str
    language: str
    label: str
    kind: str
    state: str
    proof: str
    told: str
    seconds: float
    changed: tuple[str, ...]
    again: bool = False

    @property
    def sent_back(self) -> bool:
        """The agent would have been told to go on."""
        return self.state == "incomplete"


def load(folder: Path) -> list[Case]:
    """The cases of a folder. Raises ``UserError``."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        try:
            case = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Case)
        except (OSError, ValueError, msgspec.ValidationError) as e:
            raise UserError(f"{path}: {e}") from e
        found.append(msgspec.structs.replace(case, name=path.stem))
    if not found:
        raise UserError(f"{folder} has no cases (*.toml)")
    return found


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A step of the agent, with what it printed."""
    return subprocess.run(  # noqa: S603 - what a case says, in a folder of its own
        ["/bin/bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", timeout=STEP_S, check=False,
    )  # fmt: skip


class Believer(ScriptedLLM):
    """A judge that believes every agent. The prompt that asks it once more, about a check that failed before
    the task too, is written to ``folder`` and answered by ``NAME.reply.txt`` there, if that is given.
    """

    def __init__(self, name: str, folder: Path | None) -> None:
        super().__init__()
        self._file = folder / name if folder is not None else None
        self.again = 0
        self.first = True

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """``BELIEVES``, or the reply in the file."""
        self.add(BELIEVES)
        if self.first or prompt.purpose != "judge":
            self.first = False
            return await super().complete(prompt, deadline_s)
        self.again += 1
        if self._file is not None:
            self._file.with_suffix(".txt").write_text(f"{prompt.system}\n\n{prompt.text}", "utf-8")
            answer = self._file.with_suffix(".reply.txt")
            if answer.exists():
                self.script.clear()
                text = answer.read_text("utf-8").replace("NONCE", prompt.nonce)
                return Reply(text, "replies", usage=Usage(cost=None))
        return await super().complete(prompt, deadline_s)


class Scene:
    """The case's repository, and the transcript of what the agent does in it."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.messages: list[Message] = []
        self._ids = 0
        for name, text in case.files.items():
            self._write(name, text)
            os.utime(folder / name, (BEFORE, BEFORE))  # Python tells sources apart by whole seconds
        env = {**os.environ, "GIT_COMMITTER_DATE": f"{BEFORE} +0000"}
        for args in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "before")):
            command = [*GIT, "-C", str(folder), *args]
            subprocess.run(command, check=True, capture_output=True, env=env)  # noqa: S603 - git

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)

    def _call(
        self, tool: str, arguments: dict[str, object], output: str = "", code: int | None = None
    ) -> ToolCall:
        self._ids += 1
        return ToolCall(f"c{self._ids}", tool, "completed", arguments, output=output, exit=code)

    def _shell(self, command: str) -> ToolCall:
        done = run(command, self.folder)
        return self._call("bash", {"command": command}, done.stdout, done.returncode)

    def task(self, request: str, steps: list[dict[str, str]], answer: str) -> Transcript:
        """The person asks, the agent does these steps and answers."""
        now = int(time.time() * 1000)
        calls = []
        for step in steps:
            if "run" in step:
                calls.append(self._shell(step["run"]))
            elif "delete" in step:
                calls.append(self._shell(f"rm {step['delete']}"))
            else:
                path, text = self.folder / step["write"], step.get("text", "")
                old = path.read_text("utf-8") if path.exists() else ""
                self._write(step["write"], text)
                if old:
                    arguments = {"filePath": str(path), "oldString": old, "newString": text}
                    calls.append(self._call("edit", dict(arguments)))
                else:
                    calls.append(self._call("write", {"filePath": str(path), "content": text}))
        n = len(self.messages)
        self.messages += [
            Message(f"m{n}", "user", at=now, text=request, human=True),
            Message(
                f"m{n + 1}",
                "assistant",
                at=now,
                text=answer,
                finish="stop",
                completed=now,
                calls=tuple(calls),
            ),
        ]
        return Transcript("ses_case", tuple(self.messages), directory=str(self.folder))


def snapshot(folder: Path) -> dict[str, str]:
    """Every file of the folder, those of git too."""
    return {
        str(p.relative_to(folder)): f"{p.lstat().st_mode:o} {'' if p.is_symlink() else hash(p.read_bytes())}"
        for p in folder.rglob("*")
        if p.is_file() or p.is_symlink()
    }


async def judged(case: Case, settings: str, root: Path, replies: Path | None = None) -> Outcome:
    """The case in a daemon of its own."""
    folder, state = root / "work", root / "state"
    folder.mkdir(parents=True)
    env = {"HOME": str(root), "REFLECTD_STATE_DIR": str(state), "REFLECTD_SOCKET": str(state / "s")}
    llm = Believer(case.name, replies)
    daemon = Daemon(config.from_text(settings), paths.resolve(env), provider=llm)
    try:
        engine, project = daemon.engine, str(folder)
        scene = Scene(case, folder)
        if case.chosen:
            await daemon.db.commit(*proofs.choose(project, Known(case.check), 1))
        if case.earlier:
            s = Session(id="ses_case", directory=str(folder), task="m0")
            await daemon.world.projects.read(str(folder))
            await engine.proving.judge(
                _case(scene.task("Run the checks", [{"run": c} for c in case.earlier], "Done."), daemon), s
            )
            await _stored(daemon)
        transcript = scene.task(case.request, case.steps, case.answer)
        before = snapshot(folder)
        llm.first = True
        task = transcript.task
        assert task is not None  # noqa: S101 - it was just put there
        s = Session(id="ses_case", directory=str(folder), task=task.id, phase="judging")
        await daemon.world.projects.read(str(folder))
        begun = time.monotonic()
        formed = await engine.proving.judge(_case(transcript, daemon), s)
        seconds = time.monotonic() - begun
        limits = daemon.world.limits(s)
        decision = decide(Round(s, formed.case, limits, daemon.clock.now_ms(), JudgedBy()), formed.opinion)
        after = snapshot(folder)
        changed = tuple(sorted(n for n in {*before, *after} if before.get(n) != after.get(n)))
        proof = decision.verdict.proof
        return Outcome(
            case.name, case.language, case.label, case.kind, decision.verdict.state,
            proof.state if proof else "", proof.text if proof else "", round(seconds, 2), changed,
            llm.again > 0,
        )  # fmt: skip
    finally:
        await _stored(daemon)
        await daemon.world.embeddings.close()
        daemon.db.close()


def _case(transcript: Transcript, daemon: Daemon) -> Any:  # noqa: ANN401 - judge.case.Case, another Case here
    return make_case(
        transcript,
        at=daemon.clock.now_ms(),
        nonce="n",
        templates=daemon.world.prompt_texts(transcript.directory),
    )


async def _stored(daemon: Daemon) -> None:
    """Until what was learned and spent is in the database."""
    await asyncio.gather(*daemon.world.tasks.running, return_exceptions=True)


def verify(case: Case, root: Path) -> str:
    """What is wrong with a label, by its hidden command; "" when it is right."""
    root.mkdir(parents=True)
    Scene(case, root).task(case.request, case.steps, case.answer)
    return (
        ""
        if (run(case.reveal, root).returncode == 0) == (case.label == "right")
        else f"{case.name}: not {case.label}"
    )


def table(found: list[Outcome]) -> list[str]:
    """The figures, by label, kind and language, and each case that was decided wrongly."""
    wrong, right = ([o for o in found if o.label == label] for label in ("wrong", "right"))
    stopped, back = sum(o.sent_back for o in wrong), sum(o.sent_back for o in right)
    proved = sum(o.proof == "passed" for o in right)
    times, touched = [o.seconds for o in found], [o.changed for o in found if o.changed]
    lines = [
        f"{len(found)} cases in {len({o.language for o in found})} languages; the judge believes every agent",
        f"wrong ones stopped   {counted(wilson(stopped, len(wrong)))}   aim {STOPPED:.2f}",
        f"right ones sent back {counted(wilson(back, len(right)))}   aim at most {SENT_BACK:.2f}",
        f"right ones proved    {counted(wilson(proved, len(right)))}",
        f"asked once more: {sum(o.again for o in found)}",
        f"seconds a case: median {statistics.median(times):.1f}, most {max(times):.1f}",
        f"files of the repository changed by a run: {sum(map(len, touched))} in {len(touched)} cases",
        "",
    ]
    for kind in sorted({o.kind for o in found}):
        of = [o for o in found if o.kind == kind]
        states = Counter(o.proof or "no run" for o in of)
        said = ", ".join(f"{n} {name}" for name, n in states.most_common())
        lines.append(f"{kind:13} {sum(o.sent_back for o in of):3} of {len(of):3} sent back   {said}")
    bad = [o for o in found if o.sent_back != (o.label == "wrong")]
    lines += ["", "decided wrongly:"] if bad else []
    return lines + [f"  {o.name} ({o.label}, {o.kind}): {o.told or 'no run'}" for o in bad]


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="evals.proof", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--cases", type=Path, help="a folder of cases of your own")
    parser.add_argument("--split", choices=(*SPLITS, "all"), default="heldout", help="which of ours")
    parser.add_argument("--where", choices=("folder", "worktree"), default="folder")
    parser.add_argument("--before", action="store_true", help="with proof.before")
    parser.add_argument(
        "--replies", type=Path, help="a folder for prompts that ask the judge again, and answers"
    )
    parser.add_argument("--only", default="", help="cases whose name begins like that")
    parser.add_argument("--verify", action="store_true", help="only compare labels with what `reveal` says")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    log.configure(config.from_text(), sys.stderr)
    try:
        splits = SPLITS if args.split == "all" else (args.split,)
        folders = [args.cases] if args.cases else [CASES / split for split in splits]
        cases = [c for folder in folders for c in load(folder) if c.name.startswith(args.only)]
    except UserError as e:
        print(f"evals.proof: {e}", file=sys.stderr)
        return 2
    settings = f'[proof]\nenabled = true\nwhere = "{args.where}"\nbefore = {str(args.before).lower()}\n'
    root = Path(tempfile.mkdtemp(prefix="rd-proof-")).resolve()
    if args.replies is not None:
        args.replies.mkdir(exist_ok=True)
    try:
        if args.verify:
            problems = [p for i, c in enumerate(cases) if (p := verify(c, root / str(i)))]
            print("\n".join(problems) or f"all {len(cases)} labels are what their hidden commands say")
            return 2 if problems else 0
        found = [asyncio.run(judged(c, settings, root / str(i), args.replies)) for i, c in enumerate(cases)]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps([asdict(o) for o in found], indent=1) if args.json else "\n".join(table(found)))
    wrong, right = ([o.sent_back for o in found if o.label == label] for label in ("wrong", "right"))
    missed = sum(wrong) < STOPPED * len(wrong) or sum(right) > SENT_BACK * len(right)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
