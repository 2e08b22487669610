"""Spot shares in trials of the scheduling simulation."""

from shared.decide.disruption.simulation.simulation import SchedulingSimulation
from shared.state.spot_shares.node_pool_shares import find_spot_shares


def find_exceeded_share(simulation: SchedulingSimulation) -> str:
    """Return the NodePool whose Spot share the trials exceed by more than before; "" if there is none."""
    packing = simulation.packing
    if not packing.share_usages:
        return ""
    for pool, share in find_spot_shares(packing.topology.cluster).items():
        usage, usage_before = packing.share_usages[pool], packing.savepoints[0].share_usages[pool]
        if share.measure_excess(usage) > share.measure_excess(usage_before):
            return pool
    return ""
