"""Where things live, from an environment alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon import paths
from daemon.core.errors import UserError

HOME = {"HOME": "/home/ada"}


def test_everything_is_under_home_when_nothing_else_is_set() -> None:
    """A bare environment gives the documented defaults, and the socket lies in the state folder."""
    found = paths.resolve(HOME)
    assert found.state_dir == Path("/home/ada/.local/state/reflectd")
    assert found.socket == found.state_dir / "run" / "reflectd.sock"
    assert found.run_dir == found.socket.parent
    assert {found.database.parent, found.lock.parent, found.log_file.parent} == {found.state_dir}
    assert paths.config_file(HOME) == Path("/home/ada/.config/reflectd/config.toml")


def test_xdg_variables_move_state_settings_and_socket() -> None:
    """Each XDG variable moves its own part."""
    env = HOME | {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/1"}
    found = paths.resolve(env)
    assert found.state_dir == Path("/s/reflectd")
    assert found.socket == Path("/run/user/1/reflectd/reflectd.sock")
    assert paths.config_file(env) == Path("/c/reflectd/config.toml")


@pytest.mark.parametrize("value", ["", "relative/dir"])
def test_an_empty_or_relative_xdg_variable_counts_as_unset(value: str) -> None:
    """The XDG specification says so; shells set them empty."""
    env = HOME | {"XDG_STATE_HOME": value, "XDG_CONFIG_HOME": value, "XDG_RUNTIME_DIR": value}
    assert paths.resolve(env) == paths.resolve(HOME)
    assert paths.config_file(env) == paths.config_file(HOME)


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


def test_a_client_reads_where_the_daemon_listens(tmp_path: Path) -> None:
    """The address that the daemon wrote down is found by shells with another XDG_RUNTIME_DIR."""
    found = paths.resolve({"HOME": "/h", "REFLECTD_STATE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": "/r"})
    assert paths.find_socket(found) == found.socket
    found.socket_file.write_text("/elsewhere/reflectd.sock\n")
    assert paths.find_socket(found) == Path("/elsewhere/reflectd.sock")


@pytest.mark.parametrize("written", [b"", b"relative", b"\xff\xfe", b"/with\0nul"])
def test_a_broken_socket_file_is_ignored(tmp_path: Path, written: bytes) -> None:
    """A half-written or foreign file leaves the default address."""
    found = paths.resolve({"HOME": "/h", "REFLECTD_STATE_DIR": str(tmp_path), "XDG_RUNTIME_DIR": "/r"})
    found.socket_file.write_bytes(written)
    assert paths.find_socket(found) == found.socket


def test_a_chosen_socket_beats_the_file(tmp_path: Path) -> None:
    """A client to which a socket was given uses that one and no other."""
    found = paths.resolve({"REFLECTD_STATE_DIR": str(tmp_path), "REFLECTD_SOCKET": "/mine.sock"})
    found.socket_file.write_text("/elsewhere.sock")
    assert paths.find_socket(found) == Path("/mine.sock")


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
