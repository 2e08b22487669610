"""The page of many clusters in Chromium: totals, unseen clusters, the rows and what to run, by keyboard too."""

import re
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cli.hub.hub_file import HubCluster
from cli.hub.session import HubView, read_hub
from cli.ui.server.hub_feed import HubFeed
from cli.ui.server.hub_server import HubServer
from tests.ui.fleet_pages import HD, PHONE
from tests.ui.test_page_accessibility import find_violations

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
NOW = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)


class Hub:
    """A served hub of three folders: `demo` is complete, `partly` has no records, and `gone` does not exist."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        """Write the folders to *folder*."""
        self._browser = browser
        self.folder = folder
        shutil.copytree("examples/journal", folder / "partly", ignore=shutil.ignore_patterns("snapshot"))
        self._clusters = (
            HubCluster(name="demo", folder="examples/journal", context="demo"),
            HubCluster(name="gone", folder=str(folder / "gone")),
            HubCluster(name="partly", folder=str(folder / "partly")),
        )
        self.feed = HubFeed(self._read(), self._read)
        self.server = HubServer(0, "token", self.feed, "Joiner: clusters")
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.messages: list[str] = []

    def _read(self) -> HubView:
        return read_hub(self._clusters, NOW)

    def open(self, *, theme: str = "light", size: tuple[int, int] = HD) -> Page:
        """Open the page."""
        scheme: Any = theme
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.goto(self.server.url)
        expect(page.get_by_role("region", name="Clusters")).to_be_visible()
        return page

    def close(self) -> None:
        """Stop the server."""
        self.feed.stop()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(5)


@pytest.fixture
def hub(browser: Browser, tmp_path: Path) -> Iterator[Hub]:
    hub = Hub(browser, tmp_path)
    yield hub
    for context in browser.contexts:
        context.close()
    hub.close()
    assert hub.messages == []


def test_page_shows_all_clusters_and_names_those_that_are_in_no_total(hub: Hub) -> None:
    page = hub.open()
    expect(page.get_by_role("heading", name="3 clusters")).to_be_visible()
    expect(page.locator(".missing")).to_contain_text(
        "Not in the totals: gone (could not be read); partly (drifted nodes)"
    )
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("could not be read")
    expect(rows.nth(0)).to_contain_text("folder not found")
    expect(rows.nth(1)).to_contain_text("partly read")
    expect(rows.nth(2)).to_contain_text("pods pending")
    assert page.locator(".figure", has_text="Nodes drifted").inner_text().split() == ["Nodes", "drifted", "0"]


def test_row_opens_by_keyboard_to_the_commands_of_the_cluster(hub: Hub) -> None:
    page = hub.open()
    button = page.get_by_role("button", name=re.compile("demo$"))
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    details = page.locator("tr.details")
    expect(details).to_contain_text("joiner ui --journal examples/journal")
    expect(details).to_contain_text("joiner status --context demo")
    expect(details).to_contain_text("default: 1 node, $0.0546/h")
    page.keyboard.press("Space")
    expect(details).to_have_count(0)


def test_table_is_sorted_and_filtered(hub: Hub) -> None:
    page = hub.open()
    page.get_by_role("button", name="Cluster", exact=True).click()
    expect(page.get_by_role("columnheader", name="Cluster")).to_have_attribute("aria-sort", "ascending")
    assert [text.split()[-1] for text in page.locator("tbody th").all_inner_texts()] == ["demo", "gone", "partly"]
    page.get_by_role("searchbox", name="Find clusters").fill("read")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator(".filters")).to_contain_text("2 of 3 clusters")
    page.get_by_role("searchbox", name="Find clusters").fill("nothing")
    expect(page.get_by_text("No cluster matches.")).to_be_visible()


def test_page_follows_the_next_read_and_says_when_the_server_is_gone(hub: Hub) -> None:
    page = hub.open()
    (hub.folder / "gone").mkdir()
    hub.feed.refresh_once()
    page.evaluate("joinerHub.update()")
    expect(page.locator("tbody")).to_contain_text("no journal entries")
    page.route("**/api/hub", lambda route: route.abort())
    page.evaluate("joinerHub.update()")
    expect(page.locator(".header")).to_contain_text("connection lost")
    hub.messages.clear()


@pytest.mark.parametrize("size", [HD, PHONE], ids=["1920", "390"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violations(hub: Hub, theme: str, size: tuple[int, int]) -> None:
    page = hub.open(theme=theme, size=size)
    page.get_by_role("button", name=re.compile("demo$")).click()
    assert find_violations(page) == []
