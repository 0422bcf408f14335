"""The package and its two names: ``reflectd`` where it is installed, in a clone also ``daemon``.

No module of it spells its own name, no process loads it under both, and the wheel works beside python-daemon,
which installs a package called ``daemon``.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon import __version__
from harness.machine import processes, reflectd
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.needs import BESIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("daemon", "reflectd")
PACKAGE = REPO / "daemon"
COMMAND = str(Path(sys.executable).with_name("reflectd"))
# Python imports it at the start of each process, before anything else
NOTES_MODULES = """
import atexit, os, sys
def note():
    with open(os.path.join(os.environ["MODULES"], str(os.getpid())), "w") as file:
        file.write("\\n".join(sorted(sys.modules)))
atexit.register(note)
"""


# --- the name is spelled nowhere ------------------------------------------------------------------


def spelled(tree: ast.AST) -> list[str]:
    """Where a module names the package itself: in an import, or as a word of a command after ``-m``."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        elif isinstance(node, ast.Tuple | ast.List):
            words = [e.value if isinstance(e, ast.Constant) else "" for e in node.elts]
            names = [str(b) for a, b in itertools.pairwise(words) if a == "-m"]
        found += [f"line {node.lineno}: {name}" for name in names if name.partition(".")[0] in NAMES]
    return found


def test_the_package_does_not_spell_its_name() -> None:
    """An absolute import, a ``-m daemon`` or an ``import_module("daemon…")`` would fail where it is
    installed.
    """
    modules = sorted(PACKAGE.rglob("*.py"))
    assert len(modules) > 100
    found = {str(p.relative_to(REPO)): spelled(ast.parse(p.read_text("utf-8"))) for p in modules}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import daemon.core",
        "from daemon import paths",
        "from reflectd.core import llm",
        'importlib.import_module("daemon.app")',
        'command = [sys.executable, "-m", "daemon", "serve"]',
        'Plan((sys.executable, "-m", "reflectd"))',
    ],
)
def test_a_spelled_name_is_seen(line: str) -> None:
    """The test above sees each way of spelling it."""
    assert len(spelled(ast.parse(line))) == 1


# --- one name a process ---------------------------------------------------------------------------


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        (box.root / "start").mkdir()
        (box.root / "start" / "sitecustomize.py").write_text(NOTES_MODULES)
        (box.root / "modules").mkdir()
        yield box


def env(box: Sandbox, *beside: Path) -> dict[str, str]:
    folders = os.pathsep.join(map(str, (box.root / "start", *beside)))
    return box.env(PYTHONPATH=folders, MODULES=str(box.root / "modules"), REFLECTD_NO_START="0")


def run(box: Sandbox, *command: str, beside: tuple[Path, ...] = (REPO,), code: int = 0) -> str:
    """What the command prints."""
    done = subprocess.run(
        command,
        env=env(box, *beside),
        cwd=box.home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done
    return done.stdout


def names_loaded(box: Sandbox, processes_expected: int) -> list[set[str]]:
    """For each process that has ended: the names under which it had loaded the package."""
    folder = box.root / "modules"
    wait_until(lambda: len(list(folder.iterdir())) >= processes_expected, "the processes' modules")
    return [set(NAMES) & set(file.read_text().splitlines()) for file in folder.iterdir()]


@pytest.mark.parametrize("name", NAMES)
def test_every_module_loads_under_one_name(name: str) -> None:
    """Importing all of the package under one name loads nothing under the other, so no state is there
    twice.
    """
    other = NAMES[1 - NAMES.index(name)]
    script = (
        "import importlib, pkgutil, sys\n"
        f"package = importlib.import_module({name!r})\n"
        f"found = [m.name for m in pkgutil.walk_packages(package.__path__, {name + '.'!r})]\n"
        "for module in found:\n"
        "    importlib.import_module(module)\n"
        f"print(len(found), [m for m in sys.modules if m.partition('.')[0] == {other!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd="/", capture_output=True, text=True, timeout=120, check=False
    )
    count, _, loaded = done.stdout.strip().partition(" ")
    assert loaded == "[]", done
    assert int(count) > 100


def test_the_tests_know_one_name() -> None:
    """This process, which imports whatever the tests before it needed, has not loaded ``reflectd``."""
    assert [name for name in sys.modules if name.partition(".")[0] == "reflectd"] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_process_loads_both_names(box: Sandbox, name: str) -> None:
    """In a clone: the command and ``python -m daemon``, the daemons that they start, and one in front."""
    command = [COMMAND] if name == "reflectd" else [sys.executable, "-m", name]
    try:
        assert "started (pid " in run(box, *command, "start")
        assert name in reflectd_command(box)
        run(box, *command, "status")
    finally:
        run(box, *command, "stop")
    serve = subprocess.Popen(
        [*command, "serve"],
        env=env(box, REPO),
        cwd=box.home,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(box), "answer of the daemon")
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(60) == 0
    finally:
        serve.kill()
    assert names_loaded(box, 5) == [{name}] * 5


def reflectd_command(box: Sandbox) -> list[str]:
    """The words of the running daemon's command line."""
    import psutil

    return psutil.Process(reflectd.call(box.socket, "GET", "/v1/status")["pid"]).cmdline()


def answers(box: Sandbox) -> bool:
    try:
        return bool(reflectd.call(box.socket, "GET", "/v1/status")["pid"])
    except OSError:
        return False


# --- the wheel, beside python-daemon --------------------------------------------------------------


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with our wheel, python-daemon, and what ours depends on."""
    root = tmp_path_factory.mktemp("beside")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(root)]
    subprocess.run(build, cwd=REPO, capture_output=True, timeout=120, check=True)
    venv.create(root / "venv", symlinks=True, with_pip=False)
    python = root / "venv" / "bin" / "python"
    (wheel,) = root.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    subprocess.run(
        [*install, "-q", "--no-index", "--no-deps", str(wheel)],
        env={k: v for k, v in os.environ.items() if not k.startswith("PIP_")},
        capture_output=True,
        timeout=120,
        check=True,
    )
    (site,) = (root / "venv" / "lib").glob("python*/site-packages")
    shutil.copytree(BESIDE, site, dirs_exist_ok=True)
    # this environment's other packages; a path file in it, such as that of the checkout, is not followed
    dependencies = Path(pytest.__file__).parents[1]
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    return root / "venv"


def python(box: Sandbox, environment: Path, script: str) -> str:
    return run(box, str(environment / "bin" / "python"), "-c", script, beside=())


@pytest.mark.needs("python-daemon")
def test_both_packages_are_there(box: Sandbox, environment: Path) -> None:
    """`import daemon` is python-daemon's, with all it has; ours is `reflectd`; neither hides the other."""
    script = "import daemon, reflectd; print(daemon.DaemonContext.__module__, reflectd.__version__)"
    assert python(box, environment, script) == f"daemon.daemon {__version__}\n"
    (site,) = environment.glob("lib/python*/site-packages")
    assert sorted(p.name for p in (site / "daemon").glob("*.py")) == [
        "__init__.py",
        "daemon.py",
        "pidfile.py",
    ]


@pytest.mark.needs("python-daemon")
def test_the_page_of_the_package_index(box: Sandbox, environment: Path) -> None:
    """It is the README; a link that leads nowhere there is plain words."""
    script = (
        "from importlib.metadata import metadata\n"
        "found = metadata('reflectd')\n"
        "print(found['Description-Content-Type'], found['Author'], found['License-Expression'])\n"
        "print(found.get_payload())\n"
    )
    first, page = python(box, environment, script).split("\n", 1)
    assert first == "text/markdown The reflectd authors MIT"
    assert page.strip().startswith("# reflectd\n")
    assert "[opencode](https://" in page
    assert re.findall(r"\]\((?!https?://)[^)]*\)", page) == []


@pytest.mark.needs("python-daemon")
def test_the_commands(box: Sandbox, environment: Path) -> None:
    """The command, ``python -m reflectd``, the start in the background, and the stop."""
    command = str(environment / "bin" / "reflectd")
    module = [str(environment / "bin" / "python"), "-m", "reflectd"]
    assert run(box, command, "--version", beside=()) == f"reflectd {__version__}\n"
    assert run(box, *module, "--version", beside=()) == f"reflectd {__version__}\n"
    for start, stop in (([command], module), (module, [command])):
        try:
            assert f"reflectd {__version__} started" in run(box, *start, "start", beside=())
            assert reflectd_command(box)[1:4] == ["-m", "reflectd", "serve"]
            assert f"reflectd {__version__} runs" in run(box, *stop, "status", beside=())
        finally:
            run(box, *stop, "stop", beside=())
    assert names_loaded(box, 10) == [{"reflectd"}] * 10


@pytest.mark.needs("python-daemon")
def test_the_service_and_the_doctor(box: Sandbox, environment: Path) -> None:
    """The unit starts ``reflectd`` with this environment's Python; the doctor sees a whole package."""
    command = str(environment / "bin" / "reflectd")
    planned = json.loads(run(box, command, "service", "install", "--dry-run", "--json", beside=()))
    assert planned["files"]
    assert any("-m reflectd serve" in f["text"] or "<string>reflectd<" in f["text"] for f in planned["files"])
    assert all(" -m daemon " not in f["text"] for f in planned["files"])
    found = {c["name"]: c for c in json.loads(run(box, command, "doctor", "--json", beside=()))["checks"]}
    assert found["package"]["outcome"] == "ok"
    assert found["package"]["text"].startswith(f"reflectd {__version__} in {environment.resolve()}")
    assert "python-daemon" not in json.dumps(found)


@pytest.mark.needs("python-daemon")
def test_an_upgrade_leaves_the_hosts_connected(box: Sandbox, environment: Path) -> None:
    """What an installation wrote names nothing in its own folder, which an upgrade to another Python deletes;
    the start of another installation brings what the hosts load up to date.
    """
    for host in ("opencode", "claude-code"):
        run(box, str(environment / "bin" / "reflectd"), "setup", host, beside=())
    data = box.home / ".local" / "share" / "reflectd" / "plugins"
    written = [p for p in box.home.rglob("*") if p.is_file()]
    assert len(written) > 20
    naming = [p for p in written if str(environment) in p.read_text("utf-8", "replace")]
    assert naming == []
    for name in ("opencode/index.ts", "claude-code/hooks/hooks.json", "claude-code/scripts/hook.sh"):
        (data / name).write_text("of the old version")
    try:
        run(box, sys.executable, "-m", "daemon", "start", "--from-shim")
    finally:
        run(box, sys.executable, "-m", "daemon", "stop")
    assert all("of the old version" not in p.read_text() for p in data.rglob("*") if p.is_file())
    assert os.access(data / "claude-code" / "scripts" / "hook.sh", os.X_OK)


@pytest.mark.needs("python-daemon")
def test_what_comes_with_it(box: Sandbox, environment: Path) -> None:
    """Prompts, plugins and schemas lie inside the installed package, and setup names a copy of the
    plugin that no upgrade moves.
    """
    script = (
        "from reflectd.paths import PACKAGE, shipped\n"
        "for name in ('prompts', 'shims/opencode/index.ts', 'shims/claude-code/hooks/hooks.json',\n"
        "             'reflection/README.md', 'reflection/schemas', 'examples/consumers/speak.py'):\n"
        "    assert shipped(name).is_relative_to(PACKAGE), name\n"
        "print(PACKAGE)\n"
    )
    package = python(box, environment, script).strip()
    assert Path(package).is_relative_to(environment.resolve())
    said = run(box, str(environment / "bin" / "reflectd"), "setup", "opencode", "--dry-run", beside=())
    assert package not in said  # which moves when it is installed again with another Python
    assert f'{(box.home / ".local/share/reflectd/plugins/opencode").as_uri()}"' in said
