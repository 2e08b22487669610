"""The taint `joiner.dev/fill-last` on the newest nodes of each NodePool: kube-scheduler fills all other nodes first.

Without it, kube-scheduler prefers the emptiest nodes, so that each new pod goes to a node that could soon be removed.
The effect of the taint is PreferNoSchedule: pods still go there if no other node has room. Joiner's plans ignore it.
"""

from collections.abc import Collection, Iterator
from typing import Final

from shared.decide.disruption.scale_down_order.emptiable_nodes import EmptiableNodes
from shared.model.core.taints import FILL_LAST, without_fill_last_taint
from shared.model.decisions.action import TaintNode
from shared.state.cluster_state import ClusterState
from shared.state.state_node import is_deleting_or_marked

FILL_LAST_DIVISOR: Final = 4
"""One of so many nodes of a NodePool has the taint, and at least one."""


def has_fill_last_taints(cluster_state: ClusterState) -> bool:
    """Return whether a node has the taint."""
    return any(FILL_LAST in node.taints for node in cluster_state.snapshot.nodes)


def plan_fill_last_taints(
    cluster_state: ClusterState, emptiable_nodes: EmptiableNodes, command_nodes: Collection[str] = ()
) -> tuple[TaintNode, ...]:
    """Return the changes: the newest quarter of *emptiable_nodes* of each NodePool has the taint, and no other node.

    *command_nodes*, the nodes of running commands, and leaving nodes stay as they are.
    """
    newest_names = frozenset(
        state.name
        for states in emptiable_nodes.values()
        for state in states[: max(1, len(states) // FILL_LAST_DIVISOR)]
    )
    return tuple(_list_changes(cluster_state, newest_names, command_nodes))


def _list_changes(
    cluster_state: ClusterState, newest_names: Collection[str], command_nodes: Collection[str]
) -> Iterator[TaintNode]:
    for state in cluster_state.nodes:
        node = state.node
        if node is None or (FILL_LAST in node.taints) == (state.name in newest_names):
            continue
        if state.name in command_nodes or is_deleting_or_marked(state):
            continue
        other_taints = without_fill_last_taint(node.taints)
        is_tainted = state.name in newest_names
        yield TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=(*other_taints, FILL_LAST) if is_tainted else other_taints,
            message="one of the newest nodes of its NodePool: new pods should fill other nodes first"
            if is_tainted
            else "no longer one of the newest nodes of its NodePool that a scale-down can empty",
        )
