"""The keys of APIs: each with the address that it may be sent to, from the same place; and a login of Claude
Code's, if it is a token.

A key is never logged and never shown. One that can't be read is a ``UserError``.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from .core.errors import UserError, words
from .core.settings import SETTINGS
from .files.safe import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .core.settings import Api, Embed, Settings

KEY_LIMIT: Final = 4 * 1024  # bytes
TOKEN: Final = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - the name of a variable


class Access(NamedTuple):
    """A key, the address that it may be sent to ("" is the vendor's own), and where both come from."""

    key: str = ""
    base_url: str = ""
    place: str = ""

    def __repr__(self) -> str:
        """Without the key."""
        return f"Access(key={bool(self.key)}, base_url={self.base_url!r}, place={self.place!r})"


class Keys(NamedTuple):
    """The API keys. They are never logged and never shown.

    ``by_host``: a host starts the daemon. ``unused``: provider -> the variable of the environment whose key
    is not used because of that. ``claude``: the token with which Claude Code itself is logged in.
    """

    anthropic: Access = Access()
    openai: Access = Access()
    by_host: bool = False
    unused: Mapping[str, str] = MappingProxyType({})
    claude: Access = Access()

    @property
    def apis(self) -> dict[str, Access]:
        """Each key by the name of its provider."""
        return {"anthropic": self.anthropic, "openai": self.openai}


class Variables(NamedTuple):
    """Where the tools of a vendor look for a key and an address, and the vendor's own address."""

    key: str
    address: str
    official: str


VARIABLES: Final = MappingProxyType({
    "anthropic": Variables("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Variables("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
})  # fmt: skip


def load_keys(env: Mapping[str, str], settings: Settings, *, by_host: bool = False) -> Keys:
    """The keys, each with its address from the same place. Raises ``UserError``.

    The first of these counts: the file that the settings name; the variable that they name, for the address
    beside it; the vendor's own variables for key and address. The last only if a person starts the daemon:
    the environment of a host (``by_host``) may be that of one project, and nobody chose to have its key sent
    anywhere.
    """
    apis = settings.apis
    found = {name: _access(name, api, env, VARIABLES[name], by_host=by_host) for name, api in apis.items()}
    unused = {
        name: VARIABLES[name].key
        for name, api in apis.items()
        if by_host and not (found[name].place or api.base_url) and env.get(VARIABLES[name].key, "").strip()
    }
    return Keys(found["anthropic"], found["openai"], by_host, unused, _claude(env, settings))


def embed_access(env: Mapping[str, str], settings: Settings, *, by_host: bool = False) -> Access:
    """The key for embeddings with its address, found as those of ``load_keys`` are; the usual variables are
    OpenAI's. Raises ``UserError``.
    """
    return _access("embed", settings.embed, env, VARIABLES["openai"], by_host=by_host)


def _claude(env: Mapping[str, str], settings: Settings) -> Access:
    """Claude Code takes the variable out of the environment of its hooks, so a file counts first."""
    if settings.claude_cli.token_file:
        place = "claude_cli.token_file"
        return Access(_in_file(place, settings.claude_cli.token_file), place=place)
    token = env.get(TOKEN, "").strip()
    return Access(token, place=f"{TOKEN} of the environment" if token else "")


def _access(
    section: str,
    api: Api | Embed,
    env: Mapping[str, str],
    usual: Variables,
    *,
    by_host: bool,
) -> Access:
    if api.key_file:
        return Access(_in_file(f"{section}.key_file", api.key_file), api.base_url, f"{section}.key_file")
    if variable := getattr(api, "key_env", ""):
        if not api.base_url:
            raise UserError(f"{section}.key_env needs {section}.base_url, the address that gets the key")
        place = f"{section}.key_env ({variable}) and {section}.base_url"
        return Access(env.get(variable, "").strip(), api.base_url, place)
    key, address = env.get(usual.key, "").strip(), env.get(usual.address, "").strip()
    if api.base_url or by_host or not key or not SETTINGS[f"{section}.base_url"].valid(address):
        return Access("", api.base_url)
    return Access(key, address, f"{usual.key}{f' and {usual.address}' if address else ''} of the environment")


def _in_file(setting: str, name: str) -> str:
    path = Path(name).expanduser()
    try:
        found = (read_text(path, KEY_LIMIT) or "").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{setting}: {path} can't be read: {words(error)}") from None
    if not found:
        raise UserError(f"{setting}: {path} is missing or empty; put the key there or unset it")
    return found
