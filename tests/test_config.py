"""Settings from files, environment and flags, and what a project may do to them."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import config
from daemon.config import Settings
from daemon.core.errors import UserError
from daemon.core.settings import Daemon, Judge, Log, Run

if TYPE_CHECKING:
    from pathlib import Path


def project(tmp_path: Path, text: str) -> Path:
    """A workspace with a settings file."""
    (tmp_path / ".reflection").mkdir()
    (tmp_path / ".reflection" / "config.toml").write_text(text)
    return tmp_path


def test_defaults_need_no_file_and_no_environment(tmp_path: Path) -> None:
    """Nothing set gives the documented defaults: acting, the best judge there is, no limit of idleness."""
    settings = config.load({}, tmp_path / "missing.toml")
    assert settings == Settings()
    assert settings.judge == Judge("act", "auto", "", timeout_s=180, max_attempts=16)
    assert settings.run == Run(gate=True)
    assert settings.daemon == Daemon("", "")
    assert settings.log == Log("info")


def test_each_layer_beats_the_one_below(tmp_path: Path) -> None:
    """Flags beat the environment, which beats the file, which beats defaults; explain says who won."""
    file = tmp_path / "config.toml"
    file.write_text("[judge]\ntimeout_s = 10\nmax_attempts = 2\nmax_per_hour = 30\n")
    env = {"REFLECTD_JUDGE_TIMEOUT_S": "20", "REFLECTD_JUDGE_MAX_ATTEMPTS": "3"}
    settings = config.load(env, file, {"judge.timeout_s": "40", "toasts": None})
    assert (settings.judge.timeout_s, settings.judge.max_attempts) == (40, 3)
    assert settings.judge.max_per_hour == 30
    sources = {row.key: row.source for row in config.explain(settings)}
    assert sources["judge.timeout_s"] == "--judge-timeout-s"
    assert sources["judge.max_attempts"] == "REFLECTD_JUDGE_MAX_ATTEMPTS"
    assert sources["judge.max_per_hour"] == str(file)
    assert sources["toasts"] == "default"


@pytest.mark.parametrize("key", list(config.SETTINGS))
def test_every_setting_can_come_from_environment_and_flag(key: str) -> None:
    """One table feeds them all, so no setting is reachable in one way only."""
    setting = config.SETTINGS[key]
    forms = {
        "model": "a/b",
        "path": "/s",
        "command": "make test",
        "url": "http://h",
        "name": "m",
        "names": "m, n",
        "folders": "node_modules, .venv",
        "variable": "A_KEY",
        "playbook": ".claude/playbook.json",
    }
    typed = forms.get(setting.form)
    if typed is None:
        other = {bool: "no" if setting.default else "yes", int: str(setting.range[1])}
        typed = other.get(type(setting.default)) or setting.choices[-1]
    from_env = config.from_text(env={setting.env: typed})
    assert from_env == config.from_text(flags={key: typed})
    assert from_env != Settings()


def test_empty_variables_count_as_unset_and_booleans_have_four_spellings() -> None:
    """``REFLECTD_X= reflectd`` is how shells unset; 1/true/yes/on are the same."""
    assert config.from_text(env={"REFLECTD_JUDGE_PROVIDER": "", "REFLECTD_TOASTS": " "}) == Settings()
    for off in ("0", "false", "No", "off"):
        assert config.from_text(env={"REFLECTD_TOASTS": off}).toasts is False


def test_reflection_debug_is_lenient_and_weaker_than_ours() -> None:
    """REFLECTION_DEBUG belongs to other plugins too: only 1 means something, and ours overrules it."""
    assert config.from_text(env={"REFLECTION_DEBUG": "1"}).log.level == "debug"
    assert config.from_text(env={"REFLECTION_DEBUG": "verbose"}) == Settings()
    both = {"REFLECTION_DEBUG": "1", "REFLECTD_LOG_LEVEL": "error"}
    assert config.from_text(env=both).log.level == "error"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[judge]\nprovder = 'host'", "f.toml: unknown setting judge.provder, did you mean judge.provider?"),
        ("[jugde]\nmode = 'act'", "did you mean judge.mode?"),
        ("judge = 3", "judge is a table: write [judge]"),
        ("[judge]\ntimeout_s = '9'", "f.toml: judge.timeout_s must be a whole number from 5 to 600, not '9'"),
        ("[judge]\ntimeout_s = true", "a whole number"),
        ("[judge]\ntimeout_s = 9.5", "a whole number"),
        ("[judge]\ntimeout_s = 1", "from 5 to 600"),
        (
            "[judge]\nprovider = 'gpt'",
            '"auto" or "host" or "anthropic" or "openai" or "claude-cli" or "offline"',
        ),
        ("[openai]\nbase_url = 'localhost:8080'", "an address with http:// or https://"),
        ("[openai]\nbase_url = 'http://a b'", "an address with http:// or https://"),
        ("[anthropic]\nmodel = ''", "a model's name"),
        ("[anthropic]\nkey_file = 'key'", "an absolute path"),
        ("[fast]\nmodels = 'a,,b'", "fast.models must be models' names with commas between them"),
        ("[fast]\nmodels = 'a b'", "models' names with commas between them"),
        (f"[fast]\nmodels = '{'a,' * 50}a'", "models' names with commas between them"),
        ("[fast]\nmodels = ['a', 'b']", "not a list"),
        ("[judge]\nmodel = 'sonnet'", '"provider/model" or ""'),
        ("enabled = 1", "true or false"),
        ("toasts = [{a.b = 1}]", "not a list"),
        ("[daemon]\nsocket = 'here'", "an absolute path"),
        ("[daemon]\nstate_dir = '/s'", "set REFLECTD_STATE_DIR in the environment instead"),
        ("x", "f.toml is not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_a_mistake_in_the_file_names_file_key_and_remedy(text: str, said: str) -> None:
    """A wrong file stops the start with a message that says what to do."""
    with pytest.raises(UserError) as caught:
        config.from_text(text, name="f.toml")
    assert said in str(caught.value)


def test_all_mistakes_are_reported_at_once() -> None:
    """One start lists all mistakes, so that nobody must start once per mistake."""
    with pytest.raises(UserError) as caught:
        config.from_text("a = 1\nenabled = 2", env={"REFLECTD_JUDGE_MODE": "maybe"}, flags={"toasts": "x"})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "config.toml", "config.toml", "REFLECTD_JUDGE_MODE", "--toasts",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["REFLECTD_JUGDE_MODE", "REFLECTD_JUDGE_COLOUR", "REFLECTD_TOAST"])
def test_a_misspelt_variable_is_an_error_with_the_nearest_name(name: str) -> None:
    """A misspelt variable, as in a unit file, is reported."""
    with pytest.raises(UserError, match=name):
        config.from_text(env={name: "1"})


def test_other_variables_under_our_prefix_are_left_alone() -> None:
    """REFLECTD_CHILD marks our child processes and is no setting; other programs' variables are ignored."""
    assert (
        config.from_text(
            env={"REFLECTD_CHILD": "1", "REFLECTD_PROOF": "1", "REFLECTD_XYZ": "1", "JUDGE_MODE": "x"}
        )
        == Settings()
    )


@pytest.mark.shows("I46")
def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    """A key pasted into a setting doesn't come back in the message."""
    secret = "sk-ant-api03-AbCdEfGhIjKl0123456789"
    with pytest.raises(UserError) as caught:
        config.from_text(f"[judge]\nprovider = '{secret}'")
    assert "AbCdEf" not in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "fifo", "binary", "huge"])
def test_a_file_that_is_no_settings_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """A FIFO would hang the start, a huge file the memory; for a project it means observe."""
    base = project(tmp_path, "")
    file = base / config.PROJECT_FILE
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.write_bytes(b"\xff\xfe\x00" if kind == "binary" else b"#" * (config.FILE_LIMIT + 1))
    with pytest.raises(UserError, match=str(file)):
        config.load({}, file)
    settings, problems = config.load_project(Settings(), base)
    assert settings.judge.mode == "observe"
    assert len(problems) == 1


def test_a_project_may_tighten(tmp_path: Path) -> None:
    """Each of the five kinds of stricter value counts, wherever the other value was set."""
    base = config.from_text(
        env={"REFLECTD_ENABLED": "1", "REFLECTD_JUDGE_MODE": "act"},
        flags={"judge.max_attempts": "16", "run.gate": "1", "toasts": "1"},
    )
    text = (
        'enabled = false\ntoasts = false\n[judge]\nmode = "observe"\nmax_attempts = 2\n[run]\ngate = false\n'
    )
    settings, problems = config.load_project(base, project(tmp_path, text))
    assert problems == []
    assert settings == Settings(
        enabled=False, toasts=False, judge=Judge(mode="observe", max_attempts=2), run=Run(gate=False)
    )
    assert {r.key for r in config.explain(settings) if r.source == config.PROJECT_FILE} == {
        "enabled", "toasts", "judge.mode", "judge.max_attempts", "run.gate",
    }  # fmt: skip


def test_a_project_never_loosens() -> None:
    """What a person switched off stays off; the file's wish is named as a problem."""
    strict = config.from_text("enabled = false\n[judge]\nmode = 'observe'\nmax_attempts = 2")
    wish = "enabled = true\n[judge]\nmode = 'act'\nmax_attempts = 50\nprovider = 'host'\n[daemon]\nsocket = 1"
    settings, problems = config.tighten(strict, wish)
    assert settings == strict
    assert len(problems) == 5
    assert config.tighten(strict, "[judge]\nmax_attempts = 3") == (strict, [])


@pytest.mark.shows("I41")
def test_a_project_never_makes_judging_cost_more() -> None:
    """A clone names no model, neither a dearer one nor the person's own server."""
    settings, problems = config.tighten(Settings(), "[judge]\nmodel = 'a/b'")
    assert settings == Settings()
    assert problems == [".reflection/config.toml: a project may not set judge.model; ignored"]


@pytest.mark.parametrize("key", sorted(k for k, s in config.SETTINGS.items() if s.tighten == "off"))
def test_a_switch_goes_one_way_only(key: str) -> None:
    """A clone's file sets a switch to its tight end, never to the other, whatever the default is."""
    section, _, name = f".{key}".rpartition(".")
    tight, loose = (
        str(v).lower() for v in (config.SETTINGS[key].tightest, not config.SETTINGS[key].tightest)
    )
    head = f"[{section[1:]}]\n" if section else ""
    strict, lax = config.from_text(f"{head}{name} = {tight}"), config.from_text(f"{head}{name} = {loose}")
    assert config.tighten(lax, f"{head}{name} = {tight}")[0] == strict
    assert config.tighten(strict, f"{head}{name} = {loose}")[0] == strict


@pytest.mark.parametrize(
    ("text", "tight"),
    [
        ("enabled = 'no'", Settings(enabled=False)),
        ("[judge]\nmode = 'obsreve'", Settings(judge=Judge(mode="observe"))),
        ("[judge]\nmax_attempts = 0", Settings(judge=Judge(max_attempts=1))),
        ("[run]\ngate = 0", Settings(run=Run(gate=False))),
        ("= broken", Settings(judge=Judge(mode="observe"))),
    ],
)
def test_a_wish_that_cant_be_understood_is_taken_at_its_tightest(text: str, tight: Settings) -> None:
    """A value that can't be understood counts as the strictest one, and is reported."""
    settings, problems = config.tighten(Settings(), text)
    assert settings == tight
    assert len(problems) == 1


def test_unknown_keys_of_a_project_are_ignored_and_named() -> None:
    """A newer reflectd's key, or a typo, is told with the nearest name and changes nothing."""
    settings, problems = config.tighten(Settings(), "enabeld = false\n[future]\nx = 1")
    assert settings == Settings()
    assert "did you mean enabled?" in problems[0]
    assert "future.x" in problems[1]


def test_a_project_without_a_file_changes_nothing(tmp_path: Path) -> None:
    """No folder, no file, and a file where the folder should be: the settings stay."""
    (tmp_path / ".reflection").write_text("not a folder")
    for directory in (tmp_path, tmp_path / "missing"):
        assert config.load_project(Settings(), directory) == (Settings(), [])


def test_a_hostile_project_file_costs_little(tmp_path: Path) -> None:
    """tomllib is quadratic on dotted keys, so the file is small or not read; problems are bounded."""
    many = "".join(f"k{n}=1\n" for n in range(600))
    _, problems = config.load_project(Settings(), project(tmp_path, many[: config.PROJECT_LIMIT - 8]))
    assert 0 < len(problems) <= config.MAX_PROBLEMS


def is_tighter(one: Settings, other: Settings) -> bool:
    """Whether ``one`` allows nothing that ``other`` doesn't."""
    return (
        one.enabled <= other.enabled
        and one.toasts <= other.toasts
        and one.run.gate <= other.run.gate
        and one.judge.max_attempts <= other.judge.max_attempts
        and (one.judge.mode == "observe" or other.judge.mode == "act")
    )


wishes = st.dictionaries(
    st.sampled_from(list(config.SETTINGS)),
    st.sampled_from(["true", "false", "0", "3", "99", '"observe"', '"act"', '"host"', '"/x"', "[]", "{}"]),
)


@given(wishes)
def test_whatever_a_project_says_the_result_is_tighter(wish: dict[str, str]) -> None:
    """Only tighten: for any file, nothing else changes, and a second reading changes nothing more."""
    base = config.from_text("[judge]\nmax_attempts = 8", env={"REFLECTD_TOASTS": "0"})
    text = "".join(f"{key} = {value}\n" for key, value in wish.items())
    settings, _ = config.tighten(base, text)
    assert is_tighter(settings, base)
    assert (settings.judge.provider, settings.judge.model, settings.daemon, settings.log) == (
        base.judge.provider, base.judge.model, base.daemon, base.log,
    )  # fmt: skip
    assert config.tighten(settings, text)[0] == settings


@given(st.text(max_size=200))
def test_any_text_as_a_project_file_never_raises(text: str) -> None:
    """A project's file never stops the daemon."""
    settings, problems = config.tighten(Settings(), text)
    assert is_tighter(settings, Settings())
    assert all("\x1b" not in problem for problem in problems)


def test_the_table_of_the_docs_has_a_row_for_each_setting() -> None:
    """The table for the docs has the key, default and variable of every setting."""
    table = config.settings_table()
    for setting in config.SETTINGS.values():
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{setting.key}`")]
        assert setting.env in row
        assert setting.doc in row
    assert all(line.count(" | ") == 5 for line in table.splitlines())


def _lines(one: str) -> str:
    """As many different lines as fit into a project's file."""
    made = "".join(one.format(n=n) + "\n" for n in range(2_000))
    return made[: made.rindex("\n", 0, config.PROJECT_LIMIT)]


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 2_040) + " = 1",
        "[" + ".".join("a" * 2_040) + "]",
        _lines("judge.secnd_look{n} = 1"),
        _lines("[a{n}]"),
        _lines("judge.max_attempts.a{n} = 'x'"),
        _lines("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a{n} = 1"),
    ],
)
def test_a_projects_file_is_understood_quickly(text: str) -> None:
    """Whatever fits into it, its cost is that of some ordinary files, not that of a thousand."""
    assert len(text) <= config.PROJECT_LIMIT
    ordinary = "".join(f"# {n}\n" for n in range(500)) + "enabled = true\n[judge]\nmode = 'observe'\n"
    unknown = "".join(f"nothing{n} = 1\n" for n in range(3))

    def seconds(what: str) -> float:
        took = []
        for _ in range(3):
            began = time.process_time()
            config.tighten(Settings(), what)
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(text) < 20 * (seconds(ordinary) + seconds(unknown))


def test_a_projects_check_is_read_within_the_bounds_of_its_settings(tmp_path: Path) -> None:
    """A line with many dots takes the parser quadratic time, so a file that has one names no check either."""
    file = tmp_path / config.PROJECT_FILE
    file.parent.mkdir()
    file.write_text('proof.command = "make test"\n')
    assert config.project_command(tmp_path) == "make test"
    file.write_text(f'proof.command = "make test"\n{"a." * (config.MAX_DOTS + 1)}a = 1\n')
    assert config.project_command(tmp_path) == ""
