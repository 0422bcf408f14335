"""The files that others read, against the schemas they are promised by, made by the real engine.

``produced`` runs it; the samples in ``.reflection/samples`` are copies of what it made.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Self, get_args

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from daemon.core.verdict import FinalState, JudgedBy, Missing, Severity, Verdict
from daemon.files.verdict import Judging, alias_object, verdict_object
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash, write

OURS = Path(__file__).resolve().parents[2] / ".reflection"
SCHEMAS = {
    name: json.loads((OURS / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    for name in ("verdict", "alias", "case")
}
SESSION = "ses_58c3f0d91ffeHq2LmTzXw4Rb7K"
SIBLING = "ses_58c3c7a02ffeJd8NvBpQy1Gs5M"  # the same first eight characters, seconds later
RED = bash("pytest -q", 1, "1 failed, 11 passed in 0.4s")
GREEN = bash("pytest -q", 0, "12 passed in 0.4s")
Json = dict[str, Any]
INCOMPLETE = {
    "complete": False,
    "severity": "HIGH",
    "feedback": "`pytest -q` failed after the last edit (E2). Fix it and run `pytest -q` again.",
    "missing": [{"item": "`pytest -q` failed after the last edit", "cites": "E2"}],
    "next_actions": ["Fix it and run `pytest -q` again."],
    "requires_human_action": False,
}
WAITS = {"complete": False, "severity": "NONE", "feedback": "The agent asks.", "requires_human_action": True}


@dataclass
class Bench:
    """A workspace, a host and a daemon; what the daemon writes there is collected by name."""

    folder: Path
    llm: ScriptedLLM | None = None
    made: dict[str, Json] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        clock = FakeClock(ms=1_760_000_000_000)
        self.folder.mkdir()
        self.workspace = self.folder / "work"
        self.workspace.mkdir()
        self.sim = SimDaemon(self.folder, clock, self.llm)
        self.host = SimHost(str(self.workspace), clock)
        await self.host.connect(await self.sim.start())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.host.disconnect()
        await self.sim.stop()

    async def works(self, session: str, text: str, *tools: Json) -> None:
        """The agent's turn, judged to its end; a second has passed."""
        self.host.clock.advance(1)
        await self.host.works(session, text, tools=tools)
        await self.settle()

    async def asks(self, session: str) -> None:
        """A person begins a session."""
        await self.host.create(session)
        await self.host.types(session, "Reject an empty e-mail address on login")

    async def settle(self) -> None:
        """Until all is judged and on disk."""
        await self.sim.settle()
        await self.sim.daemon.engine.filing.drain()

    def keep(self, name: str, file: str) -> None:
        """The file as it is now, under the sample's name."""
        self.made[name] = json.loads((self.workspace / ".reflection" / file).read_text("utf-8"))


async def produced(folder: Path) -> dict[str, Json]:
    """Every kind of file, by the name of its sample, made by the engine with a scripted judge."""
    said = ScriptedLLM()
    said.add(INCOMPLETE, {"complete": True, "severity": "NONE"}, WAITS)
    async with Bench(folder / "rounds", said) as b:
        await b.asks(SESSION)
        await b.works(SESSION, "Done, empty addresses are rejected.", write("login.py"), RED)
        b.keep("verdict.incomplete", f"verdict_{SESSION}.json")
        b.keep("alias.incomplete", f"verdict_{SESSION[:8]}.json")
        (case,) = (b.workspace / ".reflection").glob(f"{SESSION}_*.json")
        b.keep("case", case.name)
        await b.works(SESSION, "Fixed, the tests pass.", write("login.py"), GREEN)
        b.keep("verdict.complete", f"verdict_{SESSION}.json")
        b.keep("alias.complete", f"verdict_{SESSION[:8]}.json")
        await b.asks(SIBLING)
        await b.works(SIBLING, "Should spaces count as empty?")
        b.keep("verdict.awaiting_user", f"verdict_{SIBLING}.json")
        b.keep("alias.stale", f"verdict_{SIBLING[:8]}.json")
        await b.host.types(SIBLING, "Yes")
        await b.settle()
        b.keep("verdict.outdated", f"verdict_{SIBLING}.json")
        await b.host.answers(SIBLING, "I will", finish="")
        await b.host.escapes(SIBLING)
        await b.settle()
        b.keep("verdict.stopped", f"verdict_{SIBLING}.json")
        made = b.made
    llm = ScriptedLLM(hold=asyncio.Event())
    async with Bench(folder / "judging", llm) as b:
        llm.add({"complete": True, "severity": "NONE"})
        await b.asks(SESSION)
        await b.host.works(SESSION)
        while not llm.prompts:
            await asyncio.sleep(0.001)
        await b.sim.daemon.engine.filing.drain()
        b.keep("verdict.judging", f"verdict_{SESSION}.json")
        llm.hold.set()  # type: ignore[union-attr]
        await b.settle()
    return made | b.made


@pytest.fixture
async def made(tmp_path: Path) -> dict[str, Json]:
    """What the engine writes today."""
    found = await produced(tmp_path)
    (tmp_path / "samples").mkdir()
    for name, content in found.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (tmp_path / "samples" / f"{name}.json").write_text(text + "\n", "utf-8")
    return found


def check(schema: str, found: object) -> None:
    """``found`` keeps what the schema promises."""
    Draft202012Validator(SCHEMAS[schema]).validate(found)


def shape(value: object) -> object:
    """Names and types, without the values."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value).__name__


def objects(value: Any) -> list[Json]:
    """Each object in it, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [o for each in inner for o in objects(each)]
    return [*found, value] if isinstance(value, dict) else found


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_are_schemas_and_say_which(schema: Json) -> None:
    """The schemas are valid (draft 2020-12), and every object of ours allows no other keys."""
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)
    ours = [o for o in objects(schema) if "properties" in o and o.get("type") == "object"]
    assert {o["additionalProperties"] for o in ours} == {False}


@pytest.mark.shows("I22")
async def test_the_engine_keeps_the_schemas_and_the_samples_are_its_work(
    made: dict[str, Json], tmp_path: Path
) -> None:
    """Files of a real run validate; each sample validates and has the shape of the file made now."""
    kept = {path.stem: json.loads(path.read_text("utf-8")) for path in (OURS / "samples").glob("*.json")}
    del kept["playbook"]  # no engine writes it: tests/learning/playbook/test_file.py
    assert sorted(kept) == sorted(made)
    for name, found in [*made.items(), *kept.items()]:
        check(name.partition(".")[0], found)
    new = f"copy the new samples from {tmp_path}/samples"
    assert {n: shape(v) for n, v in made.items()} == {n: shape(v) for n, v in kept.items()}, new
    stale = {"alias.stale", "verdict.outdated"}
    assert stale == {n for n, found in made.items() if found.get("timestamp") == 0}
    states = {n: found["state"] for n, found in made.items() if n.startswith("verdict.") and n not in stale}
    assert states == {name: name.partition(".")[2] for name in states}


@pytest.mark.shows("I20", "I22")
@pytest.mark.parametrize(("state", "severity"), [*product(get_args(FinalState), Severity)])
def test_every_verdict_the_code_can_make_is_in_the_schema(state: FinalState, severity: Severity) -> None:
    """Each state with each severity, delivered or not, with and without a sibling session."""
    missing = (Missing("x", "E2"),)
    by = JudgedBy("host", "acme/m1", 12, 0.003)
    full = Verdict("ses_123456", "msg_1", "msg_2", state, 5, severity, "do it", missing, ("go",), judge=by)
    prompting = Verdict("ses_123456", "msg_1", "msg_2", "incomplete", 5, severity, will_prompt=True)
    possible = not (full.complete and severity is Severity.BLOCKER)
    assert Draft202012Validator(SCHEMAS["verdict"]).is_valid(verdict_object(full)) is possible
    for verdict in (full, prompting, Judging("ses_123456", "msg_1", "msg_2", 5)):
        check("alias", alias_object(verdict, collides=True))
        check("alias", alias_object(verdict, collides=False))
    assert alias_object(full, collides=False)["timestamp"] == (5 if state == "complete" else 0)
    assert alias_object(prompting, collides=False)["timestamp"] == 5
    if possible:
        check("verdict", verdict_object(replace(full, at=0)))  # a newer task began


@pytest.mark.shows("I22")
@pytest.mark.parametrize(
    ("schema", "change"),
    [
        ("verdict", {"complete": True}),
        ("verdict", {"timestamp": -1}),
        ("verdict", {"state": "done"}),
        ("verdict", {"extra": 1}),
        ("verdict", {"judge": None}),
        ("verdict", {"severity": "high"}),
        ("alias", {"timestamp": 0, "complete": True}),
        ("alias", {"timestamp": 7, "state": "awaiting_user"}),
        ("alias", {"sessionId": "ses_123456"}),
    ],
)
def test_what_must_not_be_is_not_in_the_schemas(schema: str, change: Json) -> None:
    """The schemas would notice a fresh alias for a verdict nobody should act on."""
    kept = json.loads((OURS / "samples" / "verdict.incomplete.json").read_text("utf-8"))
    check(schema, kept)
    assert not Draft202012Validator(SCHEMAS[schema]).is_valid({**kept, **change})
