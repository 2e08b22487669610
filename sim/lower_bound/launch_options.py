"""What can be bought: instance types in their offerings, without the dominated ones, and the limits of NodePools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from shared.decide.scheduling.instance_types.offering_prices import OfferingKind, get_offering_kind
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.model.core.labels import RESERVED
from shared.model.core.resources import CPU, MEMORY, NODES, STORAGE, USD_PER_HOUR, Axes, Vector
from shared.model.core.taints import find_untolerated_taint
from sim.lower_bound.pod_groups import NodeDemand, PodGroup

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
RemainingLimits: TypeAlias = Mapping[str, Mapping[str, int]]
"""Remaining NodePool limits, by NodePool and resource."""
_SCALE_BY_RESOURCE: Final = {CPU: 1000.0, MEMORY: float(1 << 30), STORAGE: float(1 << 30)}


class PurchaseOption(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type in one offering of a template; it can be bought at most *max_count* times."""

    template_index: int
    type_position: int
    kind: OfferingKind
    price_usd_per_hour: float
    capacity: Vector
    max_count: float


class LimitConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint: all bought nodes together use at most *max_amount*.

    *amounts* has the amount of each purchase option.
    """

    amounts: FloatArray
    max_amount: float


def list_purchase_options(
    groups: Sequence[PodGroup],
    node_claim_templates: Sequence[NodeClaimTemplate],
    axes: Axes,
    remaining_limits: RemainingLimits,
    spread_key_indexes: Sequence[int],
) -> tuple[list[PurchaseOption], BoolArray]:
    """Return the undominated purchase options, and by pod group whether it is allowed there.

    Regardless of resources.
    """
    options = [
        option
        for template_index, template in enumerate(node_claim_templates)
        for option in _yield_options(template_index, template)
    ]
    allowed_by_demand: dict[NodeDemand, list[bool]] = {}
    for group in groups:
        if group.node_demand not in allowed_by_demand:
            allowed_by_demand[group.node_demand] = _list_allowed(group.node_demand, node_claim_templates, options)
    is_allowed = build_bool_table([allowed_by_demand[want.node_demand] for want in groups], len(groups))
    option_values = np.hstack(
        [
            scale_vectors([option.capacity for option in options], axes),
            *(
                -limit_constraint.amounts[:, None]
                for limit_constraint in yield_limits(remaining_limits, options, node_claim_templates)
            ),
        ]
    )
    kept_indexes = _filter_undominated(options, option_values, is_allowed, spread_key_indexes)
    return [options[option_index] for option_index in kept_indexes], is_allowed[:, kept_indexes]


def _yield_options(template_index: int, template: NodeClaimTemplate) -> Iterator[PurchaseOption]:
    type_index, initial_state = template.type_index, template.initial_state
    allowed_kinds = frozenset(type_index.list_kinds(initial_state.requirements))
    for type_position, offerings in enumerate(type_index.offerings):
        overhead_group = next((group for group in template.daemon_overheads if group.mask >> type_position & 1), None)
        if overhead_group is None or not initial_state.mask >> type_position & 1:
            continue
        free_resources = tuple(
            allocatable_amount - daemon_amount
            for allocatable_amount, daemon_amount in zip(
                type_index.allocatable[type_position], overhead_group.request_vector, strict=True
            )
        )
        for offering in offerings:
            if get_offering_kind(offering) in allowed_kinds and min(free_resources) >= 0:
                max_count = float(offering.reservation_capacity) if offering.capacity_type == RESERVED else inf
                price_usd_per_hour = offering.price_usd_per_hour
                yield PurchaseOption(
                    template_index=template_index,
                    type_position=type_position,
                    kind=get_offering_kind(offering),
                    price_usd_per_hour=price_usd_per_hour,
                    capacity=free_resources,
                    max_count=max_count,
                )


def _list_allowed(
    node_demand: NodeDemand, node_claim_templates: Sequence[NodeClaimTemplate], options: Iterable[PurchaseOption]
) -> list[bool]:
    stages, alternatives = node_demand
    states_by_template: dict[int, list[tuple[int, frozenset[OfferingKind]]]] = {
        number: [] for number in range(len(node_claim_templates))
    }
    for template_index, template in enumerate(node_claim_templates):
        for stage in stages:
            if stage.is_contradictory or find_untolerated_taint(template.pool.taints, stage.tolerations) is not None:
                continue
            for alternative in alternatives:
                stage_state = template.narrow(template.initial_state, stage.requirements)
                state = None if stage_state is None else template.narrow(stage_state, alternative)
                if state is not None:
                    states_by_template[template_index].append(
                        (state.mask, frozenset(template.type_index.list_kinds(state.requirements)))
                    )
    return [
        any(
            mask >> option.type_position & 1 and option.kind in kinds
            for mask, kinds in states_by_template[option.template_index]
        )
        for option in options
    ]


def _filter_undominated(
    options: Sequence[PurchaseOption],
    option_values: FloatArray,
    is_allowed: BoolArray,
    spread_key_indexes: Sequence[int],
) -> list[int]:
    """Return the options without the dominated ones.

    An option is dominated if a cheaper option for the same pods is at least as good in all respects.

    *spread_key_indexes*: positions in the offering kind that tell spread domains apart. Reserved offerings are all
    kept.
    """
    options_by_key: dict[tuple[object, ...], list[int]] = {}
    for option_index in sorted(
        range(len(options)),
        key=lambda place: (options[place].price_usd_per_hour, -float(option_values[place].sum()), place),
    ):
        reservation_index = option_index if options[option_index].max_count < inf else -1
        key = (
            reservation_index,
            *(options[option_index].kind[key_index] for key_index in spread_key_indexes),
            is_allowed[:, option_index].tobytes(),
        )
        options_by_key.setdefault(key, []).append(option_index)
    kept_options: list[int] = []
    for group_options in options_by_key.values():
        kept_values = np.empty((0, option_values.shape[1]))
        for option_index in group_options:
            if not (kept_values >= option_values[option_index]).all(axis=1).any():
                kept_values = np.vstack([kept_values, option_values[option_index]])
                kept_options.append(option_index)
    return sorted(place for place in kept_options if is_allowed[:, place].any())


def yield_limits(
    remaining_limits: RemainingLimits,
    options: Sequence[PurchaseOption],
    node_claim_templates: Sequence[NodeClaimTemplate],
) -> Iterator[LimitConstraint]:
    """Yield the constraints of the remaining NodePool limits on *options*."""
    for template_index, template in enumerate(node_claim_templates):
        for resource, max_amount in sorted(remaining_limits.get(template.pool.name, {}).items()):
            if resource == USD_PER_HOUR:
                continue  # the bound stays valid without this constraint
            scale = _SCALE_BY_RESOURCE.get(resource, 1.0)
            amounts = [
                (
                    1.0
                    if resource == NODES
                    else template.type_index.types[option.type_position].capacity[resource] / scale
                )
                if option.template_index == template_index
                else 0.0
                for option in options
            ]
            yield LimitConstraint(amounts=np.array(amounts), max_amount=max_amount / scale)


def scale_vectors(vectors: Sequence[Vector], axes: Axes) -> FloatArray:
    """Return amounts in units with values that suit the solver; one row per vector."""
    scales = [_SCALE_BY_RESOURCE.get(name, 1.0) for name in axes.names]
    scaled_rows = [[amount / scale for amount, scale in zip(vector, scales, strict=True)] for vector in vectors]
    return np.array(scaled_rows, dtype=np.float64).reshape(len(scaled_rows), len(scales))


def build_bool_table(rows: Sequence[Sequence[bool]], count: int) -> BoolArray:
    """Return a table with *count* rows, also if they are empty."""
    return np.array(rows, dtype=np.bool_).reshape(count, -1 if count and rows[0] else 0)
