"""The section of learned rules: what it holds, and each change of it, with everything else byte for byte."""

from __future__ import annotations

import codecs
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import UserError
from daemon.learning.rules.section import (
    BEGIN,
    Document,
    Rule,
    checked,
    decoded,
    ending,
    joined,
    scan,
    written,
)

DAY = "2025-11-27"
FR5 = """\
## Learned Rules (via /reflect)
<!-- Auto-managed by /reflect - manual edits may be overwritten -->

### Active Rules
- **[rule-001]** Always use TypeScript strict mode (learned: 2025-11-27)
- **[rule-002]** Run lint before committing (learned: 2025-11-25)

### Archived Rules
<!-- Rules no longer active but kept for history -->
- **[rule-003]** Use npm not yarn (archived: 2025-11-26, reason: switched to bun)
"""
BY_HAND = """\
# Ours

## Learned Rules (via /reflect)
<!-- Auto-managed by /reflect - manual edits may be overwritten -->

My own words about these rules.

### Active Rules
* __[rule-001]__ Always use TypeScript
  strict mode (learned: 2025-11-27)
  - a note of mine

    and its second paragraph
- Never use tabs
- **[rule-002]** Run lint

### My notes
text

## Next
"""


def rules(data: bytes) -> list[tuple[str, str, bool]]:
    return [(r.id, r.text, r.active) for r in Document(data).rules]


@pytest.mark.shows("FR5")
def test_the_section_of_the_requirement_is_written_word_for_word() -> None:
    """Learned one after the other, and one archived, the file is the requirement's own text."""
    data = Document(b"").append("rule-001", "Always use TypeScript strict mode", "2025-11-27")
    data = Document(data).append("rule-003", "Use npm not yarn", "2025-11-24")
    data = Document(data).append("rule-002", "Run lint before committing", "2025-11-25")
    doc = Document(data)
    assert doc.archive(doc.rules[1], "2025-11-26", "switched to bun").decode() == FR5


@pytest.mark.shows("FR5", "TR5", "AC-REFLECT-09")
def test_every_operation() -> None:
    """Append, archive with a reason, update the text, remove: each touches its own lines only."""
    doc = Document(FR5.encode())
    assert [r.active for r in doc.rules] == [True, True, False]
    assert doc.rules[2].reason == "switched to bun"
    line = "- **[rule-004]** Use bun (learned: 2025-11-27)\n"
    lint = "- **[rule-002]** Run lint before committing (learned: 2025-11-25)\n"
    assert doc.append("rule-004", "Use bun", DAY).decode() == FR5.replace(lint, lint + line)
    gone = "- **[rule-002]** Run lint before committing (archived: 2025-11-27, reason: CI does it)\n"
    assert doc.archive(doc.rules[1], DAY, "CI does it").decode() == FR5.replace(lint, "") + gone
    new = lint.replace("before committing", "first")
    assert doc.reword(doc.rules[1], "Run lint first").decode() == FR5.replace(lint, new)
    assert doc.remove(doc.rules[1]).decode() == FR5.replace(lint, "")
    assert doc.remove(doc.rules[2]).decode() == FR5[: FR5.index("- **[rule-003]")]


def test_a_file_without_the_section_gets_it_at_its_end() -> None:
    """The old content is the beginning of the new one; the section is the requirement's."""
    rule = f"- **[rule-001]** Use bun (learned: {DAY})"
    lines = [line for line in FR5.splitlines() if "**[" not in line]
    lines.insert(lines.index("### Active Rules") + 1, rule)
    new = "\n".join(lines)
    for old, made in [
        ("", f"{new}\n"),
        ("# A\n", f"# A\n\n{new}\n"),
        ("# A\n\n", f"# A\n\n{new}\n"),
        ("# A", f"# A\n\n{new}"),
        ("# A\r\nb\r\n", f"# A\nb\n\n{new}\n".replace("\n", "\r\n")),
        ("\ufeff# A\r\nb", f"\ufeff# A\nb\n\n{new}".replace("\n", "\r\n")),
    ]:
        assert Document(old.encode()).append("rule-001", "Use bun", DAY).decode() == made


def test_a_section_that_a_person_edited_is_respected() -> None:
    """Wrapped lines, other marks, notes below a rule, lists of their own: read, and never rewritten."""
    doc = Document(BY_HAND.encode())
    assert rules(BY_HAND.encode()) == [
        ("rule-001", "Always use TypeScript strict mode", True),
        ("rule-002", "Run lint", True),
    ]
    assert [(o.text, o.line, o.part) for o in doc.own()] == [
        ("My own words about these rules.", 6, "section"),
        ("a note of mine", 11, "active"),
        ("and its second paragraph", 13, "active"),
        ("Never use tabs", 14, "active"),
        ("text", 18, "section"),
    ]
    note = "  - a note of mine\n\n    and its second paragraph\n"
    archived = doc.archive(doc.rules[0], DAY, "no more").decode()
    start = BY_HAND.index("* __[rule-001]__")
    assert archived == (
        BY_HAND[:start]
        + BY_HAND[BY_HAND.index("- Never use tabs") : BY_HAND.index("\n## Next")]
        + "\n### Archived Rules\n<!-- Rules no longer active but kept for history -->\n"
        + f"- **[rule-001]** Always use TypeScript strict mode (archived: {DAY}, reason: no more)\n{note}"
        + "\n## Next\n"
    )
    with pytest.raises(UserError, match=r"below rule-001 stand lines of your own \(from line 11\)"):
        doc.remove(doc.rules[0])


def test_a_heading_that_is_gone_is_made_again() -> None:
    """Where a person deleted a part, it comes back behind the others; their lines stay where they are."""
    title = "## Learned Rules (via /reflect)\n"
    bare = f"{title}- **[rule-009]** Use x (archived: {DAY})\n\n# End\n"
    assert rules(bare.encode()) == [("rule-009", "Use x", False)]
    doc = Document(bare.encode())
    made = f"{title}- **[rule-009]** Use x (archived: {DAY})\n\n### Active Rules\n"
    assert doc.append("rule-010", "Use y", DAY).decode().startswith(f"{made}- **[rule-010]** Use y")
    only = f"{title}\nmine\n\n### Archived Rules\n- **[rule-009]** Use x (archived: {DAY})\n"
    found = Document(only.encode()).append("rule-010", "Use y", DAY).decode()
    order = ["mine", "### Archived Rules", "- **[rule-009]**", "### Active Rules", "- **[rule-010]**"]
    assert [found.index(text) for text in order] == sorted(found.index(text) for text in order)


@pytest.mark.parametrize("fence", ["```md\n{}```\n", "<!--\n{}\n-->\n", "~~~~\n{}~~~~\n"])
def test_a_quoted_section_is_not_the_section(fence: str) -> None:
    """A page that explains the section, in a fence or a comment, is left alone: the real one is made."""
    quoted = fence.format(FR5.replace("<!--", "<!-").replace("-->", "->") if "<!--" in fence else FR5)
    doc = Document(quoted.encode())
    assert (doc.there, doc.rules, doc.own()) == (False, (), [])
    assert doc.append("rule-001", "Use bun", DAY).decode().startswith(quoted + "\n## Learned Rules")


def test_behind_an_open_fence_nothing_is_written() -> None:
    """A section there would be code: the person is told, and no bytes come out."""
    with pytest.raises(UserError, match="close the code fence or the comment that is open"):
        Document(b"# A\n```\ncode\n").append("rule-001", "Use bun", DAY)


def test_another_section_of_that_name_is_a_person_s_own() -> None:
    """`## Learned Rules` without `(via /reflect)`, and a heading of another level."""
    for heading in ("## Learned Rules", "# Learned Rules (via /reflect)", "## Learned rules (via /reflect)"):
        assert not Document(f"{heading}\n- **[rule-001]** Use x\n".encode()).there


def test_two_sections_of_a_merge_are_both_read() -> None:
    """The same id twice is two rules; a new one goes to the first section; each line is changed by itself."""
    twice = f"{FR5}\n{FR5.replace('strict mode', 'loose mode')}"
    doc = Document(twice.encode())
    assert [r.id for r in doc.rules] == ["rule-001", "rule-002", "rule-003"] * 2
    changed = doc.archive(doc.rules[3], DAY, "ours counts").decode()
    assert "strict mode (learned" in changed
    assert "loose mode (archived" in changed


def test_a_next_paragraph_is_not_swallowed() -> None:
    """It follows without a blank line: the new rule leaves one."""
    text = "## Learned Rules (via /reflect)\n### Active Rules\nNext\n---\n"
    found = Document(text.encode()).append("rule-001", "Use x", DAY).decode()
    assert found.endswith(f"- **[rule-001]** Use x (learned: {DAY})\n\nNext\n---\n")


LINES = st.one_of(
    st.sampled_from([
        "", "", "text of a person", "- an item", "  indented", "    deep", "# Top", "## Other", "### Part",
        "Title", "---", "===", "```", "~~~", "<!-- a comment -->", "<!--", "-->", "<pre>", "</pre>",
        "## Learned Rules (via /reflect)", "### Active Rules", "### Archived Rules", "| a | b |", "1. one",
        "- **[rule-001]** Use npm (learned: 2025-01-01)", "* __[rule-2]__ Use tabs", "\ufeff",
        "- **[rule-003]** Old (archived: 2025-01-03, reason: new)", "  wrapped (learned: 2025-01-02)",
        "  - **[rule-004]** nested", "> quote",
    ]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12),
)  # fmt: skip
FILES = st.builds(
    lambda lines, end, last, bom: (bom + end.join(lines) + last * end).encode(),
    st.lists(LINES, max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from(["", "\ufeff"]),
)


def is_part(old: list[str], new: list[str]) -> bool:
    """Whether the old lines stand in the new ones, in order."""
    rest = iter(new)
    return all(line in rest for line in old)


def texts(data: bytes) -> list[str]:
    return [line.text for line in scan(data.decode())]


@pytest.mark.shows("TR5", "RULES-03")
@given(FILES, st.text(st.characters(codec="utf-8"), max_size=40))
def test_appending_changes_nothing_else(data: bytes, text: str) -> None:
    """For any file: the old bytes are there from the beginning and to the end, and the rule is read again."""
    doc = Document(data)
    try:
        made = doc.append("rule-090", text, DAY)
    except UserError:
        return
    found = Document(made)
    assert found.there
    new = next(r for r in found.rules if r.id == "rule-090")
    assert (new.text, new.active, new.day) == (" ".join(text.split()), True, DAY)
    before = next((i for i, (a, b) in enumerate(zip(data, made, strict=False)) if a != b), len(data))
    after = len(data) - before
    assert data[:before] == made[:before]
    assert after == 0 or made.endswith(data[before:])
    assert joined(doc.lines) == data


@pytest.mark.shows("RULES-03")
@given(FILES, st.data())
def test_a_change_touches_the_rule_s_own_lines_only(data: bytes, draw: st.DataObject) -> None:
    """For any file and rule: archived, reworded or removed, every other line stands there in its order."""
    doc = Document(data)
    if not doc.rules:
        return
    rule = draw.draw(st.sampled_from(doc.rules))
    what = draw.draw(st.sampled_from(["archive", "reword", "remove"]))
    own = slice(rule.line - 1, rule.line - 1 + rule.lines + (rule.below if what == "archive" else 0))
    rest = texts(data)
    del rest[own]
    try:
        if what == "archive":
            made = doc.archive(rule, DAY, "a reason")
        else:
            made = doc.reword(rule, "New text") if what == "reword" else doc.remove(rule)
    except UserError:
        return
    assert is_part(rest, texts(made))
    others = [r for r in doc.rules if r is not rule]
    kept = [(r.id, r.text, r.active) for r in others]
    assert not Counter(kept) - Counter(rules(made))
    new = {"archive": (rule.id, rule.text, False), "reword": (rule.id, "New text", rule.active)}.get(what)
    assert new is None or new in rules(made)
    ends = {line.end for line in scan(made.decode()) if line.end}
    assert ends <= {line.end for line in doc.lines if line.end} | {"\n"}


def headings(text: str) -> list[tuple[int, str]]:
    return [(line.level, line.title) for line in scan(text) if line.level]


def test_headings() -> None:
    """With up to three spaces before them; ``#name`` and an indented one are none. A BOM hides nothing."""
    text = "\ufeff# One\n   ## Two \n### a # b#\n#no\n    # no\n#\n####### no\n```a`b\n# No fence\n"
    assert headings(text) == [(1, "One"), (2, "Two"), (3, "a # b#"), (1, ""), (1, "No fence")]
    assert headings("```\ncode\n\n## Inside\n") == []


@pytest.mark.parametrize(
    "quoted",
    [
        "```\n## Quoted\n```\n",
        "````md\n```\n## Quoted\n```\n````\n",
        "~~~\n```\n## Quoted\n~~~\n",
        "- item\n  ```\n  ## Quoted\n  ```\n",
        "<!--\n## Quoted\n-->\n",
        "    ## Quoted\n",
    ],
)
def test_what_is_quoted_is_no_heading(quoted: str) -> None:
    """Fences of both kinds, comments and indented lines; what follows them counts again."""
    assert headings(f"{quoted}## After\n") == [(2, "After")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), "it is not UTF-8 .byte 0.: save it as UTF-8 first"),
        (b"caf\xe9", r"it is not UTF-8 \(byte 3\)"),
        (b"a\0b", "it holds a NUL"),
    ],
)
def test_odd_encodings_are_refused(data: bytes, why: str) -> None:
    """With what is wrong and what to do."""
    with pytest.raises(UserError, match=why):
        decoded(data)


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)


@given(TEXTS, TEXTS, st.booleans())
def test_what_is_written_is_read_as_it_was(text: str, reason: str, active: bool) -> None:
    """Whatever text may stand there, also brackets and bold words."""
    try:
        rule = Rule("rule-007", checked(text), active, "2025-11-27", "" if active else checked(reason))
    except UserError:
        return
    line = written(rule)
    begin = BEGIN.match(line)
    assert begin is not None
    assert begin[1] == "rule-007"
    assert ending(line[begin.end() :]) == (rule.text, rule.day, not active, rule.reason)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use x", ("Use x", "", False, "")),
        ("Use x (archived: 2025-01-02, reason: a (b))", ("Use x", "2025-01-02", True, "a (b)")),
        ("Use x (learned: soon)", ("Use x (learned: soon)", "", False, "")),
        ("(learned: 2025-01-02) x", ("(learned: 2025-01-02) x", "", False, "")),
    ],
)
def test_lines_that_a_person_edited(text: str, found: tuple[str, str, bool, str]) -> None:
    """A date that is missing or written otherwise is part of the text, and nothing is lost."""
    assert ending(text) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n ", "empty"),
        ("a" * 501, "501 characters"),
        ("use\ud800tabs", "nobody sees"),
        ("a (learned: b", "leave `<!--`"),
    ],
)
def test_texts_that_can_not_stand_there(text: str, why: str) -> None:
    """They would be read otherwise, by us or by whoever reads the file."""
    with pytest.raises(UserError, match=why):
        checked(text)
