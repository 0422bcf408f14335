"""What ``make release-check`` calls missing. The check itself needs the package indexes."""

from __future__ import annotations

from harness.machine.sandbox import REPO
from release.__main__ import missing


def test_the_npm_package_has_the_license() -> None:
    """npm packs no file from outside the package's folder, so there is a copy; it is the same text."""
    copy = REPO / "plugin-shim" / "opencode" / "LICENSE"
    assert copy.read_bytes() == (REPO / "LICENSE").read_bytes()


def test_what_is_missing_is_said_and_not_made_up() -> None:
    """No address of the project is known, so none is written down, and the check names each."""
    assert missing() == [
        "pyproject.toml: project.urls.Homepage",
        "pyproject.toml: project.urls.Repository",
        "pyproject.toml: project.urls.Issues",
        "pyproject.toml: project.urls.Changelog",
        "pyproject.toml: an address to write to, in project.authors",
        "plugin-shim/opencode/package.json: repository",
        "plugin-shim/opencode/package.json: homepage",
    ]
