"""What the NodePools of a play allow: how many vCPUs, and how many nodes to be given up by choice at a time."""

from datetime import datetime, timedelta
from typing import Final

from sim.chaos.manifests import BEGINS, CLOSED_FOR, POOL, SECOND
from sim.chaos.script import Setting

OTHERS: Final = 1
"""Of a static NodePool that has no budget of its own: a tenth, rounded up."""
SLACK: Final = timedelta(seconds=100)
"""What was looked at before a window began may be written down behind it: by a clock that is off, after a pause."""


def limits(setting: Setting) -> dict[str, int]:
    """Answer the vCPUs that each NodePool may have."""
    return {POOL: setting.limit_cpu} | ({SECOND: setting.second_cpu} if setting.second_cpu else {})


def may_go(setting: Setting, pool: str, nodes: int) -> int:
    """Answer how many of so many *nodes* may be on their way out at a time."""
    if pool == POOL:
        return min(setting.budget, _share(setting.percent, nodes) if setting.percent else nodes)
    return OTHERS


def is_closed(setting: Setting, pool: str, when: datetime) -> bool:
    """Whether no node may have been chosen at *when*."""
    if not setting.closed or pool != POOL:
        return False
    begin = when.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(minutes=BEGINS + setting.closed)
    return begin + SLACK <= when < begin + timedelta(minutes=CLOSED_FOR) - SLACK


def _share(percent: str, nodes: int) -> int:
    return -(-nodes * int(percent.removesuffix("%")) // 100)
