"""What a case of a silent session holds."""

from __future__ import annotations

import pytest

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.stuck.case import make_case
from tests.stuck.samples import BUSY, TEMPLATES


@pytest.mark.shows("I46")
def test_secrets_do_not_leave() -> None:
    """Request, reply and calls are redacted before the prompt is made."""
    secret = "ghp_" + "a1B2" * 9
    messages = (
        Message("m1", "user", text=f"Use {secret}", human=True),
        Message(
            "m2",
            "assistant",
            text=f"I use {secret} and",
            calls=(ToolCall("c", "bash", "completed", {"command": f"login {secret}"}),),
        ),
    )
    made = make_case(Transcript("s", messages), BUSY, at=1, nonce="n", templates=TEMPLATES)
    assert made is not None
    assert secret not in repr(made)
