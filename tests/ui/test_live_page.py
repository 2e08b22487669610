"""The page of `joiner ui`: what-if plans, and updates of a live source by server-sent events."""

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, Page, expect

from cli.fleet.sources.fleet_history import FleetHistory
from cli.inputs.documents import read_documents
from cli.journal.journal import Journal
from cli.planning.catalog_source import load_catalog_file
from cli.terminal.errors import InputError
from cli.ui.server.fleet_feed import FleetFeed, FleetObservation
from cli.ui.server.fleet_server import FleetServer
from shared.model.cluster import ClusterSnapshot
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from tests.ui.fleet_pages import wait_until
from tests.ui.test_page_views import read_figure

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
EXAMPLES = Path("examples")
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
INTERVAL = timedelta(minutes=1)


def read_example_cluster() -> ClusterSnapshot:
    documents = [document.source for document in read_documents([str(EXAMPLES / "cluster")], pytest.fail)]
    cluster = build_snapshot_from_documents(documents, NOW)
    return replace(cluster, catalog=load_catalog_file(str(EXAMPLES / "catalogue.json")))


class LiveCluster:
    """A cluster that the test changes; each read is a minute later."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Begin with *cluster* at NOW."""
        self.cluster = cluster
        self.at = NOW
        self.is_reachable = True

    def __call__(self) -> FleetObservation:
        if not self.is_reachable:
            raise InputError("the API server does not answer")
        self.at += INTERVAL
        return FleetObservation(at=self.at, cluster=replace(self.cluster, taken_at=self.at))


class LivePage:
    """The page of a live cluster, its feed, and what the console reported."""

    def __init__(self, page: Page, feed: FleetFeed, cluster: LiveCluster) -> None:
        """Collect the messages of *page*."""
        self.page, self.feed, self.cluster = page, feed, cluster
        self.messages: list[str] = []
        self.fetch_count = 0
        """How often the page fetched the document."""
        page.on("request", lambda request: self._count(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))

    def _count(self, url: str) -> None:
        self.fetch_count += url.endswith("/api/fleet")

    def refresh(self) -> None:
        """Read the cluster again, and wait until the page has the new document."""
        self.feed.refresh_once()
        end = self.feed.wait_for_update(0, 0).end
        wait_until(self.page, f"joinerPage.fleet.document.end === {end}")


@pytest.fixture
def live(browser: Browser) -> Iterator[LivePage]:
    cluster = LiveCluster(read_example_cluster())
    history = FleetHistory(Journal(source="", now=NOW), kind="cluster", title="context test", cluster_name="test")
    history.observe(cluster.cluster, NOW)
    feed = FleetFeed(history, NOW, cluster)
    server = FleetServer(0, "token", feed, "Joiner")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    context = browser.new_context(viewport={"width": 1600, "height": 1000}, reduced_motion="reduce")
    live_page = LivePage(context.new_page(), feed, cluster)
    live_page.page.goto(server.url)
    wait_until(live_page.page, "!!window.joinerPage")
    yield live_page
    context.close()
    feed.stop()
    server.shutdown()
    server.server_close()
    thread.join(5)
    assert live_page.messages == []


def test_page_that_shows_now_follows_the_cluster(live: LivePage) -> None:
    page = live.page
    assert read_figure(page, "Nodes").split()[0] == str(len(live.cluster.cluster.nodes))
    live.refresh()
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()
    wait_until(page, "joinerPage.clock.t === joinerPage.clock.end")
    page.wait_for_timeout(600)
    assert "t=" not in page.evaluate("location.hash")


def test_page_keeps_its_time_and_selection_while_updates_arrive(live: LivePage) -> None:
    page = live.page
    for _ in range(3):
        live.refresh()
    t = page.evaluate("(joinerPage.clock.start + joinerPage.clock.end) / 2")
    page.evaluate("t => joinerPage.clock.seek(t)", t)
    page.evaluate("joinerPage.select(joinerPage.fleet.link('node', 0))")
    expect(page.get_by_role("tab", name="Why")).to_have_attribute("aria-selected", "true")
    live.refresh()
    assert page.evaluate("joinerPage.clock.t") == t
    assert page.evaluate("joinerPage.selection.kind") == "node"
    page.get_by_role("button", name="Now", exact=True).click()
    live.refresh()
    wait_until(page, "joinerPage.clock.t === joinerPage.clock.end")


def test_idle_cluster_transfers_no_document(live: LivePage) -> None:
    cost = read_figure(live.page, "Cost now")
    live.refresh()
    fetch_count = live.fetch_count
    for _ in range(3):
        live.refresh()
    assert live.fetch_count == fetch_count
    wait_until(live.page, "joinerPage.clock.t === joinerPage.clock.end")
    assert read_figure(live.page, "Cost now") == cost
    total = live.page.evaluate("joinerPage.fleet.document.totals.costUsd")
    hours = live.page.evaluate("(joinerPage.fleet.document.end - joinerPage.fleet.document.start) / 3_600_000")
    assert total == pytest.approx(float(cost.strip("$/h")) * hours, abs=0.001)


def test_node_that_disappears_leaves_the_map(live: LivePage) -> None:
    page, cluster = live.page, live.cluster.cluster
    removed_node, node_count = cluster.nodes[0], len(cluster.nodes)
    page.get_by_role("button", name="Table", exact=True).click()
    rows = page.locator(".table-view tbody tr")
    expect(rows).to_have_count(node_count)
    live.cluster.cluster = replace(
        cluster,
        nodes=cluster.nodes[1:],
        node_claims=tuple(claim for claim in cluster.node_claims if claim.provider_id != removed_node.provider_id),
        pods=tuple(pod for pod in cluster.pods if pod.node_name != removed_node.name),
    )
    live.refresh()
    expect(rows).to_have_count(node_count - 1)
    expect(page.locator(".table-view")).not_to_contain_text(removed_node.name)
    assert read_figure(page, "Nodes").split()[0] == str(node_count - 1)
    page.get_by_role("button", name="Table", exact=True).click()
    description = page.locator(".map [aria-live]")
    page.locator(".map .overlay").focus()
    for key in ("ArrowRight", "ArrowDown") * node_count:
        page.keyboard.press(key)
        expect(description).to_contain_text("NodePool")
        expect(description).not_to_contain_text(removed_node.name)
    page.evaluate("joinerPage.clock.seek(joinerPage.clock.start)")
    wait_until(page, f"joinerPage.state.summary().nodes === {node_count}")


def test_page_says_that_the_cluster_cannot_be_read(live: LivePage) -> None:
    live.cluster.is_reachable = False
    live.feed.refresh_once()
    expect(live.page.locator(".header")).to_contain_text("the API server does not answer")


def open_what_if(page: Page) -> Locator:
    """Open what-if; return the editor of the first NodePool."""
    page.get_by_role("tab", name="What if").click()
    editor = page.locator(".what-if textarea").first
    expect(editor).to_have_value(re.compile("kind: NodePool"))
    return editor


def test_what_if_compares_the_plan_of_changed_node_pools_with_todays(live: LivePage) -> None:
    page = live.page
    editor = open_what_if(page)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".what-if .difference")).to_contain_text("/h →", timeout=60_000)
    text = editor.input_value()
    editor.fill(text + "\n# a remark")
    live.refresh()
    assert editor.input_value().endswith("# a remark")
    page.get_by_role("button", name="Reset").click()
    expect(editor).to_have_value(text)


def test_what_if_names_the_line_of_invalid_yaml(live: LivePage) -> None:
    page = live.page
    editor = open_what_if(page)
    text = editor.input_value()
    editor.fill(text + "\n  - not yaml: [")
    page.get_by_role("button", name="Compare").click()
    result = page.locator(".what-if [aria-live]")
    lines = text.count("\n") + 2
    expect(result).to_contain_text(re.compile(rf"NodePool default:({lines}|{lines + 1}): not YAML: .*: correct"))
    expect(page.locator(".what-if .difference")).to_have_count(0)
    editor.fill(text.replace("expireAfter", "expireAfer"))
    page.get_by_role("button", name="Compare").click()
    expect(result).to_contain_text("did you mean expireAfter? Correct or remove it")
    expect(result).not_to_contain_text("not YAML")
    page.locator(".what-if textarea").last.fill("m5.large cheap")
    page.get_by_role("button", name="Compare").click()
    expect(result).to_contain_text('"m5.large cheap" is not a price. To fix: ')


def test_what_if_keeps_its_edits_while_other_tabs_are_shown(live: LivePage) -> None:
    page = live.page
    editor = open_what_if(page)
    edited = editor.input_value() + "\n# a remark"
    editor.fill(edited)
    page.locator(".what-if textarea").last.fill("m5.large 0.08")
    page.get_by_role("tab", name="Decisions").click()
    expect(editor).to_be_hidden()
    page.evaluate("joinerPage.select(joinerPage.fleet.link('node', 0))")
    expect(page.get_by_role("tab", name="Why")).to_have_attribute("aria-selected", "true")
    live.refresh()
    page.get_by_role("tab", name="What if").click()
    expect(editor).to_have_value(edited)
    expect(page.locator(".what-if textarea").last).to_have_value("m5.large 0.08")
