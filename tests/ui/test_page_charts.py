"""Charts show the data of the document: every line, at every change."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.ui.fleet_builder import START_MS, to_ms
from tests.ui.fleet_pages import OpenPage, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
READ_DATA = """id => {
  const chart = joinerPage.charts.find(chart => chart.id === id);
  return chart.lines.map(line => ({label: line.label, t: line.t, v: line.v}));
}"""


def replay(document: dict[str, Any]) -> Iterator[tuple[int, dict[int, int], dict[int, int]]]:
    """Yield the time, the states of nodes and the places of pods after each change."""
    changes = [(t, 0, node, state) for t, node, state in zip(*document["nodeStates"].values(), strict=True)]
    changes += [(t, 1, pod, node) for t, pod, node, _ in zip(*document["podPlaces"].values(), strict=True)]
    columns: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for t, group in groupby(sorted(changes, key=itemgetter(0)), key=itemgetter(0)):
        for _, column, item, value in group:
            columns[column][item] = value
        yield t, *columns


def value_at(line: dict[str, Any], t: int) -> float:
    value: float = next(v for when, v in zip(reversed(line["t"]), reversed(line["v"]), strict=True) if when <= t)
    return value


def test_charts_of_pods_nodes_cost_and_cpu_match_the_document(
    open_page: OpenPage, small_page: Path, small_fleet: dict[str, Any]
) -> None:
    page = open_page(small_page)
    pods, nodes, cost, cpu = (page.evaluate(READ_DATA, name) for name in ("pods", "nodes", "cost", "cpu"))
    columns, requests = small_fleet["nodes"], small_fleet["pods"]["cpuMilli"]
    for t, states, places in replay(small_fleet):
        if t < START_MS:
            continue
        assert value_at(pods[0], t) == sum(node >= 0 for node in places.values())
        assert value_at(pods[1], t) == sum(node == -1 for node in places.values())
        present = [node for node, state in states.items() if state != 8]
        for number, line in enumerate(nodes):
            assert value_at(line, t) == sum(columns["pool"][node] == number for node in present), (line["label"], t)
        usd = sum(columns["price"][node] for node in present if states[node] > 0)
        assert sum(value_at(line, t) for line in cost[:-1]) == pytest.approx(usd, abs=1e-5)
        ready = [node for node in present if 2 <= states[node] < 8]
        assert value_at(cpu[0], t) == pytest.approx(sum(columns["cpuMilli"][node] for node in ready) / 1000)
        placed = sum(requests[pod] for pod, node in places.items() if node >= 0)
        assert value_at(cpu[1], t) == pytest.approx(placed / 1000)


def test_legend_shows_values_of_the_time_and_hides_lines(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    chart = page.locator("#chart-pods")
    running = chart.get_by_role("button", name="Running")
    expect(running).to_contain_text("136")
    running.click()
    expect(running).to_have_attribute("aria-pressed", "false")
    running.click()
    expect(running).to_have_attribute("aria-pressed", "true")


def test_hovering_a_chart_shows_exact_values_and_a_click_moves_the_time(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(0))
    chart = page.locator("#chart-nodes")
    chart.scroll_into_view_if_needed()
    page.evaluate("scrollBy(0, 250)")
    plot = chart.locator(".u-over").bounding_box()
    assert plot is not None
    page.mouse.move(plot["x"] + plot["width"] * 700 / 2400, plot["y"] + 60)
    expect(chart.locator(".values")).to_contain_text("default 6")
    expect(chart.locator(".values")).to_contain_text("batch 10")
    page.mouse.click(plot["x"] + plot["width"] * 700 / 2400, plot["y"] + 60)
    wait_until(page, f"Math.abs(joinerPage.clock.t - {to_ms(700)}) < 5000")


def test_comparison_is_a_dashed_line_of_the_cost_chart(open_page: OpenPage, small_page: Path) -> None:
    page = open_page(small_page, at=to_ms(700))
    legend = page.locator("#chart-cost .values button", has_text="Without consolidation")
    expect(legend).to_contain_text("$1.8400/h")
    expect(legend.locator(".dashed")).to_be_attached()
