"""How opencode is connected: a line in the ``plugin`` list of its settings, which names the plugin's copy.

Says which lines count as ours.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, UserError
from ...files import jsonc
from . import copies
from .connect import Host, named
from .edit import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMES: Final = ("opencode.json", "opencode.jsonc")
LIST: Final = ("plugin",)
# The npm name, or a path into the data folder, an installed package (whose older name was `daemon`), a
# checkout, node_modules or the built bundle.
_OURS: Final = re.compile(
    r"^(npm:)?opencode-reflectd(@|$)|/opencode-reflectd(/|$)"
    r"|/(reflectd/plugins|(daemon|reflectd)/shims|plugin-shim)/opencode(/|$)|/reflectd\.[cm]?[jt]s$"
)


class OpenCode(Host):
    """See the module."""

    host, program = "opencode", "opencode"
    places = (".opencode/bin/opencode", ".local/bin/opencode")
    address = "https://opencode.ai"
    new = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'

    def files(self, env: Mapping[str, str]) -> list[Path]:
        """Those that opencode reads; it reads all of them."""
        return [_global_folder(env) / name for name in NAMES]

    def read_in(self, env: Mapping[str, str], folder: Path) -> list[Path]:
        """Those of ``folder`` and of the folders above it, and those that variables name."""
        files = [base / name for base in _bases(env, folder) for name in (*NAMES, "config.json")]
        chosen = env.get("OPENCODE_CONFIG")
        return [*files, Path(chosen)] if chosen else files

    def line(self, env: Mapping[str, str]) -> str:
        """The folder and not its file: version 2 of opencode loads no plugin that is named by its file."""
        return copies.place(env, self.host).as_uri()

    def choose(self, files: list[Path]) -> Path:
        """The file with our line, else one with a plugin list, else the first that exists."""
        there = dict[Path, list[str]]()
        for file in filter(Path.exists, files):
            with named(file):
                there[file] = _specs(read_text(file))
        with_ours = [file for file, specs in there.items() if any(map(_is_ours, specs))]
        with_list = [file for file, specs in there.items() if specs]
        return [*with_ours, *with_list, *there, *files][0]

    def mine(self, text: str) -> list[str]:
        """Our lines."""
        return [spec for spec in _specs(text) if _is_ours(spec)]

    def put(self, text: str, line: str) -> str:
        """``line`` stands in the place of the first of ours, with its options; the other ones go."""
        entries = jsonc.items(text, LIST)
        ours = [_is_ours(spec_of(entry)) for entry in entries]
        if True not in ours:
            return jsonc.add_item(text, LIST, line)
        at = ours.index(True)
        text = jsonc.drop_items(text, LIST, lambda entry: _is_ours(spec_of(entry)), after=at)
        return jsonc.put(text, (*LIST, at, 0) if isinstance(entries[at], list) else (*LIST, at), line)

    def take(self, text: str, before: str) -> str:
        """A list that is empty then goes too, unless it was there before."""
        text = jsonc.drop_items(text, LIST, lambda entry: _is_ours(spec_of(entry)))
        made = not jsonc.items(text, LIST) and LIST[0] not in jsonc.read(before)
        return jsonc.take(text, LIST) if made else text

    def warnings(self, env: Mapping[str, str], folder: Path, file: Path, text: str) -> Iterator[str]:
        """The same line in two files is loaded once, and different lines are loaded twice."""
        line = self.mine(text)[:1]
        for other, spec in loaded(env, folder):
            if other != file and [spec] != line:
                yield f"{other} lists reflectd too ({spec}): it would be loaded twice"


OPENCODE: Final = OpenCode()


def spec_of(entry: object) -> str:
    """The spec of an entry of the list, without its options; "" when opencode would ignore the entry."""
    first = entry[0] if isinstance(entry, list) and entry else entry
    return first if isinstance(first, str) else ""


def _specs(text: str) -> list[str]:
    return [spec_of(entry) for entry in jsonc.items(text, LIST)]


def _is_ours(spec: str) -> bool:
    return _OURS.search(spec) is not None


def loaded(env: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str]]:
    """The settings files with our lines that opencode reads when it is started in ``folder``, and each line.
    A file that can't be read is skipped: opencode itself will report it.
    """
    for file in OPENCODE.read_in(env, folder):
        with suppress(UserError, Unavailable):
            yield from ((file, spec) for spec in OPENCODE.mine(read_text(file)))


def _bases(env: Mapping[str, str], folder: Path) -> list[Path]:
    """The folders whose settings and plugins opencode loads when it is started in ``folder``."""
    bases = [_global_folder(env)]
    for base in (folder, *folder.parents):
        bases += [base, base / ".opencode"]
        if (base / ".git").exists():
            break
    for name, tail in (("HOME", ".opencode"), ("OPENCODE_CONFIG_DIR", "")):
        bases += [Path(env[name], tail)] if env.get(name) else []
    return list(dict.fromkeys(bases))


def _global_folder(env: Mapping[str, str]) -> Path:
    config, home = env.get("XDG_CONFIG_HOME", ""), env.get("HOME", "")
    base = Path(config) if config else Path(home, ".config")  # as opencode looks for it
    if not base.is_absolute():
        raise UserError("XDG_CONFIG_HOME or HOME must be an absolute path, to find opencode's settings")
    return base / "opencode"
