"""Which project a page is about: the one that the query names, else that of the newest verdict. A project
whose folder is gone is not offered.

The folder is looked up as verbs do it, so that a page and a verb speak of the same files. Blocks on the file
system: call it in a thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..core.errors import Rejected, UserError
from ..engine.pages.sections import link, piece, row, section
from ..files import upward
from .rules.learned_rules import LearnedRules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..engine.features.feature import Parts

BY: Final = "dashboard"
"""Who changed something, as the lists of changes have it."""
LOOKED_AT: Final = 50  # verdicts
LONGEST: Final = 300  # characters of a folder in a refusal
T = TypeVar("T")


class ChosenProject:
    """Finds it."""

    def __init__(self, parts: Parts) -> None:
        self._world = parts.world
        self._instances = parts.instances

    def of(self, query: Mapping[str, Any]) -> Path | None:
        """The folder that a page is about; None where there is none. Raises ``Rejected``."""
        named = str(query.get("directory", ""))
        newest = self._newest() if not named else ""
        return self.named(named or newest) if named or newest else None

    def named(self, directory: str) -> Path:
        """The project of this folder. Raises ``Rejected`` for what is none."""
        if not Path(directory).is_absolute() or "\0" in directory:
            raise Rejected("name the project by the whole path of its `directory`")
        known = {i.directory for i in self._instances} | set(self._world.sessions.off_folders())
        try:
            found = upward.project(directory, known)
            there = found.is_dir()
        except UserError as error:
            raise Rejected(str(error)) from error
        except OSError as error:  # a name that is too long
            raise Rejected(f"{directory[:LONGEST]} can't be read: {error.strerror}") from error
        if not there:
            raise Rejected(f"there is no folder {found}")
        return found

    def listed(self, chosen: Path | None, query: Mapping[str, Any]) -> dict[str, Any]:
        """The projects in which something was judged lately, each as a link."""
        known = self._world.verdicts.folders() | ({str(chosen)} if chosen else set())
        folders = [folder for folder in sorted(known) if Path(folder).is_dir()]
        some, more = piece(folders, query, "projects")
        rows = [
            row(link(folder, directory=folder), "below" if folder == str(chosen) else "") for folder in some
        ]
        told = "" if folders else "Nothing was judged yet."
        return section("Project", ("folder", "shown"), rows, text=told, more=more)

    def rules(self, chosen: Path) -> LearnedRules:
        """The rules, the playbook and the journal of this project, as verbs read and change them."""
        world = self._world
        return LearnedRules(chosen, world.db.path.parent, world.clock, playbook=world.settings.playbook.path)

    def _newest(self) -> str:
        """The folder of the newest verdict whose folder is still there; "" for none."""
        found = dict.fromkeys(stored.directory for stored in self._world.verdicts.newest(limit=LOOKED_AT))
        return next((folder for folder in found if Path(folder).is_dir()), "")


def refusing(work: Callable[[], T]) -> Callable[[], T]:
    """The same work; what it refuses with ``UserError`` is a ``Rejected`` with the same words."""

    def run() -> T:
        try:
            return work()
        except UserError as error:
            raise Rejected(str(error)) from error

    return run


def said_by_person(body: Mapping[str, Any], *names: str) -> list[str]:
    """The texts of a click's body, in this order. Raises ``Rejected``."""
    found = [body.get(name) for name in names]
    texts = [value for value in found if isinstance(value, str) and value]
    if len(texts) != len(names):
        raise Rejected(f"name {', '.join(names)}")
    return texts
