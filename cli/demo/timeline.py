"""The timeline of a simulation: printed as it happens, on a terminal below a line about the fleet."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

from cli.demo.fleet_line import format_fleet_line
from cli.terminal.text import Palette, format_clock, format_timeline_row, is_terminal, open_console
from sim.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from rich.live import Live

    from sim.scenarios.runner import TimelineEntry
    from sim.world.measurements import ClusterSample

COLORS_BY_ACTOR: Final = {"act": "bold", "you": "cyan", "fault": "red", "EC2": "yellow", "cluster": "green"}
_FIXED_LINES: Final = 4
"""Lines of the screen that the timeline does not use: the fleet line, the heading, and two for the prompt."""
_MIN_SHOWN_LINES: Final = 5


class Timeline:
    """Prints moments as they happen; before each act, a line about the fleet."""

    def __init__(self, scenario: Scenario, palette: Palette) -> None:
        """Print the header of the table."""
        self._palette = palette
        self._started_at: datetime | None = None
        self._print(f"{palette.colorize('bold', scenario.name)}: {scenario.says}")
        header = format_timeline_row("time", "source", "event", "nodes", "pods", "$/h")
        self._print(palette.colorize("dim", header))

    def print_moment(self, moment: "TimelineEntry") -> None:
        """Print one moment."""
        if self._started_at is None:
            self._started_at = moment.at
        is_start_of_act = moment.source == "act" and ":" not in moment.message
        if is_start_of_act:
            self._print("")
            if moment.sample is not None:
                self._print(format_fleet_line(moment.sample, self._palette))
        for line in self._format_moment(moment, self._started_at):
            self._print(line)
        self._show_sample(moment.sample)

    def _format_moment(self, moment: "TimelineEntry", started_at: datetime) -> Iterator[str]:
        state = moment.sample
        nodes = f"{state.joiner_nodes}+{state.managed_nodes}" if state is not None else ""
        pods = (
            f"{state.running_pods}/{state.running_pods + state.pending_pods + state.unreplaced_pods}" if state else ""
        )
        cost = f"{state.cost_usd_per_hour:.3f}" if state is not None else ""
        clock = format_clock(moment.at - started_at)
        line = format_timeline_row(clock, moment.source, moment.message, nodes, pods, cost)
        yield self._palette.colorize(COLORS_BY_ACTOR.get(moment.source, ""), line)
        if moment.reason:
            yield self._palette.colorize("dim", f"{'':22}{moment.reason}")

    def _print(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _show_sample(self, sample: "ClusterSample | None") -> None:
        """Show the current fleet; printed lines have it already."""


class LiveTimeline(Timeline):
    """Shows the fleet line, and below it the last lines of the timeline, until the simulation ends."""

    def __init__(self, scenario: Scenario, palette: Palette, live: "Live") -> None:
        """Show the heading on *live*."""
        self._live = live
        self.lines: list[str] = []
        """All lines, to be printed when the simulation ended."""
        self._fleet_line = ""
        super().__init__(scenario, palette)

    def _print(self, line: str) -> None:
        self.lines.append(line)

    def _show_sample(self, sample: "ClusterSample | None") -> None:
        from rich.text import Text  # noqa: PLC0415

        if sample is not None:
            self._fleet_line = format_fleet_line(sample, self._palette)
        shown_count = max(self._live.console.height - _FIXED_LINES, _MIN_SHOWN_LINES)
        text = "\n".join([self._fleet_line, "", *self.lines[-shown_count:]])
        self._live.update(Text.from_ansi(text, no_wrap=True, overflow="ellipsis"), refresh=True)


@contextmanager
def show_timeline(scenario: Scenario, palette: Palette) -> Iterator[Timeline]:
    """Show the timeline of a simulation; its lines are printed, also if the simulation is interrupted."""
    if not is_terminal():
        yield Timeline(scenario, palette)
        return
    from rich.live import Live  # noqa: PLC0415

    live = Live(
        console=open_console(sys.stdout),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
        vertical_overflow="crop",
    )
    timeline = None
    try:
        with live:
            timeline = LiveTimeline(scenario, palette, live)
            yield timeline
    finally:
        if timeline is not None:
            sys.stdout.write("".join(f"{line}\n" for line in timeline.lines))
            sys.stdout.flush()
