"""A model server's steps for learning: what a reflector and a curator say, with the nonce of their call."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from harness.models.api_servers import Says, Step, Wire

Json = dict[str, Any]
ROLES = {"You look back": "reflector", "You keep the playbook": "curator"}


@dataclass(frozen=True)
class Learns(Step):
    """One answer, to whichever of the two asks: the test sees by ``asked`` who did, about what."""

    says: Json
    role: str
    asked: list[str] = field(default_factory=list)

    async def play(self, wire: Wire, body: Json, request: web.Request) -> web.StreamResponse:
        text = json.dumps(body, ensure_ascii=False)
        nonce = re.search(r"The marker of this data is (\w+)\.", text)
        assert nonce is not None, text
        self.asked.append(text)
        role = next(name for begins, name in ROLES.items() if begins in text)
        assert role == self.role, f"{role} asks where {self.role} was expected"
        said = json.dumps({"nonce": nonce[1], **self.says})
        return await replace(Says(), text=said, input=8_000, output=300).play(wire, body, request)


def reflects(*confirmed: tuple[str, str], analysis: str = "It went well.", **more: Any) -> Learns:
    """What a reflector says. ``confirmed``: names of texts that wait, and what shows that they are true."""
    found = [{"name": name, "cites": cites} for name, cites in confirmed]
    return Learns({"analysis": analysis, "bullet_tags": [], "confirmed": found, **more}, "reflector")


def curates(*texts: str) -> Learns:
    """A curator that adds these texts."""
    added = [{"type": "ADD", "section": "PROJECT CONTEXT", "text": text} for text in texts]
    return Learns({"reasoning": "r", "operations": added}, "curator")
