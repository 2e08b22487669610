"""What makes a node differ from its NodePool's template: static drift compares this digest."""

from hashlib import sha256

import msgspec

from shared.model.nodepools import NodePool
from shared.model.objects import Pairs
from shared.model.taints import Taint
from shared.model.units import duration_text


def node_pool_hash(pool: NodePool) -> str:
    """Digest the template without its requirements: the order of lists does not count, nor do limits and the like.

    Sixteen hex digits, the same in every version of Python.
    """
    grace = pool.termination_grace_period
    content = {
        "labels": _map(pool.labels),
        "annotations": _map(pool.annotations),
        "taints": _taints(pool.taints),
        "startupTaints": _taints(pool.startup_taints),
        "nodeClassRef": [pool.node_class.group, pool.node_class.kind, pool.node_class.name],
        "terminationGracePeriod": "" if grace is None else duration_text(grace),
        "expireAfter": duration_text(pool.expire_after),
    }
    return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]


def _map(some: Pairs) -> list[tuple[str, str]]:
    return sorted(some)


def _taints(some: tuple[Taint, ...]) -> list[tuple[str, str, str]]:
    return sorted((taint.key, taint.effect, taint.value) for taint in some)
