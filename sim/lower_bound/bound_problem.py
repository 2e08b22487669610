"""Input of the lower bound as numeric tables: what can be bought, which nodes exist, and which pods fit where.

Which instance type may hold which pod is decided by the filters of the scheduling engine; prices and packing are not
taken from it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

import msgspec
import numpy as np

from shared.decide.scheduling.instance_types.instance_type_index import OFFERING_KEYS
from shared.decide.scheduling.nodes.existing_node import ExistingNode
from shared.decide.scheduling.scheduling_problem import build_problem
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.state.cluster_state import ClusterState
from sim.lower_bound.launch_options import (
    BoolArray,
    FloatArray,
    LimitConstraint,
    PurchaseOption,
    build_bool_table,
    list_purchase_options,
    scale_vectors,
    yield_limits,
)
from sim.lower_bound.pod_groups import (
    SPREAD_KEYS,
    HostLimit,
    NodeDemand,
    PodGroup,
    SpreadShare,
    count_closed_shares,
    group_pods,
)


class MinCountConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint: at least *count* pods of the groups *group_indexes* are on the bins of a domain."""

    group_indexes: tuple[int, ...]
    is_in_domain: BoolArray
    count: int


class BoundProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The whole problem as arrays. The bins are the purchase options, followed by the existing nodes."""

    pod_counts: FloatArray
    requests: FloatArray
    """By pod group and resource."""
    host_limits: tuple[HostLimit | None, ...]
    prices: FloatArray
    max_counts: FloatArray
    """How many of each purchase option can be bought."""
    capacities: FloatArray
    """By bin and resource."""
    is_allowed: BoolArray
    """By pod group and bin."""
    min_count_constraints: tuple[MinCountConstraint, ...]
    limit_constraints: tuple[LimitConstraint, ...]


def build_bound_problem(cluster_state: ClusterState, placement: Placement, options: SchedulingOptions) -> BoundProblem:
    """Return what the pods that *placement* places need, and the bins that are available for them."""
    placed_pod_names = {
        name for nodes in (placement.new_nodes, placement.existing) for node in nodes for name in node.pods
    }
    problem = build_problem(
        cluster_state,
        pods=[pod for pod in cluster_state.snapshot.pods if pod.name in placed_pod_names],
        staying_nodes=[state for state in cluster_state.nodes if not state.is_marked_for_deletion()],
        options=options,
    )
    cluster, axes, node_claim_templates = problem.cluster, problem.axes, problem.templates
    existing_nodes, remaining_limits = problem.build_existing_nodes(), problem.compute_remaining_limits()
    count_by_group = group_pods(
        problem, {key: _list_domains(key, node_claim_templates, existing_nodes) for key in SPREAD_KEYS}
    )
    count_by_share = count_closed_shares(count_by_group, cluster)
    spread_key_indexes = sorted({OFFERING_KEYS.index(key) for key, *_ in count_by_share})
    purchase_options, is_option_allowed = list_purchase_options(
        list(count_by_group), node_claim_templates, axes, remaining_limits, spread_key_indexes
    )
    requests = scale_vectors([group.requests for group in count_by_group], axes)
    capacities = scale_vectors(
        [*(option.capacity for option in purchase_options), *(existing_node.free for existing_node in existing_nodes)],
        axes,
    )
    is_requested = requests.any(axis=0)
    requests, capacities = requests[:, is_requested], capacities[:, is_requested]
    is_node_allowed = build_bool_table(
        [
            [_can_admit(existing_node, group.node_demand) for existing_node in existing_nodes]
            for group in count_by_group
        ],
        len(count_by_group),
    )
    is_allowed = np.hstack([is_option_allowed, is_node_allowed]) & (requests[:, None, :] <= capacities[None, :, :]).all(
        axis=2
    )
    return BoundProblem(
        pod_counts=np.array([float(count) for count in count_by_group.values()]),
        requests=requests,
        host_limits=tuple(group.host_limit for group in count_by_group),
        prices=np.array([option.price_usd_per_hour for option in purchase_options]),
        max_counts=np.array([option.max_count for option in purchase_options]),
        capacities=capacities,
        is_allowed=is_allowed,
        min_count_constraints=tuple(
            _yield_min_counts(count_by_share, list(count_by_group), purchase_options, existing_nodes)
        ),
        limit_constraints=tuple(yield_limits(remaining_limits, purchase_options, node_claim_templates)),
    )


def _list_domains(
    key: str, node_claim_templates: Iterable[NodeClaimTemplate], existing_nodes: Iterable[ExistingNode]
) -> frozenset[str]:
    """Return all values of the label *key*: of nodes that can be launched, and of existing nodes."""
    launchable_values = {
        value
        for template in node_claim_templates
        for value in template.type_index.list_values(
            template.initial_state.requirements[key],
            template.type_index.find_compatible(template.initial_state.requirements),
        )
    }
    return frozenset(
        launchable_values
        | {
            value
            for existing_node in existing_nodes
            for value in existing_node.node_domains.get_requirement(key).values
        }
    )


def _can_admit(existing_node: ExistingNode, node_demand: NodeDemand) -> bool:
    stages, alternatives = node_demand
    is_admitted = any(existing_node.can_admit(stage) and not stage.is_contradictory for stage in stages)
    return is_admitted and any(existing_node.can_satisfy(alternative) for alternative in alternatives)


def _yield_min_counts(
    count_by_share: Mapping[SpreadShare, int],
    groups: Sequence[PodGroup],
    options: Sequence[PurchaseOption],
    existing_nodes: Sequence[ExistingNode],
) -> Iterator[MinCountConstraint]:
    """Yield what even spread means: the fewest pods that each domain has if the skew is at most the maximum."""
    for share, count in count_by_share.items():
        key, max_skew, _, domains = share
        min_count = ceil((count - max_skew * (len(domains) - 1)) / len(domains)) if domains else 0
        group_indexes = tuple(group_index for group_index, group in enumerate(groups) if share in group.spread_shares)
        key_index = OFFERING_KEYS.index(key)
        for domain in domains if min_count > 0 else ():
            is_option_in_domain = [option.kind[key_index] == domain for option in options]
            is_node_in_domain = [
                existing_node.node_domains.get_requirement(key).values == {domain} for existing_node in existing_nodes
            ]
            yield MinCountConstraint(
                group_indexes=group_indexes,
                is_in_domain=np.array([*is_option_in_domain, *is_node_in_domain]),
                count=min_count,
            )
