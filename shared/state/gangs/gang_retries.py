"""Retries of gangs: when the nodes of a gang may be launched again after they were returned.

They are an annotation of the NodePool that had the nodes, so they need no row and no further request.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from shared.model.core.labels import GANG_RETRIES
from shared.model.karpenter.node_pool import NodePool

FIRST_RETRY_DELAY: Final = timedelta(minutes=2)
MAX_RETRY_DELAY: Final = timedelta(hours=1)
MAX_RETRY_AGE: Final = timedelta(hours=3)
"""How long after a retry the earlier ones count; then the delays start again."""
MAX_REMEMBERED_GANGS: Final = 100
"""Per NodePool, so that the annotation stays small: the latest ones."""
_MAX_DOUBLINGS: Final = 5


class GangRetry(msgspec.Struct, frozen=True, kw_only=True):
    """How often the nodes of a gang were returned, and when they may be launched again."""

    count: int
    until: Annotated[datetime, msgspec.Meta(tz=True)]


def find_gang_retries(pools: Iterable[NodePool]) -> dict[str, GangRetry]:
    """Return the retries by gang; of several NodePools, the latest one."""
    retries: dict[str, GangRetry] = {}
    for pool in pools:
        for name, retry in parse_gang_retries(pool).items():
            if name not in retries or retry.until > retries[name].until:
                retries[name] = retry
    return retries


def parse_gang_retries(pool: NodePool) -> dict[str, GangRetry]:
    """Return the retries in the annotation of *pool*; none if it cannot be parsed."""
    text = pool.meta.get_annotation(GANG_RETRIES)
    try:
        return msgspec.json.decode(text, type=dict[str, GangRetry]) if text else {}
    except msgspec.DecodeError:
        return {}


def format_gang_retries(retries: Mapping[str, GangRetry], now: datetime) -> str:
    """Return the annotation; retries that do not count any more are left out."""
    current = [(name, retry) for name, retry in retries.items() if now - retry.until < MAX_RETRY_AGE]
    latest = sorted(current, key=lambda item: (item[1].until, item[0]))[-MAX_REMEMBERED_GANGS:]
    return msgspec.json.encode(dict(sorted(latest))).decode()


def compute_next_retry(retry: GangRetry | None, now: datetime) -> GangRetry:
    """Return the retry after one more return of the nodes at *now*: each delay is twice the one before."""
    count = retry.count + 1 if retry is not None and now - retry.until < MAX_RETRY_AGE else 1
    delay = min(FIRST_RETRY_DELAY * 2 ** min(count - 1, _MAX_DOUBLINGS), MAX_RETRY_DELAY)
    return GangRetry(count=count, until=now + delay)
