"""Why a limit in USD per hour refuses a pod: the amounts, and the setting to increase."""

from shared.decide.scheduling.nodes.node_pool_limits import RemainingLimits, find_remaining_usd
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate, TemplateRefusal
from shared.model.core.labels import LIMIT_USD
from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.money_limit import GROUP_LIMIT_FIX, list_limits


def explain_usd_limits(
    template: NodeClaimTemplate,
    pod_class: PodEquivalenceClass,
    state: NarrowedTemplate,
    remaining_limits: RemainingLimits,
    options: SchedulingOptions,
) -> TemplateRefusal | None:
    """Return which limit in USD per hour refuses a node in *state* for the pod; None if none does."""
    fitting_types = template.filter_fitting_types(state.mask, pod_class.request_vector, pod_class.ports)
    type_prices, usd_left = template.type_prices, find_remaining_usd(remaining_limits, template.pool.name)
    if type_prices is None or usd_left is None:
        return None
    if fitting_types & type_prices.find_types_within(state.requirements, max(0, usd_left)):
        return None
    is_pool_limit = remaining_limits[template.pool.name].get(USD_PER_HOUR) == usd_left
    group = None if is_pool_limit else options.money.deciding_group
    if group is not None and group.waiting_reason:
        return TemplateRefusal(reason="LimitExceeded", message=group.waiting_reason)
    cluster_limit = options.money.cluster_limit if group is None else group.limit
    price, remaining, limit = (
        format_amount(USD_PER_HOUR, amount)
        for amount in (
            type_prices.get_min_price(state.requirements, fitting_types),
            max(0, usd_left),
            (list_limits(template.pool).get(USD_PER_HOUR) if is_pool_limit else cluster_limit) or 0,
        )
    )
    scope, fix = ("its limit", LIMIT_USD) if is_pool_limit else ("the limit of the cluster", "limit-usd-per-hour")
    if group is not None:
        scope, fix = f"the limit of group {group.group}", GROUP_LIMIT_FIX
    message = f"a node costs at least {price}, {remaining} is left of {scope} of {limit}: increase {fix}"
    return TemplateRefusal(reason="LimitExceeded", message=message)
