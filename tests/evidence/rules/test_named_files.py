"""Files and tags named anywhere in the request, in several languages."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.tables import tables
from tests.support.transcripts import TEST, bash, edit, evidence_of, opened

ROWS = tables("requests")


@pytest.mark.shows("I24")
@pytest.mark.parametrize("ask", ROWS["named"])
def test_a_file_named_anywhere(ask: str) -> None:
    """The request names a file to be written, wherever it says so, and nothing wrote it."""
    rows = [r for r in evidence_of(ask, edit(), TEST).open if r.kind == "unmet"]
    assert rows, evidence_of(ask, edit(), TEST).rows


@pytest.mark.shows("I25")
@pytest.mark.parametrize(
    ("ask", "calls", "final"),
    [
        ("Change x. The tool should write out.json", (), "Done."),
        ("Change x so that it can update cache.json", (), "Done."),
        ("Change x. Update docs/x.md if needed.", (), "Done."),
        ("Change x. Don't update package.json.", (), "Done."),
        ("Change x and set y in app.toml. Leave app.toml for the end.", (), "Done."),
        ("Change x like we set it in app.toml", (), "Done."),
        ("Change x. Set the version in package.json to 2.0.0", (bash("npm version 2.0.0"),), "Done."),
        ("Change x. Drop y from go.mod", (bash("go mod tidy"),), "Done."),
        ("Change x. Set y in app.toml", (edit("/repo/conf/app.toml"),), "Done."),
        ("Change x. Set y in app.toml", (bash("sed -i s/1/2/ app.toml"),), "Done."),
        ("Change x. Set y in app.toml", (), "app.toml already had y."),
        ("Change x. Set y in app.toml", (), "I could not write app.toml: no permission for it."),
        ("Change x. Did you update app.toml?", (), "Done."),
        ("Change x. I set y in app.toml", (), "Done."),
    ],
)
def test_a_file_that_need_not_be_written(ask: str, calls: tuple[ToolCall, ...], final: str) -> None:
    """A file that is mentioned, forbidden, excused or written by a tool proves nothing."""
    assert not evidence_of(ask, edit(), *calls, TEST, final=final).open


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "ask", ["Change x. Then:\n- tag v1.8.3", "Change x and tag it v2.0.0", "Ändere x, dann tagge v1.2"]
)
def test_a_tag_that_nothing_set(ask: str) -> None:
    """A tag is asked for by its version."""
    assert any("tag" in r.detail for r in evidence_of(ask, edit(), TEST).open)
    assert not evidence_of(ask, edit(), TEST, bash("git tag v1.8.3")).open
    assert not evidence_of(ask, edit(), TEST, bash("npm version patch")).open
    assert not evidence_of("Change x. The html tag 1.2 is old", edit(), TEST).open


def test_a_named_file_that_nothing_wrote() -> None:
    """The request names what is to be written; where the row of the topic says it, there is no second one."""
    ask = "Add a flag. It has to be described in the README, so add a line to docs/cli.md"
    (row,) = opened(ask, edit(), TEST)
    assert "docs/cli.md" in row.text
    (row,) = opened("Add a flag and update docs/cli.md", edit(), TEST)
    assert (row.kind, row.topic) == ("unmet", "docs")
    assert opened("Add a flag and update docs/cli.md", edit(), bash("sed -i s/a/b/ docs/cli.md"), TEST) == []
    assert opened("Add a server in Node.js", edit(), TEST) == []
    assert opened("Add a flag to write the results to out.json", edit(), TEST) == []


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("ask", "final"), ROWS["not_named"])
def test_a_named_file_that_need_not_be_written(ask: str, final: str) -> None:
    """A file that is named as the place or the cause proves nothing."""
    assert not evidence_of(ask, edit(), edit("src/b.py"), TEST, final=final).open
