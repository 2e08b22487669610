"""Places the pods of disrupted nodes directly on the nodes where a sequence of commands would leave them."""

from collections.abc import Mapping, Sequence

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.consolidation_context import ConsolidationContext
from shared.decide.disruption.methods.replacement_result import Replacement
from shared.decide.disruption.methods.several_replacements import SeveralReplacements
from shared.decide.disruption.simulation.exceeded_share import find_exceeded_share
from shared.decide.disruption.simulation.new_nodes import open_planned_node
from shared.decide.disruption.simulation.simulation import list_pod_moves
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements
from shared.model.decisions.placement import NewNodeClaim


class NetPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """The new nodes, each with all of its pods, and the moves in an order in which the pods can be bound."""

    new_nodes: tuple[NewNodeClaim, ...]
    moves: tuple[tuple[str, str], ...]


def place_net_change(
    context: ConsolidationContext,
    targets: Sequence[Candidate],
    new_nodes: Sequence[NewNodeClaim],
    node_by_pod: Mapping[str, str],
    *,
    is_drift: bool,
    is_pinned: bool,
) -> NetPlacement | None:
    """Return the placement of the pods of *targets* by *node_by_pod*, None if a pod or a new node is not possible.

    New nodes keep their names and their cheapest offerings; *is_pinned* restricts them to its zone and capacity type.
    With *is_drift*, new nodes may have any price. The simulation of *context* cannot be used afterwards.
    """
    simulation = context.simulation
    trial = simulation.begin(max_new_nodes=len(new_nodes))
    numbers = simulation.node_numbers
    pods = [pod for target in targets for pod in simulation.clear_node(numbers[target.name])]
    if not new_nodes and not is_drift and context.is_placement_uncertain(targets, pods):
        return None
    target_names = {target.name for target in targets}
    number_by_node = {name: number for name, number in numbers.items() if name not in target_names}
    open_nodes: list[OpenNodeClaim] = []
    for node in new_nodes:
        number = open_planned_node(simulation, node.node_pool, _build_node_requirements(node, is_pinned=is_pinned))
        if number is None:
            return None
        number_by_node[node.name] = len(simulation.packing.existing_nodes) + number
        open_nodes.append(simulation.packing.open_nodes[number])
    planned_nodes = {
        pod.name: number_by_node[home] for pod in pods if (home := node_by_pod.get(pod.name, "")) in number_by_node
    }
    if (
        len(planned_nodes) < len(pods)
        or simulation.place_pods_at(pods, planned_nodes)
        or (not is_drift and find_exceeded_share(simulation))
    ):
        return None
    if any(planned_nodes[pod.name] != number for pod, number in trial.placements):
        return None
    final_nodes = _complete_nodes(context, targets, new_nodes, open_nodes, is_drift=is_drift)
    if final_nodes is None:
        return None
    names = {number_by_node[node.name]: node.name for node in new_nodes}
    return NetPlacement(new_nodes=final_nodes, moves=list_pod_moves(simulation, trial.placements, names))


def _build_node_requirements(node: NewNodeClaim, *, is_pinned: bool) -> Requirements:
    instance_types = Requirement(key=INSTANCE_TYPE, values=frozenset(node.instance_types))
    node_requirements = node.requirements & Requirements(items=(instance_types,))
    if not is_pinned:
        return node_requirements
    labels = {ZONE: node.cheapest.zone, CAPACITY_TYPE: node.cheapest.capacity_type}
    return node_requirements & build_label_requirements(labels)


def _complete_nodes(
    context: ConsolidationContext,
    targets: Sequence[Candidate],
    new_nodes: Sequence[NewNodeClaim],
    open_nodes: Sequence[OpenNodeClaim],
    *,
    is_drift: bool,
) -> tuple[NewNodeClaim, ...] | None:
    """Return *new_nodes* with the pods of *open_nodes*; None if they cannot be launched as cheaply as planned."""
    replacements = _find_replacements(context, targets, open_nodes, is_drift=is_drift)
    if len(replacements) < len(new_nodes) or any(
        replacement.cheapest != node.cheapest for replacement, node in zip(replacements, new_nodes, strict=True)
    ):
        return None
    return tuple(
        msgspec.structs.replace(
            context.replacement_finder.accept(replacement, context.simulation.movable_pods), name=node.name
        )
        for replacement, node in zip(replacements, new_nodes, strict=True)
    )


def _find_replacements(
    context: ConsolidationContext,
    targets: Sequence[Candidate],
    open_nodes: Sequence[OpenNodeClaim],
    *,
    is_drift: bool,
) -> list[Replacement]:
    """Return the replacements by the rules for one and for several new nodes; fewer than *open_nodes* if refused."""
    finder = context.replacement_finder
    if not is_drift and len(open_nodes) > 1:
        return SeveralReplacements(context).find_cheaper_nodes(targets, open_nodes)
    reservation_manager = finder.copy_reservation_manager()
    committed_type = next((target.instance_type for target in targets if target.is_committed), "")
    results = [
        finder.find_at_any_price(node, reservation_manager, "" if position else committed_type)
        if is_drift
        else finder.find_cheaper(node, targets)
        for position, node in enumerate(open_nodes)
    ]
    return [replacement for replacement in results if isinstance(replacement, Replacement)]
