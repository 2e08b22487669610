"""Hash of the NodePool template, for static drift."""

from hashlib import sha256

import msgspec

from shared.model.core.metadata import Pairs
from shared.model.core.taints import Taint
from shared.model.core.units import format_duration
from shared.model.karpenter.node_pool import NodePool


def compute_node_pool_hash(pool: NodePool) -> str:
    """Return the hash of the NodePool template without its requirements.

    The order of lists does not count, nor do limits and similar fields. Sixteen hexadecimal digits, the same in every
    version of Python.
    """
    grace_period = pool.termination_grace_period
    content = {
        "labels": _sort_pairs(pool.labels),
        "annotations": _sort_pairs(pool.annotations),
        "taints": _sort_taints(pool.taints),
        "startupTaints": _sort_taints(pool.startup_taints),
        "nodeClassRef": [pool.node_class.group, pool.node_class.kind, pool.node_class.name],
        "terminationGracePeriod": "" if grace_period is None else format_duration(grace_period),
        "expireAfter": format_duration(pool.expire_after),
    }
    return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]


def _sort_pairs(key_values: Pairs) -> list[tuple[str, str]]:
    return sorted(key_values)


def _sort_taints(taints: tuple[Taint, ...]) -> list[tuple[str, str, str]]:
    return sorted((taint.key, taint.effect, taint.value) for taint in taints)
