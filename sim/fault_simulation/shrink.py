"""Shrink a failing script to a small one that fails in the same way: bounded delta debugging over its events."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from sim.fault_simulation.events.script import Script

MAX_RUNS: Final = 60
"""Limit of the runs; the smallest script found so far is returned then."""

FailureCheck = Callable[[Script], bool]


def shrink_script(script: Script, fails: FailureCheck, max_runs: int = MAX_RUNS) -> Script:
    """Return a script with as few events as were found to fail; none can be removed, unless *max_runs* is reached.

    *fails*: whether a script fails as the original did; the original is not run again.
    """
    runs = 0
    chunk_size = max(1, len(script.events) // 2)
    while True:
        smaller_script = None
        for start in range(0, len(script.events), chunk_size):
            if runs >= max_runs:
                return script
            runs += 1
            remaining_events = script.events[:start] + script.events[start + chunk_size :]
            if fails(replace(script, events=remaining_events)):
                smaller_script = replace(script, events=remaining_events)
                break
        if smaller_script is not None:
            script, chunk_size = smaller_script, max(1, min(chunk_size, len(smaller_script.events) // 2))
        elif chunk_size == 1:
            return script
        else:
            chunk_size //= 2
