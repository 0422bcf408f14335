"""Which embedder the settings mean, what it lacks, and making it. Imports no library for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ..core.policy import forbids
from ..keys import Access, embed_access
from ..llm import address
from . import minilm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.ports import Embedder
    from ..core.settings import Settings

INSTALL: Final = "install reflectd with its extra: uv tool install '.[embed]'"


class Choice(NamedTuple):
    """An embedder by its name. ``why``: what it is, or why there is none, for a person. ``mend``: what gives
    one, "" when none is wanted. ``asked``: the settings name one that is not there.
    """

    name: Literal["minilm", "openai", "none"]
    why: str
    mend: str = ""
    asked: bool = False
    access: Access = Access()


def choose(settings: Settings, env: Mapping[str, str], *, by_host: bool = False) -> Choice:
    """The embedder that counts. Nobody is asked whether it works. Raises ``UserError`` for a key file that
    can't be read.
    """
    wanted = settings.embed
    named = wanted.provider != "auto"
    if wanted.provider == "none":
        return Choice("none", "embed.provider is none")
    if wanted.provider == "openai" or (not named and (wanted.base_url or wanted.key_file)):
        return _api(settings, env, by_host=by_host)
    lacking = minilm.missing()
    if lacking:
        part = f" (there is no {', '.join(lacking)})" if len(lacking) < len(minilm.PACKAGES) else ""
        why = f"no model for embeddings is set up{part}"
        if named:
            why = f"embed.provider is minilm, which is not installed{part}"
        return Choice("none", why, INSTALL, asked=named)
    return Choice("minilm", f"{minilm.MODEL} on this machine")


def _api(settings: Settings, env: Mapping[str, str], *, by_host: bool) -> Choice:
    wanted, zero = settings.embed, forbids(settings)
    if zero:
        return Choice("none", f"{zero} is 0, so no model is asked")
    access = embed_access(env, settings, by_host=by_host)
    if wanted.key_env and not access.key:
        mend = f"set {wanted.key_env}, or embed.key_file"
        return Choice("none", f"embed.key_env ({wanted.key_env}) names no key here", mend, asked=True)
    if not access.key and not access.base_url:
        mend = "set embed.base_url or embed.key_file"
        return Choice(
            "none", "embed.provider is openai, and there is no key and no address", mend, asked=True
        )
    from .openai_compat import OpenAIEmbedder

    at = address.host(access.base_url or OpenAIEmbedder.official)
    key = f"with the key from {access.place}" if access.key else "without a key"
    return Choice("openai", f"{wanted.model} at {at}, {key}", access=access)


def embedder(choice: Choice, settings: Settings) -> Embedder | None:
    """The embedder; None for ``none``. Raises ``UserError`` for a key or an address that can't be right."""
    if choice.name == "minilm":
        return minilm.MiniLM()
    if choice.name == "openai":
        from .openai_compat import OpenAIEmbedder

        access = choice.access
        return OpenAIEmbedder(api_key=access.key, base_url=access.base_url, model=settings.embed.model)
    return None
