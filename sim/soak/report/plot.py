"""Plot placeholder."""

from collections.abc import Iterable

from sim.soak.report.results_file import SoakRecord


def render_plot(records: Iterable[SoakRecord]) -> str:
    """Return the SVG."""
    return ""
