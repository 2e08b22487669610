"""Nodes that were planned earlier, opened again in a simulation."""

from shared.decide.disruption.simulation.simulation import SchedulingSimulation
from shared.model.core.labels import INSTANCE_TYPE
from shared.model.core.requirements import Requirements


def open_planned_node(simulation: SchedulingSimulation, node_pool: str, node_requirements: Requirements) -> int | None:
    """Open an empty node of *node_pool*; return its place among the open nodes, or None if it cannot be launched.

    *node_requirements* contain the names of its instance types. It may be any of them that limits allow.
    """
    for template in simulation.packing.templates:
        if template.pool.name != node_pool:
            continue
        state = template.narrow(template.initial_state, node_requirements.without((INSTANCE_TYPE,)))
        mask = 0 if state is None else state.mask & template.type_index.find_by_name(node_requirements[INSTANCE_TYPE])
        return None if state is None or not mask else simulation.packing.open_node(template, state, mask)
    return None
