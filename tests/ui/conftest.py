"""Chromium, and pages of fixture fleets. Tests marked `browser` run only on request: `make test-ui`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.ui.browser import find_browser
from tests.ui.fleet_fixtures import build_small_fleet
from tests.ui.fleet_pages import OpenPage, PageOpener, render_page


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need a browser, unless JOINER_BROWSER=1."""
    if os.environ.get("JOINER_BROWSER") == "1":
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def small_fleet() -> dict[str, Any]:
    return build_small_fleet()


@pytest.fixture(scope="session")
def small_page(small_fleet: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "small.html"
    path.write_text(render_page(small_fleet), encoding="utf-8")
    return path


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Yield a function that opens a page; the test fails if a page has an error or requests anything."""
    opener = PageOpener(browser)
    yield opener.open
    opener.close()
    assert opener.messages == []
    assert opener.requests == []
