"""The page follows the time, the filters and the selection."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.ui.fleet_builder import to_ms
from tests.ui.fleet_fixtures import ATTACK
from tests.ui.fleet_pages import PHONE, OpenPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.loopback]


def read_figure(page: Page, name: str) -> str:
    return page.locator(".figure", has=page.get_by_text(name, exact=True)).locator("dd").inner_text()


def count_at(document: dict[str, Any], t: int) -> tuple[int, int, int]:
    """Return nodes, running and pending pods at *t*, by reading the columns in order."""
    states = {n: s for when, n, s in zip(*document["nodeStates"].values(), strict=True) if when <= t}
    places = {p: n for when, p, n, _ in zip(*document["podPlaces"].values(), strict=True) if when <= t}
    running, pending = sum(node >= 0 for node in places.values()), sum(node == -1 for node in places.values())
    return sum(state != 8 for state in states.values()), running, pending


@pytest.mark.parametrize("seconds", [0, 30, 640, 720, 960, 1270, 1590, 2350])
def test_figures_are_those_of_the_document_at_each_time(
    open_page: OpenPage, small_page: Path, small_fleet: dict[str, Any], seconds: int
) -> None:
    page = open_page(small_page, at=to_ms(seconds))
    figures = [int(read_figure(page, name).split()[0]) for name in ("Nodes", "Pods running", "Pods pending")]
    assert tuple(figures) == count_at(small_fleet, to_ms(seconds))


def test_scrubbing_moves_figures_decisions_and_link(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(0))
    track = page.locator(".track").bounding_box()
    assert track is not None
    page.mouse.click(track["x"] + track["width"] * 700 / 2400, track["y"] + 40)
    expect(page.locator(".figure", has_text="Pods running")).to_contain_text("136")
    expect(page.locator(".decisions [aria-current]")).to_contain_text("60 pods don't fit existing nodes")
    wait_until(page, "location.hash.includes('T09:11')")
    page.mouse.move(track["x"] + 100, track["y"] + 40)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * 50 / 2400, track["y"] + 40, steps=4)
    page.mouse.up()
    expect(page.locator(".figure", has_text="Pods pending")).to_contain_text("40")


def test_playback_starts_with_one_click_and_moves_the_time(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(0))
    page.get_by_role("button", name="Play the demo").click()
    wait_until(page, f"joinerPage.clock.t > {to_ms(20)}")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Pause").click()
    stopped = page.evaluate("joinerPage.clock.t")
    page.wait_for_timeout(150)
    assert page.evaluate("joinerPage.clock.t") == stopped
    page.locator("select[title^=Speed]").select_option("600")
    page.get_by_role("button", name="Play", exact=True).click()
    wait_until(page, "joinerPage.clock.t === joinerPage.clock.end")


def test_keys_move_the_time(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(0))
    page.keyboard.press("]")
    wait_until(page, f"joinerPage.clock.t === {to_ms(21)}")
    page.keyboard.press("[")
    wait_until(page, f"joinerPage.clock.t === {to_ms(0)}")
    page.get_by_label("Time", exact=True).focus()
    page.keyboard.press("End")
    wait_until(page, "joinerPage.clock.t === joinerPage.clock.end")
    page.keyboard.press("Space")
    wait_until(page, "joinerPage.clock.isPlaying")


def test_click_on_a_node_explains_it_with_links(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    box = page.evaluate(
        "(() => { const b = document.querySelector('.overlay').getBoundingClientRect(); return [b.x, b.y]; })()"
    )
    page.mouse.click(box[0] + 200, box[1] + 80)
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_role("heading", name="Why this instance type")).to_be_visible()
    expect(panel).to_contain_text("cheapest of 475 matching instance types")
    expect(panel).to_contain_text("PodDisruptionBudget shop/web allows no eviction")
    expect(panel.locator(".alternatives")).to_contain_text("c7g.4xlarge")
    expect(panel.locator(".alternatives")).to_contain_text("+6%")
    panel.get_by_role("button", name="shop/web-00000").click()
    expect(panel.get_by_role("heading", name="shop/web-00000")).to_be_visible()
    expect(panel).to_contain_text("scheduled to")
    panel.get_by_role("button", name="40 pods don't fit existing nodes: launches 3 nodes").click()
    expect(panel).to_contain_text("joiner replay")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name="Decisions")).to_have_attribute("aria-selected", "true")


def test_arrow_keys_and_enter_open_a_node(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    page.locator(".overlay").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".map [aria-live]")).to_contain_text("NodePool default")
    expect(page.get_by_role("tabpanel").locator("h2")).to_contain_text(".compute.internal")


def test_links_open_an_object_at_a_time(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(1270), select="nodepool=batch&group=zone&fill=memory")
    expect(page.get_by_role("tabpanel").locator("h2")).to_have_text("batch")
    expect(page.get_by_label("Group by")).to_have_value("zone")
    expect(page.get_by_label("Filled by")).to_have_value("memory")
    assert page.evaluate("joinerPage.clock.t") == to_ms(1270)


def test_search_and_legend_filter_the_table(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    page.get_by_role("button", name="Table", exact=True).click()
    rows = page.locator(".table-view tbody tr")
    expect(rows).to_have_count(16)
    page.get_by_role("searchbox").fill("r7g")
    expect(rows).to_have_count(9)
    page.get_by_role("searchbox").fill("report-")
    expect(rows).to_have_count(10)
    page.get_by_role("searchbox").fill("")
    page.locator(".legend button", has_text="Draining").click()
    expect(rows).to_have_count(0)


def test_decisions_are_filtered_by_kind(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(2400))
    page.get_by_label("Kind of decision").select_option("consolidate")
    expect(page.locator(".decisions li")).to_have_count(1)
    expect(page.locator(".decisions li")).to_contain_text("saves $0.1229/h")


def test_text_of_the_cluster_stays_text(open_page: OpenPage, small_page: Path, small_fleet: dict[str, Any]) -> None:
    page = open_page(small_page, at=to_ms(2350), select="nodepool=batch")
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text(ATTACK)
    strings, pods = small_fleet["strings"], small_fleet["pods"]
    for link in (
        {"kind": "decision", "name": small_fleet["decisions"][0]["id"]},
        {"kind": "pod", "name": f"shop/{strings[pods['name'][-1]]}"},
        {"kind": "node", "name": strings[small_fleet["nodes"]["name"][0]]},
    ):
        page.evaluate("link => joinerPage.select(link)", link)
        expect(panel).to_contain_text(ATTACK)
    page.get_by_role("searchbox").fill("<img")
    assert page.evaluate("window.attacked") is None
    assert page.locator("img").count() == 0


def test_phone_has_all_views_without_horizontal_scrolling(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700), size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    for selector in (".map", ".side", ".chart", ".player", ".legend"):
        expect(page.locator(selector).first).to_be_attached()
    for selector in (".track", ".now"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE[0]


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_map_legend_and_caption_fit_above_the_timeline(
    open_page: OpenPage, small_page: Path, size: tuple[int, int]
) -> None:
    page = open_page(small_page, at=to_ms(700), size=size)
    player = page.locator(".player").bounding_box()
    assert player is not None
    for selector in (".map", ".legend", ".caption"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= player["y"], selector


def test_remarks_about_the_data_take_one_line(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, size=(1280, 800))
    notes = page.locator(".header .notes").bounding_box()
    assert notes is not None
    assert notes["height"] < 24


def test_local_time_and_theme_are_switched(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    page.get_by_role("button", name="UTC").click()
    expect(page.get_by_role("button", name="Local time")).to_be_visible()
    page.get_by_role("button", name="Use the dark theme").click()
    wait_until(page, "document.documentElement.dataset.theme === 'dark'")
    wait_until(page, "getComputedStyle(document.body).backgroundColor === 'rgb(18, 23, 31)'")


def test_printed_page_is_light_and_has_no_controls(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700), theme="dark")
    page.emulate_media(media="print")
    expect(page.locator(".toolbar")).to_be_hidden()
    wait_until(page, "document.documentElement.dataset.theme === 'light'")
