"""Pictures of the interactive pages, drawn by Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from playwright.sync_api import Browser, sync_playwright

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
MAX_PICTURE_BYTES: Final = 300_000
_MILLISECONDS_UNTIL_DRAWN: Final = 1500


class PagePicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of a page at one time."""

    name: str
    """The name of the file, with its ending."""
    page: str
    """demo or report."""
    theme: str
    seconds: int | None = None
    """The time after the start of the page's span; None: the time at which the page opens."""
    height: int = 1000
    """Pixels; the width is 1440."""


PAGE_PICTURES: Final = (
    PagePicture(name="fleet-light.png", page="demo", theme="light", seconds=240),
    PagePicture(name="fleet-dark.png", page="demo", theme="dark", seconds=240),
    PagePicture(name="report.png", page="report", theme="light", seconds=480),
)


def find_browser() -> str:
    """Return the path of a browser, or "" if there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), "")


def draw_pages(pages: dict[str, Path], folder: Path, program: str) -> Iterator[Path]:
    """Draw the pictures of *pages* (by name: demo, report) with *program* into *folder*; yield each file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for picture in PAGE_PICTURES:
            yield _draw_page(browser, picture, pages[picture.page], folder / picture.name)
        browser.close()


def _draw_page(browser: Browser, picture: PagePicture, page: Path, path: Path) -> Path:
    theme: Any = picture.theme
    tab = browser.new_page(
        viewport={"width": 1440, "height": picture.height}, color_scheme=theme, reduced_motion="reduce"
    )
    tab.goto(page.resolve().as_uri())
    tab.wait_for_timeout(_MILLISECONDS_UNTIL_DRAWN)
    if picture.seconds is not None:
        tab.evaluate(f"joinerPage.clock.seek(joinerPage.clock.start + {picture.seconds * 1000})")
        tab.wait_for_timeout(_MILLISECONDS_UNTIL_DRAWN)
    tab.screenshot(path=path)
    tab.close()
    return path
