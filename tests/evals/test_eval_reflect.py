"""``make eval-reflect``: the questions of `/reflect` measured by files, on cases that have their form."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evals.reflect import (
    CASES,
    SIGNALS,
    Message,
    Outcome,
    Rule,
    by_keyword,
    precision,
    read_cases,
    recall,
    table,
)
from evals.replies import nonce_of
from tests.evals.running import REPO, evaluate

SAID = [
    {"text": "No, use strict mode", "type": "correction", "content": "Use strict mode"},
    {"text": "Add a page", "prior_assistant": None, "type": "none"},
]
MET = [{"rule": "Use bun", "statements": ["Use npm", "Run lint"], "contradicts": [1]}]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A folder with two messages and a rule."""
    for name, found in (("signals", SAID), ("contradicts", MET)):
        lines = "".join(json.dumps(case) + "\n" for case in found)
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    return tmp_path


def reply(folder: Path, **fields: Any) -> None:
    """Answer the one prompt of a case."""
    (prompt,) = (p for p in folder.glob("1-*.txt") if p.suffixes == [".txt"])
    nonce = re.findall(r"(?m)^The marker of this data is (\w+)\.$", prompt.read_text("utf-8"))[0]
    prompt.with_name(f"{prompt.stem}.reply.txt").write_text(json.dumps({"nonce": nonce, **fields}))


@pytest.mark.shows("RULES-01")
def test_any_model_is_measured_by_files(cases: Path, tmp_path: Path) -> None:
    """Both questions are dumped with the shipped prompts, answered, and counted; what waits is named."""
    dump = tmp_path / "dump"
    done = evaluate("reflect", "--cases", str(cases), "--dump", str(dump))
    assert done.stdout.startswith(f"2 prompts of 2 messages and 1 rules are in {dump}\n")
    assert (
        (dump / nonce_of("signals-001") / "1-signals.system.txt")
        .read_text("utf-8")
        .startswith("You read messages")
    )
    entry = {"content": "", "severity": "low", "against": []}
    first = {**entry, "n": 1, "type": "correction", "content": "Use strict mode", "group": 1}
    reply(dump / nonce_of("signals-001"), signals=[first, {**entry, "n": 2, "type": "positive", "group": 2}])
    args = ("--cases", str(cases), "--replies", str(dump), "--json")
    found = json.loads(evaluate("reflect", *args).stdout)
    assert (found["messages"], found["pairs"], found["pending"]) == (2, 0, 1)
    assert found["classes"]["correction"]["recall"]["hits"] == 1
    assert found["wrong"] == [{"text": "Add a page", "expect": "none", "got": "positive"}]
    reply(dump / nonce_of("contradicts-001"), contradicts=[1, 2], same=[])
    found = json.loads(evaluate("reflect", *args).stdout)
    assert (found["contradicts"]["precision"]["hits"], found["contradicts"]["precision"]["of"]) == (1, 2)
    assert (found["contradicts"]["recall"]["of"], found["pending"]) == (1, 0)


def test_a_reply_to_another_prompt_is_refused(cases: Path, tmp_path: Path) -> None:
    """And a folder that holds no dump."""
    dump = tmp_path / "dump"
    evaluate("reflect", "--cases", str(cases), "--dump", str(dump))
    reply(dump / nonce_of("contradicts-001"), contradicts=[1], same=[])
    (cases / "contradicts.jsonl").write_text(json.dumps({**MET[0], "rule": "Use deno"}))
    done = evaluate("reflect", "--cases", str(cases), "--replies", str(dump))
    assert (done.returncode, "1 replies answer other prompts" in done.stderr) == (2, True)
    shutil.rmtree(dump)
    dump.mkdir()
    done = evaluate("reflect", "--cases", str(cases), "--replies", str(dump))
    assert (done.returncode, "holds no dump of these cases" in done.stderr) == (2, True)


def test_the_cases_have_their_form() -> None:
    """Each message once, about half of them no signal; what is a wish is worded; numbers stand for
    statements.
    """
    messages = read_cases(CASES / "signals.jsonl", Message)
    assert len({(m.text, m.prior_assistant) for m in messages}) == len(messages) >= 700
    kinds = Counter(m.type for m in messages)
    assert 0.4 <= kinds["none"] / len(messages) <= 0.6
    for message in messages:
        assert bool(message.content) is (message.type in SIGNALS[:2]), message.text
    for rule in read_cases(CASES / "contradicts.jsonl", Rule):
        assert set(rule.contradicts) <= set(range(1, len(rule.statements) + 1)), rule.rule


def test_the_figures() -> None:
    """Precision is of what was called so, recall of what is so; a wrong class counts against both."""
    found = [Outcome("t", *pair) for pair in (("correction", "correction"), ("correction", "instruction"))]
    found += [Outcome("t", *pair) for pair in (("negative", ""), ("none", "positive"), ("none", "none"))]
    assert (precision(found, SIGNALS).hits, precision(found, SIGNALS).of) == (1, 3)
    assert (recall(found, SIGNALS).hits, recall(found, SIGNALS).of) == (1, 3)
    assert "  none called positive: t" in table(found, [])
    assert "  negative called nothing: t" in table(found, [])


@pytest.mark.shows("TR3")
def test_the_page_says_what_keywords_alone_find() -> None:
    """`design/rules.md` has the figures of a person without a model."""
    page = (REPO / "design" / "rules.md").read_text("utf-8")
    lines = by_keyword(read_cases(CASES / "signals.jsonl", Message))
    figures = [re.findall(r"\d+ of \d+, \d\.\d\d \([^)]*\)", line) for line in lines[1:]]
    assert [f for (f,) in figures if f not in page] == []


def test_wrong_cases_are_named(cases: Path, tmp_path: Path) -> None:
    """The file, the line and what is wrong."""
    (cases / "signals.jsonl").write_text('{"text": "x", "type": "none"}\n\n{"text": "y"}\n')
    done = evaluate("reflect", "--cases", str(cases))
    assert done.returncode == 2
    assert "signals.jsonl, line 3" in done.stderr
    assert evaluate("reflect", "--cases", str(tmp_path / "none")).returncode == 2
