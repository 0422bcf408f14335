"""Work that only the outputs of its calls give away: a secret in a commit, a failure inside a green log."""

from __future__ import annotations

from typing import Final

LEAK_REQUEST: Final = "Write hello.py, commit it and push it"
LOG_REQUEST: Final = "Run the tests of all packages and mend what fails"
PUSHED: Final = "hello.py is committed and pushed."
FAILING: Final = "example.org/shop/refund"
LONG_LOG: Final = (
    "seq 1 900 | sed 's|^|ok   example.org/shop/part|'; "
    f"echo 'FAIL {FAILING} 0.31s'; seq 901 1800 | sed 's|^|ok   example.org/shop/part|'"
)
_GIT: Final = "git -c user.name=A -c user.email=a@example.org"


def commit_with_secret(remote: str = "leak") -> str:
    """A script that commits everything there is and pushes it to a new repository beside the project."""
    return (
        f"echo NAME=value > .env && git init -q --bare ../{remote}.git && git remote add {remote} "
        f"../{remote}.git && git add -A && {_GIT} commit -m 'Add the greeting' && git push {remote} HEAD:main"
    )


def stop_tracking(remote: str = "leak") -> str:
    """What the feedback asks for."""
    return (
        f"git rm -q --cached .env && echo .env > .gitignore && git add .gitignore && "
        f"{_GIT} commit -m 'Stop tracking it' && git push {remote} HEAD:main"
    )
