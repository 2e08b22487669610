"""Trials of the scheduling simulation."""

import msgspec

from shared.model.kubernetes.pod import Pod


class Trial(msgspec.Struct, kw_only=True, eq=False):
    """The pod moves of a trial, in addition to its savepoint of the packing."""

    cleared_nodes: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """Cleared nodes, with the movable pods that were on them."""
    placements: list[tuple[Pod, int]] = msgspec.field(default_factory=list)
    """Pods and node numbers, in placement order."""
