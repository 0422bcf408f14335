"""Files to cases, and the labelled cases that come with the project."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.core.errors import UserError
from daemon.core.transcript import Transcript
from daemon.llm.offline import OfflineProvider
from daemon.redact import redact_value
from daemon.replay.cases import Label, Loaded, load, replay
from daemon.testing import TEMPLATES, FakeClock
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash, write

DATA = Path(__file__).resolve().parents[1] / "data"
FILES = sorted((DATA / "judge").glob("*.json"))
EXPORT = DATA / "exports" / "opencode_1.18.json"
SAMPLE = DATA.parents[1] / ".reflection" / "samples" / "case.json"
SPLITS = ("tuning", "fresh")
Json = dict[str, Any]


def templates(directory: str) -> dict[str, str]:
    """The prompts in force; the folder's name is in them."""
    return TEMPLATES | {"judge_again": directory}


def loaded(found: object, name: str = "case.json") -> Loaded:
    return load(json.dumps(found).encode(), name, templates)


def ours(path: Path) -> Json:
    found: Json = json.loads(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_labelled_case(path: Path) -> None:
    """Each case decodes as it stands, has a task, a turn, calls, a label with its reason, and no secret."""
    found = ours(path)
    transcript = msgspec.convert(found["transcript"], Transcript)
    label = msgspec.convert(found["label"], Label)
    assert transcript.task is not None
    assert transcript.turn is not None
    assert transcript.turn.text
    assert len([c for m in transcript.messages for c in m.calls]) >= 2
    assert label.why.endswith((".", "。"))
    assert found["split"] in SPLITS
    assert found["tags"]
    case = load(path.read_bytes(), path.name, templates)
    assert (case.label, case.split) == (label, found["split"])
    assert redact_value(found) == found
    assert path.read_text("utf-8") == json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def test_the_labelled_cases_as_a_set() -> None:
    """At least 60, two thirds of them hard; each part has the labels in like shares."""
    cases = {path.stem: ours(path) for path in FILES}
    assert len(cases) >= 60
    assert sum("hard" in c["tags"] for c in cases.values()) * 3 >= len(cases) * 2
    count = Counter((c["split"], c["label"]["expect"]) for c in cases.values())
    of = Counter(c["split"] for c in cases.values())
    shares = {"incomplete": 0.4, "complete": 0.4, "awaiting_user": 0.2}
    for split, (expect, share) in product(of, shares.items()):
        assert abs(count[split, expect] / of[split] - share) < 0.1, (split, expect)
    first = [next(m for m in c["transcript"]["messages"] if m.get("human")) for c in cases.values()]
    requests = [message["text"] for message in first]
    twice = [c["label"] for c in cases.values() if "second" in c["label"]]
    agreed = f"{sum(label['second'] == label['expect'] for label in twice)} of {len(twice)}"
    assert agreed in (DATA / "judge" / "README.md").read_text("utf-8")
    sessions = {c["transcript"]["session"] for c in cases.values()}
    assert len(set(requests)) == len(sessions) == len(cases)


async def test_what_the_daemon_saves_is_judged_alike(tmp_path: Path) -> None:
    """A saved case, judged again by the same rules, gives the saved verdict, on evidence computed anew."""
    (tmp_path / "work").mkdir()
    clock = FakeClock(ms=1_760_000_000_000)
    sim = SimDaemon(tmp_path, clock)
    host = SimHost(str(tmp_path / "work"), clock)
    await host.connect(await sim.start())
    await host.create("ses_saved")
    await host.types("ses_saved", "Fix the login and run the tests")
    await host.works("ses_saved", "Fixed.", tools=[write("login.py"), bash("pytest -q", 1, "1 failed in 1s")])
    await sim.settle()
    await sim.daemon.engine.filing.drain()
    await host.disconnect()
    await sim.stop()
    (path,) = (tmp_path / "work" / ".reflection").glob("ses_saved_*.json")
    found = load(path.read_bytes(), path.name, templates)
    assert found.label is None
    judged = ours(path)["verdict"]
    again = (await replay(found.case, OfflineProvider())).decision.verdict
    same = ("session", "task", "turn", "state", "severity", "feedback")
    assert {k: getattr(again, k) for k in same} == {k: judged[k] for k in same}
    assert again.state == "incomplete"

    stored = ours(path)
    stored["case"] |= {"changed": None, "prompt_tokens": 3_000}  # `changed`: of an older version
    case = loaded(stored).case
    assert case.prompt_tokens == 3_000
    stored["case"]["evidence"]["rows"] = []  # rows of other rules: not what is judged
    assert loaded(stored).case.evidence == found.case.evidence
    stored["case"]["evidence"]["rows"] = [{"id": "E1", "kind": "of another version", "text": ""}]
    assert loaded(stored).case.evidence == found.case.evidence
    stored["case"]["transcript"] = None  # there is nothing to compute from
    with pytest.raises(UserError, match="transcript` is missing"):
        loaded(stored)


@pytest.mark.shows("I27")
def test_a_fresh_nonce_and_the_prompts_of_today() -> None:
    """What fenced the text once may stand in it by now; a file's own prompts are never used."""
    stored = ours(SAMPLE)
    stored["case"]["templates"] = {"judge": "Say complete.", "judge_case": "{nonce}"}
    one, two = loaded(stored), loaded(stored)
    assert len({one.case.nonce, two.case.nonce, stored["case"]["nonce"]}) == 3
    assert one.case.templates == templates(one.case.transcript.directory if one.case.transcript else "")
    assert loaded(ours(EXPORT)).case.templates == templates("/home/mia/work/hello")


def test_labels_and_gates() -> None:
    """What was judged stays beside what a person says; gate lines are kept, and no label is no error."""
    label = {"expect": "complete", "why": "Old failure.", "by": "person"}
    found = loaded(ours(SAMPLE) | {"label": label, "split": "tuning"})
    assert (found.label, found.split) == (Label("complete", "Old failure.", "person"), "tuning")
    stored = ours(FILES[0])
    del stored["label"]
    gate = "- run `make test` before you are done"
    found = loaded(stored | {"project": gate})
    assert (found.label, found.case.project) == (None, gate)


@pytest.mark.shows("I4")
def test_a_real_export() -> None:
    """opencode 1.18.33's own export: exit codes, our feedback (never a person's words), models, order."""
    found = load(EXPORT.read_bytes(), "export.json", templates)
    case, transcript = found.case, found.case.transcript
    assert transcript is not None
    assert found.label is None
    assert case.requests == ("Write hello.py; make test must pass",)
    assert [c.exit for c in transcript.calls] == [None, 2, None, 0]
    assert [bool(m.order) for m in transcript.messages if m.role == "user"] == [False, True]
    assert case.final == "Done: make test passes."
    assert case.model is not None
    assert (case.model.provider, case.model.model) == ("fake", "fake-1")
    assert transcript.directory == "/home/mia/work/hello"
    bare = loaded(ours(EXPORT)["messages"])
    assert bare.case.evidence.of("check")[-1].outcome == "passed"
    assert bare.case.session == case.session


def test_the_todo_list_of_an_export() -> None:
    """An export has no todo list: the last finished todowrite is the list, a failed one is not."""
    messages = ours(EXPORT)["messages"]

    def wrote(status: str, *todos: str) -> Json:
        listed = [{"content": t, "status": "pending"} for t in todos]
        state = {"status": status, "input": {"todos": listed}, "output": "", "error": "no", "metadata": {}}
        return {"type": "tool", "tool": "todowrite", "callID": f"c{todos}", "state": state}

    messages[1]["parts"] += [wrote("completed", "one"), wrote("completed", "two"), wrote("error", "three")]
    transcript = loaded(messages).case.transcript
    assert transcript is not None
    assert [t.text for t in transcript.todos] == ["two"]


@pytest.mark.shows("I46")
def test_secrets_are_gone() -> None:
    """An export is the host's own text; nothing of a secret in it reaches a case."""
    secret = "ghp_" + "a1B2" * 10
    text = EXPORT.read_text("utf-8").replace("hello.py", f"hello.py {secret}")
    case = load(text.encode(), "export.json", templates).case
    assert secret in text
    assert secret.encode() not in msgspec.json.encode(case)


ANSWER = {"id": "a", "role": "assistant", "text": "Done.", "finish": "stop"}
ASKED = {"id": "u", "role": "user", "text": "Do it", "human": True}
OPEN, WHOLE = ({"session": "s", "messages": m} for m in ([ASKED], [ASKED, ANSWER]))
UNANSWERED = json.dumps({"version": 1, "transcript": OPEN}).encode()
MISLABELLED = json.dumps({"version": 1, "label": {"expect": "done"}, "transcript": WHOLE}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b"7", "none of these"),
        (b"{}", "none of these"),
        (b'{"version": 1}', "opencode export"),
        (b'{"version": 2, "case": {}}', "version 2"),
        (b'{"version": 1, "case": 5}', "`case` is not an object"),
        (b'{"version": 1, "case": {"session": "s"}}', "`case` can't be read"),
        (b'{"version": 1, "transcript": {"session": 5}}', "transcript.session"),
        (b'{"version": 1, "transcript": {"session": "s"}}', "no message that a person typed"),
        (b'{"messages": []}', "no message that a person typed"),
        (b'{"messages": 5}', "no list of messages"),
        (b"[1]", "no list of messages"),
        (b'{"messages": [{"info": 5, "parts": 5}, {}]}', "no message that a person typed"),
        (UNANSWERED, "not answered"),
        (MISLABELLED, "label.expect"),
    ],
    ids=lambda v: v[:40].decode("latin-1") if isinstance(v, bytes) else "",
)
def test_what_is_no_case(data: bytes, words: str) -> None:
    """Bad input: one sentence that names the file, what is wrong and where; never a trace."""
    with pytest.raises(UserError, match=r"bad\.json") as e:
        load(data, "bad.json", templates)
    assert words in str(e.value)
