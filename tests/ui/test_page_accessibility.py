"""axe-core finds no violation of WCAG 2.1 AA on any view, in both themes and on both screens."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.ui.fleet_builder import to_ms
from tests.ui.fleet_pages import HD, PHONE, ROOT, OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
RUN = "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"


def find_violations(page: Page) -> list[str]:
    """Return what axe finds on *page*, with the element and the fix."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;0")
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for violation in page.evaluate(RUN)["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("size", [HD, PHONE], ids=["1920", "390"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["decisions", "node", "table"])
def test_axe_finds_no_violations(
    open_page: OpenPage, small_page: Path, small_fleet: dict[str, Any], theme: str, size: tuple[int, int], view: str
) -> None:
    name = small_fleet["strings"][small_fleet["nodes"]["name"][0]]
    page = open_page(small_page, at=to_ms(700), theme=theme, size=size, select=f"node={name}" if view == "node" else "")
    if view == "table":
        page.get_by_role("button", name="Table", exact=True).click()
    assert find_violations(page) == []
