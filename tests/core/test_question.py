"""One question to a model: its prompt and schema, which replies count, the second try, and what is kept."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Reply, Usage
from daemon.core.question import Question, ask, cost_of, divided, fill, schema_of
from tests.support.questions import NONCE, asked


class Item(msgspec.Struct):
    name: str
    cites: str = ""


class Said(msgspec.Struct, kw_only=True, rename="camel"):
    why: str = ""
    nonce: str = ""
    next_step: Literal["go", "stop"]
    sure: Annotated[float, msgspec.Meta(ge=0, le=1)]
    items: list[Item | str] = []


GOOD: dict[str, Any] = {"why": "because", "nextStep": "go", "sure": 0.9, "items": [{"name": "a"}]}
TEXTS = {
    "step": "The rules. {nonce} {}",
    "step_case": "--- {nonce}\n{data}\n--- end {nonce}",
    "step_again": "{case}\n{why}\n{nonce}",
    "flat": 'Rules with {"braces"}\nmore\n{nonce} {data} {data}',
    "poem": "Write of {data}",
    "style": "Be short.",
}
STEP = Question("step", {"data": "{x} {nonce}"}, Said, purpose="judge", max_tokens=7)
TEXT = Question(
    "poem", {"data": "a tree"}, str, rules="style", check=lambda t: "" if "tree" in t else "no tree"
)


@pytest.mark.shows("I27")
def test_the_prompt_fences_the_data_and_keeps_the_rules_apart() -> None:
    """System prompt and data by the templates' names; braces in the data stay; a slot too many goes."""
    made = replace(STEP, nonce="n1", slots={"data": "{x} {nonce}", "more": "z"}).prompt(TEXTS)
    assert (made.system, made.text) == ("The rules. n1 {}", "--- n1\n{x} {nonce}\n--- end n1")
    assert (made.purpose, made.tier, made.nonce, made.max_tokens) == ("judge", "fast", "n1", 7)
    flat = replace(STEP, template="flat", purpose="", nonce="n1").prompt(TEXTS)
    assert (flat.system, flat.text) == ('Rules with {"braces"}\nmore', "n1 {x} {nonce} {x} {nonce}")
    assert flat.purpose == "flat"
    poem = TEXT.prompt(TEXTS)
    assert (poem.system, poem.text, poem.schema) == ("Be short.", "Write of a tree", None)
    assert divided("all {a}", {"a": "1"}) == ("", "all 1")
    assert fill("no slot", {}) == "no slot"


def test_the_schema_is_closed_and_ordered() -> None:
    """Each field is required, in the order of the struct; limits and defaults are for reading only."""
    text = {"type": "string"}
    item = {
        "type": "object",
        "properties": {"name": text, "cites": text},
        "required": ["name", "cites"],
        "additionalProperties": False,
    }
    fields = {
        "why": text,
        "nonce": text,
        "nextStep": {"type": "string", "enum": ["go", "stop"]},
        "sure": {"type": "number"},
        "items": {"type": "array", "items": item},
    }
    found = schema_of(Said)
    assert found == {**item, "properties": fields, "required": list(fields)}
    assert json.dumps(found["properties"]) == json.dumps(fields)


@pytest.mark.shows("I18", "I48")
@pytest.mark.parametrize(
    "change",
    [
        {"nextStep": "run"},
        {"nextStep": None},
        {"nextStep": ["go"]},
        {"sure": 1.5},
        {"sure": "0.9"},
        {"sure": True},
        {"sure": float("nan")},
        {"why": 3},
        {"items": [1]},
        {"items": "a"},
        {"nonce": "guess"},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_no_answer(change: dict[str, Any]) -> None:
    """Off-menu values, wrong types and a guessed marker never count; the reply is kept."""
    answer, _ = asked(STEP, GOOD | change, GOOD | change, texts=TEXTS)
    assert (answer.reply, len(answer.bad)) == (None, 2)
    assert answer.why
    assert {b.raw for b in answer.bad} == {r.text for r in answer.replies}
    if "nonce" not in change:
        with pytest.raises(BadReply, match="not of the agreed form"):
            STEP.read(Reply("", "t", data=GOOD | change))


@pytest.mark.shows("I18", "I27")
def test_the_last_object_with_the_marker_and_all_keys_counts() -> None:
    """One that lacks a key or the marker is passed over, wherever it stands; small slips are repaired."""
    good, other = json.dumps(GOOD | {"nonce": NONCE}), json.dumps(GOOD | {"nonce": "x", "nextStep": "stop"})
    lacks = json.dumps({"nonce": NONCE, "nextStep": "stop"})
    answer, _ = asked(STEP, f"{other}\n{good}\n{other} {lacks}", texts=TEXTS)
    assert answer.reply == Said(why="because", nonce=NONCE, next_step="go", sure=0.9, items=[Item("a")])
    slips = good.replace("because", "be\ncause").replace("]}", ",]}")
    answer, _ = asked(STEP, f"Here: {slips}", texts=TEXTS)
    assert answer.reply is not None
    assert answer.reply.why == "be\ncause"
    assert asked(STEP, other, lacks, texts=TEXTS)[0].why == "the reply holds no step object"
    assert STEP.read(Reply("", "t", data=GOOD)).next_step == "go"  # structured: no marker is needed


@pytest.mark.shows("I48")
def test_once_more_for_a_broken_form() -> None:
    """Asked twice with the reason, under the purpose of second tries; both replies are kept."""
    answer, prompts = asked(STEP, "no idea", GOOD, texts=TEXTS)
    assert (answer.reply and answer.reply.sure, answer.model, answer.provider) == (0.9, "script", "scripted")
    assert [p.purpose for p in prompts] == ["judge", "judge.again"]
    assert prompts[0].text in prompts[1].text
    assert "could not be used: the reply holds no step object" in prompts[1].text
    answer, _ = asked(STEP, BadReply("cut off", raw='{"a'), BadReply("cut off", raw="{"), texts=TEXTS)
    assert (answer.why, [b.raw for b in answer.bad]) == ("cut off", ['{"a', "{"])
    assert [b.purpose for b in answer.bad] == ["judge", "judge.again"]


def test_where_nothing_is_asked_twice() -> None:
    """Without a second template; when it is a second question already; when the rules say no."""
    once = {name: text for name, text in TEXTS.items() if name != "step_again"}
    assert len(asked(STEP, "no", texts=once)[1]) == 1
    answer, (prompt,) = asked(replace(STEP, again="Row E1 failed."), "no", texts=TEXTS)
    assert (answer.reply, prompt.purpose) == (None, "judge.again")
    assert "Row E1 failed." in prompt.text
    flow = ask(STEP, TEXTS)
    next(flow)
    with pytest.raises(StopIteration) as end:
        flow.send(Reply("", "offline", data={"unscored": "nothing is proven"}))
    unscored = end.value.value
    assert (unscored.reply, unscored.why, unscored.bad) == (None, "nothing is proven", ())


@pytest.mark.shows("I30")
@pytest.mark.parametrize("says", [(), ("rubbish",)], ids=["first", "again"])
def test_without_a_model_there_is_no_answer(says: tuple[str, ...]) -> None:
    """The reason is kept, and what was answered before."""
    answer, _ = asked(STEP, *says, Unavailable("model down"), texts=TEXTS)
    assert (answer.reply, answer.why, len(answer.bad)) == (None, "no model answered: model down", len(says))


def test_parts_of_an_answer_may_count() -> None:
    """Items of another form are left out of a list, where a question says so; other fields must be right."""
    parts = replace(STEP, parts=True)
    answer, _ = asked(parts, GOOD | {"items": [3, {"name": "a"}, {"name": []}, "b"]}, texts=TEXTS)
    assert answer.reply is not None
    assert answer.reply.items == [Item("a"), "b"]
    assert asked(parts, *[GOOD | {"sure": 2, "items": [3]}] * 2, texts=TEXTS)[0].reply is None
    many, _ = asked(parts, GOOD | {"items": ["b"] * 100 + [3] * 50_000}, texts=TEXTS)
    assert many.reply is not None
    assert many.reply.items == ["b"] * 100, "minutes, if each of them cost a look at all"


def test_a_text_and_a_question_of_its_own() -> None:
    """``str`` takes the whole reply; ``check`` refuses what the form can't; ``find`` reads prose."""
    assert asked(TEXT, " a tree \n", texts=TEXTS)[0].reply == "a tree"
    assert asked(TEXT, "a bush", texts=TEXTS)[0].why == "no tree"
    found = replace(STEP, find=lambda text: {**GOOD, "why": text})
    answer, _ = asked(found, "anything", texts=TEXTS)
    assert answer.reply is not None
    assert answer.reply.why == "anything"


@pytest.mark.shows("I41")
def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """Never smaller, and nobody's answer costs nothing known."""
    priced = tuple(Reply("x", "p", usage=Usage(1, 1, cost)) for cost in (0.5, 0.25))
    assert cost_of(priced) == 0.75
    assert cost_of((*priced, Reply("y", "p"))) is None
    assert cost_of(()) is None


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.shows("I18")
@given(st.dictionaries(st.sampled_from([*GOOD, "nonce", "x"]), values), st.text(max_size=300), st.booleans())
def test_any_reply_is_read_or_refused(data: dict[str, Any], text: str, parts: bool) -> None:
    """Nothing but an answer or ``BadReply`` ever comes out, and any data makes one fenced prompt."""
    question = replace(STEP, parts=parts, slots={"data": text}, nonce=NONCE)
    assert question.prompt(TEXTS).text == f"--- {NONCE}\n{text}\n--- end {NONCE}"
    for reply in (Reply(f"{text} {json.dumps(data)}", "p"), Reply("", "p", data=data)):
        with contextlib.suppress(BadReply):
            assert question.read(reply).next_step in {"go", "stop"}


@pytest.mark.parametrize(
    "text", ['{"a": ' * 50_000, '{"' * 150_000, "{" * 300_000, '{"nonce": "n0nce", ' * 20_000]
)
def test_hostile_replies_take_linear_time(text: str) -> None:
    """At most a few places from the end are tried."""
    assert asked(STEP, text, text, texts=TEXTS)[0].reply is None
