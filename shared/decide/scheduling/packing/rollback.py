"""Savepoints of a packing: begin one, keep what changed since, or roll it back.

This takes time in proportion to what changed, not to the cluster. Savepoints nest.
"""

from shared.decide.scheduling.nodes.node_index import Nodes
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.savepoint import Savepoint


def begin_savepoint(packing: FirstFitPacking, max_new_nodes: int) -> None:
    """Begin a savepoint, after which at most *max_new_nodes* may be opened."""
    nodes = packing.nodes
    packing.savepoints.append(
        Savepoint(
            closed_nodes=packing.closed_nodes,
            max_new_nodes=packing.max_new_nodes,
            remaining_limits={name: dict(limit) for name, limit in packing.remaining_limits.items()},
            share_usages=dict(packing.share_usages),
            refusing_nodes=dict(nodes.refusing_nodes),
            nodes_by_pod_count=dict(nodes.nodes_by_pod_count),
            pod_counts=list(nodes.pod_counts),
            class_by_open_node=nodes.class_by_node[len(packing.existing_nodes) :],
            open_node_count=len(packing.open_nodes),
            node_by_claim=dict(packing.node_by_claim),
        )
    )
    packing.max_new_nodes = max_new_nodes


def commit_savepoint(packing: FirstFitPacking) -> None:
    """Give up the last savepoint: what changed since becomes part of the enclosing one."""
    savepoint = packing.savepoints.pop()
    packing.max_new_nodes = savepoint.max_new_nodes
    if packing.savepoints:
        packing.savepoints[-1].merge_inner(savepoint)


def roll_back(packing: FirstFitPacking) -> None:
    """Restore the state of the last savepoint."""
    savepoint = packing.savepoints.pop()
    touched_nodes = _close_open_nodes(packing, savepoint)
    _restore_nodes(packing, savepoint, touched_nodes)
    for number, (counts, levels) in savepoint.saved_groups.items():
        group = packing.topology.groups[number]
        group.counts, group.host_levels = counts, levels
        group.version += 1
    packing.closed_nodes, packing.max_new_nodes = savepoint.closed_nodes, savepoint.max_new_nodes
    packing.remaining_limits, packing.share_usages = savepoint.remaining_limits, savepoint.share_usages
    packing.node_by_claim = savepoint.node_by_claim


def _close_open_nodes(packing: FirstFitPacking, savepoint: Savepoint) -> Nodes:
    """Close the nodes opened since *savepoint*; return the earlier open nodes that changed, as bits."""
    nodes, existing_count, touched_nodes = packing.nodes, len(packing.existing_nodes), 0
    for index in range(len(packing.open_nodes)):
        number = existing_count + index
        bit = 1 << number
        nodes.members[nodes.class_by_node[number]] &= ~bit
        if index < savepoint.open_node_count:
            nodes.class_by_node[number] = savepoint.class_by_open_node[index]
            nodes.members[savepoint.class_by_open_node[index]] |= bit
        if index >= savepoint.open_node_count or index in savepoint.open_nodes:
            touched_nodes |= bit
    for index, node in savepoint.open_nodes.items():
        packing.open_nodes[index] = node
    del (
        nodes.hosts[existing_count + savepoint.open_node_count :],
        nodes.class_by_node[existing_count + savepoint.open_node_count :],
        packing.open_nodes[savepoint.open_node_count :],
    )
    nodes.nodes_by_pod_count, nodes.pod_counts = savepoint.nodes_by_pod_count, savepoint.pod_counts
    return touched_nodes


def _restore_nodes(packing: FirstFitPacking, savepoint: Savepoint, touched_nodes: Nodes) -> None:
    nodes = packing.nodes
    for number, node_state in savepoint.existing_node_states.items():
        node = packing.existing_nodes[number]
        node.free, node.attached, node.devices = node_state.free, node_state.attached, node_state.devices
        del node.ports[node_state.port_count :], node.pods[node_state.pod_count :]
        touched_nodes |= 1 << number
    for shape, bits in nodes.refusing_nodes.items():
        if bits & touched_nodes:
            nodes.refusing_nodes[shape] = (bits & ~touched_nodes) | (
                savepoint.refusing_nodes.get(shape, 0) & touched_nodes
            )
    _clear_caches(packing, touched_nodes)


def _clear_caches(packing: FirstFitPacking, touched_nodes: Nodes) -> None:
    """Clear the cached remaining capacity of *touched_nodes*; it is computed again."""
    nodes = packing.nodes
    for masks in nodes.depleted:
        for level, bits in enumerate(masks):
            if bits & touched_nodes:
                masks[level] = bits & ~touched_nodes
    while touched_nodes:
        bit = touched_nodes & -touched_nodes
        touched_nodes ^= bit
        number = bit.bit_length() - 1
        nodes.level_by_node.pop((0, number), None)
        nodes.level_by_node.pop((1, number), None)
