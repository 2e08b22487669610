"""NodeOverlays and default topology spread, applied to a snapshot."""

from msgspec.structs import replace

from shared.decide.launch.money.interruption_costs import price_interruptions
from shared.decide.scheduling.constraints.default_topology_spread import apply_default_spread, parse_default_constraints
from shared.decide.scheduling.templates.node_overlays import apply_overlays
from shared.model.cluster import ClusterSnapshot
from shared.model.core.feature_gates import parse_feature_gates


def apply_feature_gates(cluster: ClusterSnapshot, feature_gates: str, scheduler_config: str) -> ClusterSnapshot:
    """Return *cluster* with enabled features applied; objects of disabled features are removed.

    Raises:
        ValueError: a setting cannot be parsed.
    """
    gates = parse_feature_gates(feature_gates)
    if not gates.node_overlay:
        cluster = replace(cluster, node_overlays=())
    if not gates.capacity_buffer:
        cluster = replace(cluster, capacity_buffers=())
    return apply_default_spread(
        price_interruptions(apply_overlays(cluster)), parse_default_constraints(scheduler_config)
    )
