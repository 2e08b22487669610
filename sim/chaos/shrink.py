"""From a script that fails to a small one that fails in the same way: delta debugging over its events, bounded."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from sim.chaos.script import Script

MOST: Final = 60
"""Plays, at most: then what was reached is answered."""

Fails = Callable[[Script], bool]


def shrunk(script: Script, fails: Fails, most: int = MOST) -> Script:
    """Answer a script with as few of the events as were found to do: none of them can go alone, if *most* plays do.

    *fails*: whether a script fails as the first did; the first is not played again.
    """
    plays = 0
    chunk = max(1, len(script.events) // 2)
    while True:
        smaller = None
        for start in range(0, len(script.events), chunk):
            if plays >= most:
                return script
            plays += 1
            rest = script.events[:start] + script.events[start + chunk :]
            if fails(replace(script, events=rest)):
                smaller = replace(script, events=rest)
                break
        if smaller is not None:
            script, chunk = smaller, max(1, min(chunk, len(smaller.events) // 2))
        elif chunk == 1:
            return script
        else:
            chunk //= 2
