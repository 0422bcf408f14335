"""The pages say what the code does: settings, commands, files, invariants, citations, links, transcript and
example.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from daemon.cli.main import main
from daemon.cli.verbs import OLDER, VERBS
from daemon.config import settings_table
from daemon.core.policy import POLICIES
from daemon.core.settings import SETTINGS
from daemon.files.prompts import SLOTS
from tests.shows import INVARIANTS, promises

REPO = Path(__file__).resolve().parents[1]
DESIGN = sorted(f"design/{page.name}" for page in (REPO / "design").glob("*.md"))
NAMES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".reflection/README.md",
    *sorted(f"docs/{page.name}" for page in (REPO / "docs").glob("*.md")),
    "plugin-shim/claude-code/README.md",
    *DESIGN,
]
README = (REPO / "README.md").read_text("utf-8")
NUMBERS = re.compile(r"\bI(\d+)(?:\s?-\s?I(\d+))?\b")  # a range such as I1-I5 counts whole
OLD_PLAN = "DESIGN" + " §"  # how code cited a plan that is not in this repository
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


SKIPPED = {"node_modules", "dist", "data", "__pycache__", ".venv", ".git"}


def read(name: str) -> str:
    return (REPO / name).read_text("utf-8")


def code(text: str) -> list[str]:
    """Code spans and the lines of code blocks."""
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return spans + [line for _, block in FENCE.findall(text) for line in block.splitlines()]


@functools.cache
def sources() -> dict[str, str]:
    """The text of each file that a person wrote: code, tests, pages and scripts, without data."""
    found = {}
    for folder, folders, files in os.walk(REPO):
        folders[:] = [f for f in folders if f not in SKIPPED and not f.endswith(("_cache", ".egg-info"))]
        for name in files:
            path = Path(folder, name)
            if path.suffix in {".py", ".ts", ".sh", ".md", ".toml", ".txt"} or name in {"Makefile", "run"}:
                found[str(path.relative_to(REPO))] = path.read_text("utf-8")
    return found


def numbers(text: str) -> set[str]:
    """The invariants that a text names."""
    ranges = [(int(a), int(b or a)) for a, b in NUMBERS.findall(text)]
    return {f"I{n}" for first, last in ranges for n in range(first, last + 1)}


def test_the_settings_table_is_the_codes() -> None:
    """docs/settings.md holds exactly the table that the settings generate."""
    page = read("docs/settings.md")
    assert settings_table() in page
    assert page.count("| setting | default |") == 1


def test_the_readme_names_the_measured_figures() -> None:
    """What README and docs/cost.md say of the rules alone is the held-out row of design/judge.md."""
    (row,) = re.findall(r"^\| fresh, held out \| (.*) \|$", read("design/judge.md"), re.MULTILINE)
    turns, speaks, _right, precise, found, complete, waiting = row.split(" | ")
    assert complete == "0 of 0"
    told = dict(
        re.findall(r"^\| (.+?) \| (.+?) \|$", README.partition("## How often it is right")[2], re.MULTILINE)
    )
    assert told["without a model"] == f"of {turns} turns"
    assert told["said anything at all"] == speaks
    assert told["unfinished turns that it found"] == found
    assert told['right when it said "not done"'] == precise
    assert waiting == "0 of 0"
    assert f"On {turns} turns whose authors had seen neither rules" in README
    quiet = 1 - int(speaks.split()[0]) / int(turns)
    assert abs(quiet - 9 / 10) < 0.05, "quiet about nine turns of ten"
    right, said = (int(n) for n in re.findall(r"\d+", precise)[:2])
    assert right / said == pytest.approx(1 / 2), "right about half"
    caught = found.partition(" (")[0]
    flat = " ".join(read("docs/cost.md").split())
    assert (
        f"On {turns} turns that its rules had not been tuned on it spoke of {speaks.split()[0]}, "
        f'found {caught} unfinished ones, and was right {right} of the {said} times it said "not done"'
    ) in flat


def test_the_readmes_pictures_are_recordings() -> None:
    """Each is one whole SVG that fetches nothing, runs nothing and names no folder of a machine. It shows the
    claim, our words and the end.
    """
    shown = re.findall(r"!\[(.+?)\]\((docs/pictures/[\w-]+\.svg)\)", README)
    assert len(shown) == len(list((REPO / "docs" / "pictures").glob("*.svg"))) == 2
    drawn = {"svg", "title", "style", "rect", "circle", "text", "g"}
    for words, name in shown:
        text = read(name)
        root = ET.fromstring(text)
        spoken = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
        for part in ("All done!", "Done: slugify()", "eflect"):
            assert part in spoken, name
        assert "Task complete" in spoken or "not done yet" in spoken, name
        assert len(words) > 40
        assert {node.tag.rpartition("}")[2] for node in root.iter()} <= drawn
        assert not re.search(r"href|url\(|@import|/tmp|/home|/work", text), name


def test_the_pictures_of_the_dashboard_are_of_every_page() -> None:
    """Each page wide and narrow, light and dark, as `make pictures-dashboard` draws it; README shows two."""
    drawn = {path.stem for path in (REPO / "docs" / "pictures").glob("*.png")}
    pages = {name.split("-")[1] for name in drawn}
    looks = [f"{width}-{scheme}" for width in (1280, 390) for scheme in ("light", "dark")]
    assert drawn == {f"dashboard-{page}-{look}" for page in pages for look in looks}
    assert {"now", "history", "verdict", "cost", "health"} <= pages
    assert len(re.findall(r"!\[(.{40,}?)\]\(docs/pictures/dashboard-[\w-]+\.png\)", README)) == 2


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_are_named_exist(name: str) -> None:
    """`judge.mode` and `REFLECTD_JUDGE_MODE` are settings of ours, or variables of the plugin."""
    sections = "|".join({key.partition(".")[0] for key in SETTINGS if "." in key})
    named = {s for s in code(read(name)) if re.fullmatch(rf"({sections})\.[a-z_]+", s)}
    # an event, a file, what calls are for, and more files
    other = {"judge.created", "playbook.json", *POLICIES, *(f"{n}.txt" for n in SLOTS)}
    assert named - other <= set(SETTINGS) or name == "CHANGELOG.md"  # which tells of those that are gone
    plugin = read("plugin-shim/opencode/README.md") + read("plugin-shim/claude-code/README.md")
    known = (
        {s.env for s in SETTINGS.values()}
        | set(re.findall(r"REFLECT\w+", plugin))
        | {"REFLECTD_CHILD", "REFLECTD_PROOF"}
    )
    assert set(re.findall(r"\bREFLECT(?:D|ION)_[A-Z_]+", read(name))) <= known


def test_the_table_of_prompts_is_the_codes() -> None:
    """docs/prompts.md has a row for each prompt, with the placeholders that it must have."""
    rows = dict(re.findall(r"^\| `(\w+)\.txt` \| .* \|([^|]*)\|$", read("docs/prompts.md"), re.MULTILINE))
    found = {name: frozenset(re.findall(r"\{(\w+)\}", required)) for name, required in rows.items()}
    assert found == {name: slots.required for name, slots in SLOTS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_are_named_exist(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every `reflectd <verb>` is a verb, and has the flags that are shown with it."""
    for line in code(read(name)):
        for verb, rest in re.findall(r"(?<![\w/\[-])reflectd ([a-z]+)\b([^#|]*)", line):
            assert verb in {*VERBS, *OLDER, "help", "version"}, line
            if verb in {"help", "version"}:
                continue
            flags = re.findall(r"(?<!\w)--?[a-z][a-z-]*", rest)
            with pytest.raises(SystemExit):
                main([verb, "--help"])
            shown = capsys.readouterr().out
            assert [f for f in flags if not re.search(rf"{f}\b", shown)] == [], line


def test_every_command_is_on_its_page() -> None:
    """A verb nobody reads about does not exist for people."""
    assert [verb for verb in VERBS if f"reflectd {verb}" not in read("docs/commands.md")] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_are_named_exist(name: str) -> None:
    """`make x` in a page for developers is a target."""
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    outside = FENCE.sub(lambda m: m[0] if m[1] == "sh" else "", read(name))
    named = {t for line in code(outside) for t in re.findall(r"^make ([a-z-]+)", line)}
    assert "test" in named
    assert named <= targets


def test_every_make_target_for_people_is_explained() -> None:
    """CONTRIBUTING.md names each target that the Makefile describes with ``##``."""
    described = set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.MULTILINE))
    assert len(described) > 5
    assert [t for t in sorted(described) if f"`make {t}" not in read("CONTRIBUTING.md")] == []


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name: str) -> None:
    """Who follows a name from a page finds a file or a folder. Names of tests are in no page: marks lead to
    the tests (``tests/test_shows.py``).
    """
    assert re.findall(r"(?<![\w/])test_\w+(?!\w*\.py)", read(name)) == []
    spans = code(read(name))
    folders = "|".join(p.name for p in REPO.iterdir() if p.is_dir() and not p.name.startswith("."))
    files = {s for s in spans if re.fullmatch(rf"({folders})/[\w./-]*", s)}
    beside = (REPO / name).parent  # the plugin has a folder of scripts too
    assert [f for f in sorted(files) if not (REPO / f).exists() and not (beside / f).exists()] == []


def test_the_architecture_is_the_codes() -> None:
    """The page has a line for each package of ``daemon/`` and each module of the engine, and the layers that
    import-linter checks.
    """
    page = read("design/architecture.md")
    modules = {p.stem for p in (REPO / "daemon" / "engine").glob("[a-z]*.py")}
    table = re.findall(
        r"^\| (`[^|]*`) \|", page.partition("### The engine")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert modules == set(re.findall(r"`(\w+)`", " ".join(table)))
    packages = {p.parent for p in (REPO / "daemon").rglob("__init__.py")} - {REPO / "daemon"}
    unnamed = [p.name for p in packages if not re.search(rf"^ +{p.name}/ ", page, re.MULTILINE)]
    assert sorted(unnamed) == []
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    assert [block for kind, block in FENCE.findall(page) if kind == "layers"] == [
        "".join(f"{line.replace('daemon.', '')}\n" for line in c["layers"])
        for c in contracts
        if c["type"] == "layers"
    ]


def test_every_invariant_is_on_the_page() -> None:
    """I1 to I53 have a row each, in order; what holds partly or not yet is explained."""
    rows = {number: promise.holds for number, promise in promises().items() if promise.page == INVARIANTS}
    assert list(rows) == [f"I{n}" for n in range(1, 54)]
    explained = set(re.findall(r"^- \*\*(I\d+)\.\*\* ", read(INVARIANTS), re.MULTILINE))
    assert explained == {number for number, holds in rows.items() if holds != "yes"}


def test_every_invariant_that_is_cited_exists() -> None:
    """A number in code, tests, scripts or pages can be looked up in design/invariants.md."""
    known = set(promises())
    unknown = {name: numbers(text) - known for name, text in sources().items() if numbers(text) - known}
    assert unknown == {}


def test_every_design_page_that_is_cited_exists() -> None:
    """A path such as design/protocol.md leads to a page, wherever it is cited."""
    cited = {(n, page) for n, text in sources().items() for page in re.findall(r"design/[\w-]+\.md", text)}
    assert len(cited) > 20
    assert sorted((name, page) for name, page in cited if not (REPO / page).exists()) == []


def test_nothing_cites_the_old_plan() -> None:
    """The plan that this was built to is not in the repository, so nobody could look a section of it up."""
    assert sorted(name for name, text in sources().items() if OLD_PLAN in text) == []


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link of a page resolves inside the repository."""
    links = [link for link in LINK.findall(FENCE.sub("", read(name))) if "://" not in link]
    targets = [((REPO / name).parent / link.partition("#")[0]).resolve() for link in links]
    assert [str(t) for t in targets if not t.exists() or not t.is_relative_to(REPO)] == []


def test_the_design_index_lists_every_page() -> None:
    """A page that the index misses is a page nobody finds."""
    listed = set(LINK.findall(read("design/README.md")))
    assert {p.name for p in (REPO / "design").glob("*.md")} - {"README.md"} <= listed


def test_the_transcript_is_what_the_demo_prints() -> None:
    """Each line of README's transcript is a line of the demo, in its order."""
    ran = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=REPO,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    printed = iter(re.sub(r"\d+ ms\)", "0 ms)", ran.stdout).splitlines())
    shown = next(block for kind, block in FENCE.findall(README) if kind == "text").splitlines()
    wanted = [line.strip() for line in shown if line.strip() != "…"]
    assert len(wanted) > 10
    missing = [w for w in wanted if not any(line.strip().rstrip("─ ") == w for line in printed)]
    assert missing == []


def test_the_python_example_works(tmp_path: Path) -> None:
    """What consumers are told to copy finds a fresh verdict, and neither an old one nor one being judged."""
    (example,) = [block for kind, block in FENCE.findall(read(".reflection/README.md")) if kind == "python"]
    scope: dict[str, object] = {}
    exec(example, scope)
    wait_verdict = scope["wait_verdict"]
    assert callable(wait_verdict)
    sample = json.loads(read(".reflection/samples/verdict.complete.json"))
    path = tmp_path / ".reflection" / "verdict_ses_1.json"
    path.parent.mkdir()
    assert wait_verdict(str(tmp_path), "ses_1", 0) is None
    for change, found in (
        ({"timestamp": int(time.time() * 1000)}, True),
        ({"timestamp": int(time.time() * 1000), "state": "judging"}, False),
        ({"timestamp": int(time.time() * 1000) - 31_000}, False),
        ({"timestamp": 0}, False),
    ):
        path.write_text(json.dumps({**sample, **change}), "utf-8")
        assert (wait_verdict(str(tmp_path), "ses_1", 0) is not None) is found
