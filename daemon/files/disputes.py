"""A person says that a verdict was wrong: its case is kept among the labelled cases, with what it should be.

It changes no verdict and sends nothing. After a second dispute the later label counts. What the wrong verdict
taught is taken back by whoever taught it: ``TAUGHT`` names the routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .labelled_cases import CaseFolder, Saved, summary

TAUGHT: Final = (("playbook", "forget"), ("memory", "withdraw"))
"""Feature and ``POST`` route, with ``{"session"}``: takes back what the session's verdicts taught."""


@dataclass(frozen=True, slots=True)
class Disputed:
    """``case``: what was judged. ``path``: where it is kept. ``before``: the label that it had, "" for none.
    ``agrees``: the judge had said just that.
    """

    case: Saved
    path: Path
    before: str
    agrees: bool


def dispute(state_dir: Path, source: Path, should_be: str, why: str, *, dry_run: bool = False) -> Disputed:
    """Keep the case ``source`` and label it. Raises ``UserError`` for a file that is no case, else
    ``Unavailable``. With ``dry_run`` nothing is written.
    """
    case, folder = summary(source), CaseFolder(state_dir)
    path = folder.path / source.name
    before = ""
    if not dry_run:
        folder.save(source)
        before = str((folder.label(path, should_be, why) or {}).get("expect") or "")
    return Disputed(case, path, before, case.judged == should_be)
