"""The pages say what the code does: settings, commands, tests, links, transcript and example."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daemon.cli.main import VERBS, main
from daemon.config import settings_table
from daemon.core.policy import POLICIES
from daemon.core.settings import SETTINGS
from daemon.files.prompts import SLOTS

REPO = Path(__file__).resolve().parents[1]
DESIGN = sorted(f"design/{page.name}" for page in (REPO / "design").glob("*.md"))
NAMES = [
    "README.md",
    "CHANGELOG.md",
    ".reflection/README.md",
    "docs/claude-code.md",
    "docs/prompts.md",
    "docs/service.md",
    "plugin-shim/claude-code/README.md",
    *DESIGN,
]
README = (REPO / "README.md").read_text("utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(name: str) -> str:
    return (REPO / name).read_text("utf-8")


def code(text: str) -> list[str]:
    """Code spans and the lines of code blocks."""
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return spans + [line for _, block in FENCE.findall(text) for line in block.splitlines()]


def test_the_settings_table_is_the_codes() -> None:
    """README holds exactly the table that the settings generate."""
    assert settings_table() in README
    assert README.count("| setting | default |") == 1


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_are_named_exist(name: str) -> None:
    """`judge.mode` and `REFLECTD_JUDGE_MODE` are settings of ours, or variables of the plugin."""
    sections = "|".join({key.partition(".")[0] for key in SETTINGS if "." in key})
    named = {s for s in code(read(name)) if re.fullmatch(rf"({sections})\.[a-z_]+", s)}
    other = {"judge.created", *POLICIES, *(f"{n}.txt" for n in SLOTS)}  # an event, what calls are for, files
    assert named - other <= set(SETTINGS)
    plugin = read("plugin-shim/opencode/README.md") + read("plugin-shim/claude-code/README.md")
    known = {s.env for s in SETTINGS.values()} | set(re.findall(r"REFLECT\w+", plugin)) | {"REFLECTD_CHILD"}
    assert set(re.findall(r"\bREFLECT(?:D|ION)_[A-Z_]+", read(name))) <= known


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_are_named_exist(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every `reflectd <verb>` is a verb, and has the flags that are shown with it."""
    for line in code(read(name)):
        for verb, rest in re.findall(r"(?<![\w/\[-])reflectd ([a-z]+)\b([^#|]*)", line):
            assert verb in VERBS, line
            flags = re.findall(r"(?<!\w)--?[a-z][a-z-]*", rest)
            with pytest.raises(SystemExit):
                main([verb, *(rest.split()[:1] if verb == "setup" else []), "--help"])
            shown = capsys.readouterr().out
            assert [f for f in flags if not re.search(rf"{f}\b", shown)] == [], line


def test_every_command_is_in_the_readme() -> None:
    """A verb nobody reads about does not exist for people."""
    assert [verb for verb in VERBS if f"reflectd {verb}" not in README] == []


def test_make_targets_that_are_named_exist() -> None:
    """`make x` in README is a target."""
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    outside = FENCE.sub(lambda m: m[0] if m[1] == "sh" else "", README)
    named = {t for line in code(outside) for t in re.findall(r"^make ([a-z-]+)", line)}
    assert {"demo", "test"} <= named
    assert named <= targets


def test_tests_that_the_design_names_exist() -> None:
    """Whoever follows a name from a design page finds a test."""
    defined: set[str] = set()
    for path in (REPO / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        defined |= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    for name in NAMES:
        spans = code(read(name))
        tests = {s for s in spans if re.fullmatch(r"test_\w+", s)}
        assert tests <= defined, name
        files = {s for s in spans if re.fullmatch(r"(tests|daemon)/[\w/]+(\.py)?", s)}
        assert [f for f in files if not (REPO / f).exists()] == [], name
    assert len(re.findall(r"`test_\w+`", read("design/anti-loop.md"))) > 30


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
    shown = FENCE.findall(README)[0][1].splitlines()
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
