"""``make eval-judge DUMP=DIR`` and ``REPLIES=DIR``: any model is measured by files, nothing is guessed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.core.llm import Prompt
from daemon.redact import redact
from evals.judge import fenced, read_cases
from evals.replies import Replies, nonce_of
from tests.evals.running import evaluate

DATA = Path(__file__).resolve().parents[1] / "data" / "judge"
DONE = "caddy_headers_validated_and_reloaded"
OPEN = "cargo_release_bumps_two_of_three_crates"
WAITS = "apple_distribution_certificate_has_expired"
NAMES = sorted([DONE, OPEN, WAITS])
AT = {name: nonce_of(name) for name in NAMES}  # where a dump has them
FIRST = {"1-judge.system.txt", "1-judge.txt"}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A folder with one case of each class."""
    folder = tmp_path / "cases"
    folder.mkdir()
    for name in NAMES:
        shutil.copy(DATA / f"{name}.json", folder)
    return folder


@pytest.fixture
def dumped(cases: Path, tmp_path: Path) -> Path:
    """Their prompts."""
    folder = tmp_path / "dump"
    done = evaluate("judge", "--cases", str(cases), "--dump", str(folder))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"3 prompts of 3 cases are in {folder}")
    return folder


def judged(cases: Path, folder: Path) -> dict[str, Any]:
    """The figures by the replies in ``folder``."""
    done = evaluate("judge", "--cases", str(cases), "--replies", str(folder), "--json", "--small")
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["provider"] == "replies"
    return found["splits"]["tuning"] | {"got": {o["name"]: o for o in found["splits"]["tuning"]["outcomes"]}}


def reply(prompt: Path, **said: object) -> None:
    """Answer a prompt as a model does that was given its file: in prose, with the marker of the data."""
    (nonce,) = set(re.findall(r"(?m)^The marker of this data is (\w+)\.$", prompt.read_text("utf-8")))
    text = f"Here is my verdict.\n```json\n{json.dumps({'nonce': nonce} | said)}\n```\n"
    prompt.with_name(f"{prompt.stem}.reply.txt").write_text(text)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_every_prompt_is_a_file(cases: Path, dumped: Path) -> None:
    """System text and data apart, fenced alike at each dump, for nobody else to read."""
    before = files(dumped)
    assert set(before) == {f"{AT[name]}/{file}" for name in NAMES for file in FIRST}
    assert dumped.stat().st_mode & 0o077 == 0
    for case in read_cases(cases, "tuning"):
        sent = fenced(case).loaded.case
        assert before[f"{AT[case.name]}/1-judge.system.txt"].decode() == sent.templates["judge"]
        data = before[f"{AT[case.name]}/1-judge.txt"].decode()
        assert (data.count(nonce_of(case.name)) > 5, redact(sent.requests[0]) in data) == (True, True)
    assert len({nonce_of(name) for name in NAMES}) == 3
    assert evaluate("judge", "--cases", str(cases), "--dump", str(dumped)).returncode == 0
    assert files(dumped) == before


def test_replies_are_judged_as_any_models_are(cases: Path, dumped: Path) -> None:
    """Who has no reply yet is pending, in no figure; a second look's prompt follows the first reply."""
    for name in NAMES:
        (dumped / AT[name] / "1-judge.reply.txt").write_text("\n")  # what a failed command leaves behind
    found = judged(cases, dumped)
    assert (found["cases"], found["pending"], found["coverage"]["of"]) == (0, 3, 0)

    reply(dumped / AT[DONE] / "1-judge.txt", complete=True)
    reply(dumped / AT[WAITS] / "1-judge.txt", complete=False, severity="NONE", requires_human_action=True)
    missing = [{"item": "tidepool-cli is still at its old version", "cites": "M1"}]
    reply(
        dumped / AT[OPEN] / "1-judge.txt",
        complete=False,
        severity="HIGH",
        missing=missing,
        feedback="Bump it.",
    )
    found = judged(cases, dumped)
    assert {name: o["got"] for name, o in found["got"].items()} == {
        DONE: "complete",
        OPEN: "pending",
        WAITS: "awaiting_user",
    }
    assert (found["cases"], found["right"], found["pending"]) == (2, 2, 1)
    second = dumped / AT[OPEN] / "2-judge.second.txt"
    assert found["got"][OPEN]["why"] == str(second)
    assert missing[0]["item"] in second.read_text("utf-8")
    assert "stop" in second.with_name("2-judge.second.system.txt").read_text("utf-8")

    reply(second, defended=False, reasons="One crate was left out.")
    done = evaluate("judge", "--cases", str(cases), "--replies", str(dumped))
    assert done.stdout.startswith("replies, tuning: 3 cases, 3 right, 0 unscored\n")
    assert "speaks on 3 of 3, " in done.stdout
    assert re.search(r"tokens \d+ in and \d+ out, cost unknown", done.stdout), "by their length"
    assert "nothing wrong" in done.stdout
    assert not any(word in done.stdout for word in ("pending", "aims"))


def test_a_reply_without_the_marker_is_asked_again(cases: Path, dumped: Path) -> None:
    """Replies are read like any model's: one in a wrong form is asked again, twice wrong is unscored."""
    prompt = dumped / AT[DONE] / "1-judge.txt"
    reply(prompt, complete=True, nonce="of another case")
    again = dumped / AT[DONE] / "2-judge.again.txt"
    assert judged(cases, dumped)["got"][DONE]["why"] == str(again)
    again.with_name("2-judge.again.reply.txt").write_text("It is complete, I think.")
    found = judged(cases, dumped)
    assert (found["got"][DONE]["got"], found["unscored"], found["pending"]) == ("unscored", 1, 2)
    done = evaluate("judge", "--cases", str(cases), "--replies", str(dumped))
    assert "replies, tuning: 1 cases, 0 right, 1 unscored, 2 pending\n" in done.stdout
    assert f"  {OPEN}: {dumped / AT[OPEN] / '1-judge.txt'}\n" in done.stdout


def test_a_reply_to_another_prompt_is_refused(cases: Path, dumped: Path) -> None:
    """A reply to an older prompt says nothing of the one of today: neither a dump nor a run takes it."""
    prompt = dumped / AT[DONE] / "1-judge.txt"
    reply(prompt, complete=True)
    prompt.write_text(prompt.read_text("utf-8") + "older")
    before = files(dumped / AT[DONE])
    for option in ("--replies", "--dump"):
        done = evaluate("judge", "--cases", str(cases), option, str(dumped))
        assert (done.returncode, done.stdout) == (2, "")
        assert "1 replies answer other prompts than these cases have now: remove them" in done.stderr
        assert str(prompt.with_name("1-judge.reply.txt")) in done.stderr
        assert files(dumped / AT[DONE]) == before
    prompt.with_name("1-judge.reply.txt").unlink()
    assert judged(cases, dumped)["pending"] == 3
    assert "older" not in prompt.read_text("utf-8")


def test_replies_may_come_without_their_prompts(cases: Path, dumped: Path, tmp_path: Path) -> None:
    """Replies alone are enough, as each echoes its marker; their prompts are put beside them."""
    reply(dumped / AT[DONE] / "1-judge.txt", complete=True)
    alone = tmp_path / "alone"
    (alone / AT[DONE]).mkdir(parents=True)
    shutil.copy(dumped / AT[DONE] / "1-judge.reply.txt", alone / AT[DONE])
    found = judged(cases, alone)
    assert (found["got"][DONE]["got"], found["pending"]) == ("complete", 2)
    assert {p.name for p in (alone / AT[DONE]).iterdir()} == FIRST | {"1-judge.reply.txt"}


def test_folders_that_are_refused(cases: Path, dumped: Path, tmp_path: Path) -> None:
    """A folder with anything else in it, one without a dump, and a file: exit code 2, nothing is written."""
    (dumped / "notes.txt").write_text("mine")
    other, empty, file = tmp_path / "other", tmp_path / "empty", tmp_path / "file"
    (other / "holiday").mkdir(parents=True)
    empty.mkdir()
    file.write_text("")
    before = files(tmp_path)
    for option, folder, words in (
        ("--dump", dumped, "notes.txt is none of them"),
        ("--dump", other, "holiday is none of them"),
        ("--dump", file, "File exists"),
        ("--replies", empty, "holds no dump of these cases"),
        ("--replies", tmp_path / "nowhere", "make one with --dump"),
    ):
        done = evaluate("judge", "--cases", str(cases), option, str(folder))
        assert (done.returncode, words in done.stderr) == (2, True), (option, done)
    assert files(tmp_path) == before
    assert not (tmp_path / "nowhere").exists()


async def test_the_provider_counts_the_calls_of_each_case(tmp_path: Path) -> None:
    """Side by side, each case has its own numbers; in a dump even a reply that is there is not read."""
    folder, texts = tmp_path, {"a": "{}", "b": "[]"}
    provider = Replies(folder, texts, dump=False)
    for name, text in texts.items():
        (folder / nonce_of(name)).mkdir()
        (folder / nonce_of(name) / "1-judge.reply.txt").write_text(text)
    for name, text in texts.items():
        asked = Prompt("judge", "judge", "rules", "data", nonce=nonce_of(name))
        said = await provider.complete(asked, 1)
        assert (said.text, said.provider, said.usage.cost) == (text, "replies", None)
        with pytest.raises(Unavailable):
            await provider.complete(asked, 1)
    waiting = {name: folder / nonce_of(name) / "2-judge.txt" for name in texts}
    assert (provider.pending, provider.stale) == (waiting, [])
    with pytest.raises(Unavailable):
        await Replies(folder, texts, dump=True).complete(asked, 1)
