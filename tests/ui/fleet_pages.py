"""Write pages from fleet documents, as joiner does, and open them in a browser."""

import base64
import hashlib
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from jinja2 import Environment, FileSystemLoader
from playwright.sync_api import Browser, BrowserContext, Page, Request

ROOT: Final = Path(__file__).resolve().parents[2]
ASSETS: Final = ROOT / "cli" / "ui" / "assets"
HD: Final = (1920, 1080)
PHONE: Final = (390, 844)
WAIT_TIMEOUT_S: Final = 30


class OpenPage(Protocol):
    """Opens the page of a file at a time, in milliseconds since 1970, with a selection such as "node=NAME"."""

    def __call__(
        self, path: Path, *, at: int | None = None, select: str = "", size: tuple[int, int] = HD, theme: str = "light"
    ) -> Page: ...


class PageOpener:
    """Opens pages, and collects their errors and their requests."""

    def __init__(self, browser: Browser) -> None:
        """Open pages in *browser*."""
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.messages: list[str] = []
        """Errors and warnings of the console, and uncaught exceptions."""
        self.requests: list[str] = []
        """URLs that a page requested, except for its own."""

    def open(
        self, path: Path, *, at: int | None = None, select: str = "", size: tuple[int, int] = HD, theme: str = "light"
    ) -> Page:
        scheme: Any = theme
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
        )
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self._note(request, path))
        parts = [f"t={format_time(at)}" if at is not None else "", select]
        page.goto(f"{path.as_uri()}#{'&'.join(filter(None, parts))}")
        wait_until(page, "!!window.joinerPage && !!document.querySelector('.plot canvas')")
        return page

    def _note(self, request: Request, path: Path) -> None:
        if not request.url.startswith(path.as_uri()):
            self.requests.append(request.url)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def wait_until(page: Page, expression: str) -> None:
    """Wait until the JavaScript *expression* is true; the CSP of the page forbids Playwright's own way, which is eval.

    Raises:
        TimeoutError: it is still false after WAIT_TIMEOUT_S.
    """
    deadline = time.monotonic() + WAIT_TIMEOUT_S
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise TimeoutError(expression)
        page.wait_for_timeout(20)


def format_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def hash_text(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_page(document: dict[str, Any], *, server: bool = False) -> str:
    """Return the page of *document*."""
    script, style = ((ASSETS / f"fleet.{ending}").read_text(encoding="utf-8") for ending in ("js", "css"))
    environment = Environment(loader=FileSystemLoader(ROOT / "cli" / "ui"), autoescape=True)
    return environment.get_template("fleet_page.html.jinja").render(
        title=str(document.get("source", {}).get("title", "Joiner")),
        script=script,
        style=style,
        script_sha256=hash_text(script),
        style_sha256=hash_text(style),
        document=json.dumps(document, separators=(",", ":")).replace("<", "\\u003c"),
        server=server,
    )
