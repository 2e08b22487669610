"""The pages that joiner itself writes: the demo, and a report about the example journal."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from cli.main import main as joiner
from cli.ui.page import render_fleet_page
from tests.ui.fleet_pages import HD, PHONE, ROOT, OpenPage, wait_until
from tests.ui.test_page_accessibility import find_violations
from tests.ui.test_page_views import count_at, read_figure

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
DEMO = ROOT / "tests" / "golden" / "fleet" / "demo.json"
"""The document that `joiner demo` embeds; another test compares it with a new run."""
STEPS = 12


@pytest.fixture(scope="module")
def joiner_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("joiner")
    pages = {"demo": folder / "demo.html", "report": folder / "report.html"}
    pages["demo"].write_text(render_fleet_page("demo", DEMO.read_bytes()), encoding="utf-8")
    assert joiner(["report", str(pages["report"]), "--journal", str(ROOT / "examples" / "journal")]) == 0
    return pages


@pytest.mark.parametrize("name", ["demo", "report"])
def test_page_shows_its_document_at_every_time(open_page: OpenPage, joiner_pages: dict[str, Path], name: str) -> None:
    page = open_page(joiner_pages[name])
    document = json.loads(page.evaluate("document.getElementById('fleet-document').textContent"))
    for step in range(STEPS + 1):
        t = document["start"] + (document["end"] - document["start"]) * step // STEPS
        page.evaluate("t => joinerPage.clock.seek(t)", t)
        page.wait_for_timeout(300)
        figures = [int(read_figure(page, figure).split()[0]) for figure in ("Nodes", "Pods running", "Pods pending")]
        assert tuple(figures) == count_at(document, t), t
    charts = {chart["id"] for chart in page.evaluate("joinerPage.charts.map(chart => ({id: chart.id}))")}
    assert charts >= {"pods", "nodes", "cost", "cpu", "memory", "launches"}


@pytest.mark.parametrize(("size", "theme"), [(HD, "dark"), (PHONE, "light")])
@pytest.mark.parametrize("name", ["demo", "report"])
def test_page_is_accessible(
    open_page: OpenPage, joiner_pages: dict[str, Path], name: str, size: tuple[int, int], theme: str
) -> None:
    page = open_page(joiner_pages[name], size=size, theme=theme)
    assert find_violations(page) == []


def test_demo_plays_from_its_first_act_and_names_each(open_page: OpenPage, joiner_pages: dict[str, Path]) -> None:
    page = open_page(joiner_pages["demo"])
    expect(page.locator(".caption .act")).to_contain_text("1 of 9")
    page.get_by_role("button", name="Play the demo").click()
    page.locator("select[title^=Speed]").select_option("600")
    wait_until(page, "joinerPage.clock.t === joinerPage.clock.end")
    expect(page.locator(".caption .act")).to_contain_text("9 of 9")
