"""What one run changes so that scale-downs empty the newest nodes, and new pods fill the older ones."""

from collections.abc import Collection

from shared.decide.disruption.scale_down_order.deletion_costs import plan_deletion_costs
from shared.decide.disruption.scale_down_order.emptiable_nodes import find_emptiable_nodes
from shared.decide.disruption.scale_down_order.fill_last_taints import has_fill_last_taints, plan_fill_last_taints
from shared.decide.disruption.scale_down_order.replicaset_pods import ReplicaSetPods
from shared.model.decisions.action import SetDeletionCost, TaintNode
from shared.state.cluster_state import ClusterState


def plan_scale_down_order(
    cluster_state: ClusterState,
    *,
    has_deletion_costs: bool,
    has_taints: bool,
    command_nodes: Collection[str] = (),
    paused_reasons: Collection[str] = (),
) -> tuple[SetDeletionCost | TaintNode, ...]:
    """Return the changes of taints and deletion costs that the settings ask for.

    *command_nodes*, the nodes of running commands, stay as they are. Without *has_taints*, taints that Joiner has set
    earlier are removed.
    """
    if not has_deletion_costs and not has_taints and not has_fill_last_taints(cluster_state):
        return ()
    replica_set_pods = ReplicaSetPods(cluster_state.snapshot.pods)
    emptiable_nodes = find_emptiable_nodes(cluster_state, replica_set_pods, paused_reasons)
    taints = plan_fill_last_taints(cluster_state, emptiable_nodes if has_taints else {}, command_nodes)
    costs = (
        plan_deletion_costs(cluster_state, replica_set_pods, emptiable_nodes, command_nodes)
        if has_deletion_costs
        else ()
    )
    return (*taints, *costs)
