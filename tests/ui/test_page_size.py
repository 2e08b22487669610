"""Sizes of the bundle and of the page of a large fleet; its speed is printed, not asserted."""

import sys
from pathlib import Path

import pytest

from tests.ui.fleet_pages import ASSETS, OpenPage, render_page
from tests.ui.large_fleet import build_large_fleet

pytestmark = [pytest.mark.browser, pytest.mark.loopback]
MAX_BUNDLE_BYTES = 600_000
MAX_PAGE_BYTES = 8_000_000
FRAMES = """async () => {
  const {clock} = joinerPage;
  const began = performance.now();
  for (let i = 0; i < 120; i++) {
    clock.seek(clock.start + (clock.end - clock.start) * i / 120);
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  return 120_000 / (performance.now() - began);
}"""


def test_bundle_is_at_most_600_kb() -> None:
    assert sum(path.stat().st_size for path in ASSETS.iterdir()) <= MAX_BUNDLE_BYTES


def test_page_of_2000_nodes_and_20000_pods_is_small_and_usable(
    open_page: OpenPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.html"
    path.write_text(render_page(build_large_fleet()), encoding="utf-8")
    assert path.stat().st_size < MAX_PAGE_BYTES
    page = open_page(path)
    milliseconds = page.evaluate("performance.now()")
    frames = page.evaluate(FRAMES)
    with capsys.disabled():
        sys.stdout.write(
            f"\n2,000 nodes, 20,000 pods: page {path.stat().st_size / 1e6:.1f} MB, "
            f"interactive after {milliseconds / 1000:.1f} s, scrubbing at {frames:.0f} frames/s\n"
        )
    assert page.locator(".figure", has_text="Nodes").first.inner_text().split()[1] == "2,000"
