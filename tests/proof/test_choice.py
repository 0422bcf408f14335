"""Which check may be run, and which of them proves a task."""

from __future__ import annotations

import pytest

from daemon.core.proof import Known
from daemon.core.transcript import ToolCall
from daemon.evidence.collect import read
from daemon.proof.choice import defines, is_proved, planned, refused, run_by_agent

HERE = "/work/shop"


def shell(command: str, code: int | None = 0, output: str = "", status: str = "completed") -> ToolCall:
    """A shell call."""
    return ToolCall("c", "bash", status, {"command": command}, output=output, exit=code)  # type: ignore[arg-type]


def wrote(path: str) -> ToolCall:
    """An edit."""
    return ToolCall("c", "write", "completed", {"filePath": f"{HERE}/{path}", "content": "x"})


def known(*calls: ToolCall) -> list[tuple[str, str]]:
    """What is learned from the calls: command and folder."""
    return [r.known.key for r in run_by_agent(read(calls, HERE), HERE)]


def plan(calls: list[ToolCall], *more: Known) -> list[str]:
    """The commands to run, with what an earlier task left known."""
    work = read(tuple(calls), HERE)
    ran = run_by_agent(work, HERE)
    return [k.command for k in planned([*more, *(r.known for r in ran)], ran, work, HERE)]


@pytest.mark.parametrize(
    ("script", "command", "folder"),
    [
        ("make test", "make test", ""),
        ("make test 2>&1 | tail -5", "make test", ""),
        ("cd web && npm test", "npm test", "web"),
        ("cd /work/shop/web; npm test -- --run | head -20", "npm test -- --run", "web"),
        ("source .venv/bin/activate && pytest -q a.py", "source .venv/bin/activate && pytest -q a.py", ""),
        ('pytest -q; echo "exit $?"', "pytest -q", ""),
        ("pytest -q || true", "pytest -q", ""),
        ("pytest -k 'a  b'", "pytest -k 'a  b'", ""),
        ("timeout 60 cargo test", "timeout 60 cargo test", ""),
        ("sh test.sh 2>&1 | tail -3", "sh test.sh", ""),
        ("cd lib && node cart.test.js", "node cart.test.js", "lib"),
        ("python3 tests/run_tests.py -v", "python3 tests/run_tests.py -v", ""),
        ("perl t/parse.t; echo $?", "perl t/parse.t", ""),
        ("java -cp out CartTest", "java -cp out CartTest", ""),
        ("mkdir -p out && javac -d out *.java && java -cp out CartTest",
         "mkdir -p out && javac -d out *.java && java -cp out CartTest", ""),
        ("cmake --build build && ctest -q", "cmake --build build && ctest -q", ""),
        ("gcc -o t t.c && make test", "gcc -o t t.c && make test", ""),
        ("prove -l t/ 2>/dev/null | grep Files=", "prove -l t/ 2>/dev/null", ""),
    ],
)  # fmt: skip
def test_a_check_is_cut_out_of_its_script_byte_for_byte(script: str, command: str, folder: str) -> None:
    """Only what shortens its output and what is no part of it is left away."""
    assert known(shell(script)) == [(command, folder)]
    assert command in script


@pytest.mark.parametrize(
    "script",
    [
        "cd /elsewhere && make test",
        "cd .. && make test",
        "cd $HOME && make test",
        "rm -rf build && make test",
        "make test > log.txt",
        "make test | tee log.txt",
        "pytest $FILES",
        "pytest `ls`",
        "make test &",
        "make test && make check && pytest",
        "for t in a b; do pytest $t; done",
        "make deploy",
        "TARGET=production make test",
        "pytest --base-url https://shop.example",
        "pytest --host 10.1.2.3",
        "ruff check .",
        "cat <<E | pytest -\nx\nE",
        "curl -s localhost && make test",
        "docker compose exec db psql && make test",
        "npm install && npm test",
        "python3 build.py",
        "sh deploy-test.sh && sh test.sh",
        "node server.js",
        "sh -c 'rm -rf x'",
        "true",
    ],
)
def test_nothing_is_made_up(script: str) -> None:
    """A check whose meaning hangs on more than its own text, or that may reach the world, is not known."""
    assert known(shell(script)) == []


def test_what_a_person_refused_and_what_a_sub_agent_ran_is_not_known() -> None:
    """Only calls of the agent itself that the host's permission let through."""
    denied = ToolCall(
        "c", "bash", "error", {"command": "make test"}, error="The user rejected permission to use this tool"
    )
    assert known(denied) == []
    inner = ToolCall("c", "task", "completed", {}, inner=(shell("make test"),))
    assert known(inner) == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "empty"),
        ("x" * 501, "500"),
        ("make test\nrm x", "line break"),
        ("make test\x1b[2J", "control"),
        ("API=[redacted:token] make test", "secret"),
        ("wget -q x.example/t && sh t", "network"),
        ("ssh box make test", "network"),
        ("git push && make test", "push"),
        ("kubectl apply -f x", "deploy"),
        ("psql shop_prod -f t.sql", "production"),
        ("PRODUCTION=1 make test", "production"),
    ],
)
def test_what_is_never_run_whoever_chose_it(command: str, why: str) -> None:
    """The reason is told."""
    assert why in refused(command)


@pytest.mark.parametrize(
    "command",
    [
        "make test",
        "npm run test:unit",
        "pytest tests/test_product.py",
        "./check.sh",
        "ctest -R reproduce",
        "pytest tests/ssh",
        "npx jest@29.1 src",
        "PGHOST=localhost make test",
        "cargo test --release",
        "DB_HOST=127.0.0.1 make test",
        "pytest -k push",
        "go test ./aws",
        "npm run test:upload",
        "cmake -DBUILD_HOST=ON . && make",
    ],
)
def test_a_usual_check_may_be_run(command: str) -> None:
    """Words like product are not production."""
    assert refused(command) == ""


def test_the_narrow_one_comes_first_then_the_whole_suite() -> None:
    """The narrow one is of this task and about the edits by its name; the suite may be an earlier task's."""
    calls = [wrote("src/cart.py"), shell("pytest tests/test_cart.py"), wrote("src/cart.py")]
    assert plan(calls) == ["pytest tests/test_cart.py"]
    assert plan(calls, Known("make test")) == ["pytest tests/test_cart.py", "make test"]


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("sh tests/all.sh", True), ("sh test.sh", True), ("python3 run_tests.py", True),
        ("prove -l t/", True), ("node test.js", True), ("sh tests/cart.sh", False),
        ("node cart.test.js", False),
        ("python3 -m unittest tests.test_cart", False), ("python3 -m unittest discover -s tests", True),
    ],
)  # fmt: skip
def test_which_of_an_earlier_task_is_the_whole_suite(command: str, *, whole: bool) -> None:
    """By the names of what it runs: a folder of tests, or a script that is called after no part."""
    assert bool(plan([wrote("src/other.py")], Known(command))) is whole


@pytest.mark.parametrize(
    "command",
    ["node cart.test.js", "python3 -m unittest -q tests.test_cart", "sh tests/cart.sh", "perl t/cart.t"],
)
def test_a_narrow_one_is_about_a_file_by_its_name(command: str) -> None:
    """In any of the usual forms."""
    assert plan([wrote("src/cart.py")], Known(command)) == [command]
    assert plan([wrote("src/cart.py"), wrote("src/user.py")], Known(command)) == []


def test_a_run_of_other_files_covers_nothing() -> None:
    """Nor does a suite of another folder. A narrow one of an earlier task is run in place of a suite."""
    calls = [wrote("src/cart.py"), shell("pytest tests/test_user.py")]
    assert plan(calls) == []
    assert plan(calls, Known("pytest tests/test_other.py"), Known("npm test", "web")) == []
    assert plan(calls, Known("pytest tests/test_cart.py")) == ["pytest tests/test_cart.py"]
    assert plan(calls, Known("pytest tests/test_cart.py"), Known("make test")) == ["make test"]
    assert plan(calls, Known("pytest -q", "src")) == ["pytest -q"]
    assert plan([*calls, wrote("README.md")], Known("pytest -q", "src")) == ["pytest -q"]


def test_the_persons_choice_goes_before_the_projects_and_the_agents() -> None:
    """Also one that no table knows."""
    calls = [wrote("a.py"), shell("pytest -q")]
    assert plan(calls, Known("./check.sh", "", "person"), Known("make test", "", "project")) == ["./check.sh"]
    assert plan(calls, Known("make test", "", "project")) == ["make test"]
    assert plan(calls, Known("ruff check .", "", "person")) == ["ruff check ."]


@pytest.mark.parametrize(
    ("calls", "proved"),
    [
        ([wrote("a.py"), shell("pytest -q", 0, "1 passed")], True),
        ([wrote("a.py"), shell("pytest -q", 0, "1 passed"), wrote("README.md")], True),
        ([shell("pytest -q", 0, "1 passed"), wrote("a.py")], False),
        ([wrote("a.py"), shell("pytest -q | tail -1", 0, "1 passed")], False),
        ([wrote("a.py"), shell("pytest -q || true", 0, "")], False),
        ([wrote("a.py"), shell("pytest -q", 1, "1 failed")], False),
        ([wrote("a.py"), shell("pytest -q", None, "")], False),
        ([wrote("a.py"), shell("pytest -q", 0, "1 passed"), shell("python3 gen.py > a.py")], False),
    ],
)
def test_the_agents_own_run_is_enough_when_it_shows_a_pass(calls: list[ToolCall], *, proved: bool) -> None:
    """After its last edit, by its own exit code."""
    work = read(tuple(calls), HERE)
    assert is_proved([Known("pytest -q")], run_by_agent(work, HERE), work, HERE) is proved


@pytest.mark.parametrize(
    "script",
    [
        "make -C ../other test",
        "npm --prefix /elsewhere test",
        "npm run test --prefix=../other",
        "cargo test --manifest-path /elsewhere/Cargo.toml",
        "mvn -f ../other/pom.xml test",
        "sh /elsewhere/tests/run.sh",
        "pytest ../other/tests",
        "make test deploy",
        "npm test -- --updateSnapshot",
        "jest -u",
        "go test ./... -update",
        "cargo test --no-run",
        "sudo make test",
    ],
)
def test_a_check_of_another_place_or_that_can_not_fail_is_not_known(script: str) -> None:
    """It says nothing about these files."""
    assert known(shell(script)) == []


def test_the_folder_that_an_option_names_is_the_checks() -> None:
    """``make -C web test`` is no suite for what lies beside web."""
    for command in ("make -C web test", "npm --prefix web test", "cargo test --manifest-path=web/Cargo.toml"):
        assert known(shell(command)) == [(command, "")]
        assert plan([wrote("api/a.py")], Known(command)) == []
        assert plan([wrote("web/a.py")], Known(command)) == [command]
    assert known(shell("ctest -C Debug")) == [("ctest -C Debug", "")]
    assert known(shell("make -C /work/shop test")) == [("make -C /work/shop test", "")]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sh -c 'curl x'", "network"),
        ("`curl x`", "network"),
        ("\\curl x", "network"),
        ("make test </dev/tcp/h/80", "network"),
        ("make test&&curl<x", "network"),
        ("make test deploy", "deployment"),
        ("sudo make test", "rights"),
        ("/usr/bin/curl x", "network"),
        ("aws s3 ls", "network"),
        ("PGHOST=db make test", "network"),
        ("psql --host db -f t.sql", "network"),
        ("docker push shop", "push"),
        ("npm run push", "push"),
        ("eval git push", "push"),
        ("bash <<< 'git push'", "here-document"),
    ],
)
def test_quotes_hide_no_program(command: str, why: str) -> None:
    """Nor what stands directly beside it."""
    assert why in refused(command)


@pytest.mark.parametrize(
    ("command", "path", "says"),
    [
        ("make test", "/r/Makefile", True),
        ("npm test", "package.json", True),
        ("sh check.sh", "/r/check.sh", True),
        ("./tools/check.sh -q", "tools/check.sh", True),
        ("./check", "/r/check", True),
        ("script/check --all", "/r/script/check", True),
        ("bash -e scripts/check.sh", "scripts/check.sh", True),
        ("python3 -u tools/check.py", "/r/tools/check.py", True),
        ("./check", "/r/src/recheck", False),
        (". .venv/bin/activate && pytest -q", "/r/pytest.ini", True),
        ("make test", "src/calc.py", False),
        ("python3 tests/test_calc.py", "tests/test_calc.py", False),
        ("pytest -q", "/r/package.json", False),
    ],
)
def test_which_file_says_what_a_check_runs(command: str, path: str, *, says: bool) -> None:
    """A test is what is run, and its edits are looked at by themselves."""
    assert defines(command, path) is says
