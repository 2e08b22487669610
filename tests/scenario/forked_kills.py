"""Plays in which a handler dies at one site each, for many sites at the cost of few plays.

Until the death, all plays are equal: one process runs the undisturbed play and forks at each site. The handler dies in
the child process alone, which runs its play to the end and sends the result.
"""

import os
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from sim.fault_tap import Killed, PortCall
from sim.scenarios.runner import ScenarioResult
from tests.scenario.kill_sites import CLASSIC, compute_final_state, format_site


class FinalState(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one play."""

    ends: dict[str, float] = {}
    """The measurements."""
    leftovers: list[str] = []
    error: str = ""
    """The traceback of an exception; "" if the play ended."""


@dataclass(frozen=True, kw_only=True)
class ForkedPlays:
    """The undisturbed play, and the final state of the play with a death at each site that was met."""

    undisturbed: ScenarioResult
    undisturbed_end: FinalState
    states: Mapping[str, FinalState]


class ForkingKiller:
    """At each site that it gets, fork; kill the handler in the child process, and wait for its final state.

    A site is ``site #number``, or a site alone for its first call; *late* as for `Killer`.
    """

    def __init__(self, sites: Iterable[str], *, late: bool = False) -> None:
        """Lie in wait at *sites*."""
        self.late = late
        self.states: dict[str, FinalState] = {}
        self.result_pipe: int | None = None
        """The pipe to the parent process; None in the parent process itself."""
        self._sites = frozenset(sites)
        self._counts: Counter[str] = Counter()

    def __call__(self, call: PortCall) -> None:
        """Let *call* pass; in a new child process, kill the handler.

        Raises:
            Killed: this is the child process.
        """
        if self.result_pipe is not None:
            return
        site = format_site(call)
        self._counts[site] += 1
        names = {f"{site} #{self._counts[site]}", *([site] if self._counts[site] == 1 else [])}
        for name in sorted(names & self._sites):
            self._fork(name)

    def _fork(self, site: str) -> None:
        output, pipe = os.pipe()
        with warnings.catch_warnings():
            # Python warns because pytest-xdist has a thread; it waits for the next test and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(output)
            self.result_pipe = pipe
            raise Killed(site)
        os.close(pipe)
        with os.fdopen(output, "rb") as file:
            result = file.read()
        os.waitpid(child, 0)
        self.states[site] = (
            msgspec.json.decode(result, type=FinalState) if result else FinalState(error="the process ended early")
        )


def run_forked_plays(sites: Iterable[str], path: Path = CLASSIC, *, late: bool = False) -> ForkedPlays:
    """Run the play *path* undisturbed, and from each of *sites* on with a death there."""
    killer = ForkingKiller(sites, late=late)
    try:
        undisturbed, ends, leftovers = compute_final_state(killer, path)
    except BaseException:
        if killer.result_pipe is None:
            raise
        _send_and_exit(killer.result_pipe, FinalState(error=traceback.format_exc()))
    state = FinalState(ends=ends, leftovers=leftovers)
    if killer.result_pipe is not None:
        _send_and_exit(killer.result_pipe, state)
    return ForkedPlays(undisturbed=undisturbed, undisturbed_end=state, states=killer.states)


def _send_and_exit(pipe: int, state: FinalState) -> NoReturn:
    """Send *state*, and end this child process without the exit handlers of its parent."""
    with os.fdopen(pipe, "wb") as file:
        file.write(msgspec.json.encode(state))
    os._exit(0)
