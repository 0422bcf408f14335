"""Where things live, from an environment alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon import paths
from daemon.core.errors import UserError

HOME = {"HOME": "/home/ada"}


@pytest.mark.parametrize(
    ("more", "state", "socket", "config"),
    [
        *(
            (
                dict.fromkeys(("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"), unset),
                "/home/ada/.local/state/reflectd",
                "/home/ada/.local/state/reflectd/run/reflectd.sock",
                "/home/ada/.config/reflectd/config.toml",
            )
            for unset in ("", "relative/dir")
        ),
        (
            {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/1"},
            "/s/reflectd",
            "/run/user/1/reflectd/reflectd.sock",
            "/c/reflectd/config.toml",
        ),
    ],
)
def test_xdg_variables_move_state_settings_and_socket(
    more: dict[str, str], state: str, socket: str, config: str
) -> None:
    """Each moves its own part; one that is empty or relative counts as unset, as the specification says."""
    found = paths.resolve(HOME | more)
    assert (str(found.state_dir), str(found.socket)) == (state, socket)
    assert str(paths.config_file(HOME | more)) == config
    assert {found.database.parent, found.lock.parent, found.log_file.parent} == {found.state_dir}


def test_our_variables_win_over_xdg_and_settings_win_over_both() -> None:
    """REFLECTD_* beat XDG_*; what the merged settings say beats both."""
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": "/r", "REFLECTD_SOCKET": "/x.sock", "REFLECTD_STATE_DIR": "/st"}
    assert (paths.resolve(env).socket, paths.resolve(env).state_dir) == (Path("/x.sock"), Path("/st"))
    told = paths.resolve(env, socket="~/y.sock", state_dir="/other")
    assert (told.socket, told.state_dir) == (Path("/h/y.sock"), Path("/other"))
    assert told.run_dir == Path("/r/reflectd")  # never the folder of somebody else's choice


def test_home_is_only_needed_when_something_lies_in_it() -> None:
    """A unit without HOME works when the folders are given; otherwise the message says what to set."""
    assert paths.resolve({"REFLECTD_STATE_DIR": "/s"}).socket == Path("/s/run/reflectd.sock")
    with pytest.raises(UserError, match="HOME"):
        paths.resolve({})


@pytest.mark.parametrize("name", ["REFLECTD_SOCKET", "REFLECTD_STATE_DIR"])
def test_a_relative_path_of_ours_is_refused(name: str) -> None:
    """The daemon and its clients start in different folders, so they would not meet."""
    with pytest.raises(UserError, match="absolute"):
        paths.resolve(HOME | {name: "here"})


def test_a_socket_path_the_kernel_would_refuse_says_what_to_set() -> None:
    """103 bytes are fine everywhere, 104 are not on macOS; bytes are counted, not characters."""
    fits = "/" + "a" * 102
    assert paths.resolve(HOME | {"REFLECTD_SOCKET": fits}).socket == Path(fits)
    for long in (fits + "a", "/" + "é" * 52):
        with pytest.raises(UserError, match="REFLECTD_SOCKET"):
            paths.resolve(HOME | {"REFLECTD_SOCKET": long})


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (None, ""),
        (b"/elsewhere.sock\n", "/elsewhere.sock"),
        *((b, "") for b in (b"", b"x", b"\xff", b"/a\0b")),
    ],
)
def test_a_client_reads_where_the_daemon_listens(tmp_path: Path, written: bytes | None, found: str) -> None:
    """Shells with another XDG_RUNTIME_DIR find the address that the daemon wrote down; a broken file leaves
    the default, and a chosen socket beats the file.
    """
    env = {"HOME": "/h", "REFLECTD_STATE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": "/r"}
    where = paths.resolve(env)
    if written is not None:
        where.socket_file.write_bytes(written)
    assert str(paths.find_socket(where)) == (found or "/r/reflectd/reflectd.sock")
    assert paths.find_socket(paths.resolve(env | {"REFLECTD_SOCKET": "/mine.sock"})) == Path("/mine.sock")


def test_a_read_only_workspace_gets_a_folder_of_its_own() -> None:
    """Workspaces of one name don't share it, each keeps its own, and any name makes a plain folder."""
    found = paths.resolve(HOME)
    one, two = found.fallback_reflection("/a/site"), found.fallback_reflection("/b/site")
    assert one != two
    assert one == found.fallback_reflection("/a/site/")
    assert one.parent == found.state_dir / "workspaces"
    assert one.name.endswith("-site")
    odd = found.fallback_reflection("/a/../x\n y/ü" + "z" * 300).name
    assert odd.isascii()
    assert len(odd) < 60
    assert found.fallback_reflection("/").name.endswith("-root")


@pytest.mark.parametrize("name", ["../daemon/paths.py", "prompts/../../x", "tests", "/etc/passwd", ""])
def test_only_shipped_folders_can_be_named(name: str) -> None:
    """A name that leaves them is a bug of the caller."""
    with pytest.raises(ValueError, match="not a shipped name"):
        paths.shipped(name)


def test_a_missing_shipped_file_says_install_again() -> None:
    """A broken installation is a ``UserError``."""
    with pytest.raises(UserError, match="install it again"):
        paths.shipped("prompts/no-such-prompt.txt")


def test_where_nobody_connects_a_long_path_is_no_obstacle() -> None:
    """The library asks no daemon: it works in a folder in which a socket could not be."""
    env = {"HOME": f"/home/{'long' * 40}"}
    with pytest.raises(UserError, match="too long"):
        paths.resolve(env)
    assert paths.resolve(env, connects=False).diagnostics.is_relative_to(env["HOME"])
