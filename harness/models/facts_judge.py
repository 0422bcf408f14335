"""A judge for stories whose subject is not the judge: a model server on loopback that reads the rows of the
prompt.

It says that it is the person's turn after a question, "incomplete" for a failed check that is open, else
"complete". It speaks OpenAI's wire format, so a daemon asks it as it asks any model.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from typing import Any, Final

from aiohttp import web

_FAILED: Final = re.compile(
    r"^(?P<id>E\d+) \[check failed\] \w+ at A[\d.]+: `(?P<command>[^`]+)` (?P<how>.*)$", re.MULTILINE
)
_OLD: Final = ("without the changes", "files that were not written")
_NONCE: Final = re.compile(r"^The marker of this data is (\w+)\.$", re.MULTILINE)
_FINAL: Final = re.compile(r"^--- the agent's last message \w+\n(.*?)\n--- end", re.MULTILINE | re.DOTALL)


def assess(prompt: str) -> dict[str, Any]:
    """The verdict on a judge's prompt; of a second look, that nobody can defend the stop."""
    nonce = _NONCE.search(prompt)
    said: dict[str, Any] = {
        "requirements": [], "reasons": "by the rows", "nonce": nonce[1] if nonce else "", "complete": True,
        "severity": "NONE", "missing": [], "next_actions": [], "requires_human_action": False, "excused": [],
        "feedback": "", "defended": False,
    }  # fmt: skip
    failed = [m for m in _FAILED.finditer(prompt) if not any(words in m["how"] for words in _OLD)]
    final = _FINAL.search(prompt)
    if final and final[1].rstrip().endswith("?"):
        said |= {"complete": False, "requires_human_action": True, "feedback": "The agent asks."}
    elif failed:
        items = [(m["id"], f"`{m['command']}` failed after the last edit") for m in failed]
        again = [f"Fix it and run `{m['command']}` again." for m in failed]
        summary = failed[0]["how"].partition(": ")[2].partition("; failed tests")[0]
        said |= {
            "complete": False,
            "severity": "HIGH",
            "missing": [{"item": item, "cites": name} for name, item in items],
            "next_actions": again,
            "feedback": f"{items[0][1]} ({items[0][0]}): {summary}. {again[0]}",
        }
    return said


class FactsJudge:
    """``FactsJudge().env`` are the settings of a daemon that asks it. It runs in a thread until the process
    ends.
    """

    def __init__(self) -> None:
        self.url = ""
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), name="facts-judge", daemon=True).start()
        assert self._ready.wait(60), "the judge did not start"

    @property
    def env(self) -> dict[str, str]:
        """Settings as variables."""
        return {
            "REFLECTD_JUDGE_PROVIDER": "openai",
            "REFLECTD_OPENAI_BASE_URL": self.url,
            "REFLECTD_OPENAI_MODEL": "facts",
        }

    async def _serve(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        await asyncio.Event().wait()

    async def _models(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": [{"id": "facts", "object": "model"}]})

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt = str(body["messages"][-1]["content"])
        message = {"role": "assistant", "content": json.dumps(assess(prompt))}
        return web.json_response({
            "id": "facts-1", "object": "chat.completion", "created": int(time.time()), "model": "facts",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        })  # fmt: skip
