"""A real chromium for tests of the dashboard: the machine's own, driven by playwright, one for each file.

Each visit has a fresh context, so no cookie of another one. What a page may not do fails the visit at its
end: a request that leaves loopback, an error or a refusal of the content policy on the console, an exception
of a script. No browser is ever downloaded.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, sync_playwright

from harness.machine.sandbox import REPO
from harness.machine.waiting import PATIENCE_S

AXE = REPO / "tests" / "web" / "node_modules" / "axe-core" / "axe.min.js"
"""Put into the page by the debugger, so that the page's content policy need not allow it."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
GRAVE = {"serious", "critical"}


@dataclass
class Visit:
    """One page in a context of its own, with what it asked for and what it said."""

    page: Page
    context: BrowserContext
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        """Keep what is said on the console as an error."""
        if message.type == "error":
            self.errors.append(f"{message.location.get('url', '')}: {message.text}")

    def outside(self) -> list[str]:
        """The requests that left this machine, or tried to."""
        inner = {"about", "blob", "data"}
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in inner and urlsplit(url).hostname not in LOOPBACK
        ]

    def text(self) -> str:
        """What a person reads on the page."""
        return str(self.page.locator("body").inner_text())

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    def barriers(self) -> list[str]:
        """What axe finds that keeps people out, if it is serious or critical: the rule and where."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found: dict[str, Any] = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        return [
            f"{v['id']} ({v['impact']}): {node['html'][:200]}"
            for v in found["violations"]
            if v["impact"] in GRAVE
            for node in v["nodes"]
        ]


class Browser:
    """``with Browser() as browser``: a chromium that was started; it ends with the block."""

    def __init__(self) -> None:
        self._all = contextlib.ExitStack()

    def __enter__(self) -> Self:
        program = shutil.which("chromium")
        assert program is not None, "there is no chromium"
        with contextlib.ExitStack() as stack:
            playwright = stack.enter_context(sync_playwright())
            self._chromium = playwright.chromium.launch(
                executable_path=program, args=FLAGS, timeout=PATIENCE_S * 1000
            )
            stack.callback(self._chromium.close)
            self._all = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    @contextlib.contextmanager
    def visit(
        self, url: str = "", *, width: int = 1280, height: int = 800, dark: bool = False
    ) -> Iterator[Visit]:
        """Open the address in a fresh context. An ``AssertionError`` at the end when the page misbehaved."""
        context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE_S * 1000)
        try:
            visit = Visit(context.new_page(), context)
            context.on("request", lambda r: visit.requests.append(r.url))
            context.on("console", visit.heard)
            visit.page.on("pageerror", lambda e: visit.errors.append(str(e)))
            visit.page.on("websocket", lambda w: visit.requests.append(w.url))
            if url:
                visit.page.goto(url)
            yield visit
            assert visit.outside() == [], f"requests left this machine: {visit.outside()}"
            assert visit.errors == [], f"the page reported errors: {visit.errors}"
        finally:
            context.close()
