"""Options derived from the settings: scheduling, disruption, launches, and the capacity of instance types."""

import msgspec

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings, parse_disruption_settings
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.decide.launch.fleets.circuit_breaker import CircuitBreakerLimits
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.decide.launch.fleets.offerings import MIN_SPOT_TO_SPOT_TYPES, SpotPriceTolerance
from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.model.decisions.month_costs import BudgetPolicy, parse_budget_steps
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.money_limit import MoneyPolicy, convert_to_micro_usd
from shared.settings import ChosenSettings, Settings


def build_scheduling_options(settings: Settings) -> SchedulingOptions:
    """Return the scheduling options of a deployment; in mode `plan`, node classes are assumed to be ready."""
    return SchedulingOptions(
        preference_policy=settings.preference_policy,
        min_values_policy=settings.min_values_policy,
        pod_nominations=settings.pod_nominations,
        node_cost_usd_per_hour=settings.node_cost_usd_per_hour,
        volume_usd_per_gib_month=settings.volume_usd_per_gib_month,
        money=build_money_policy(settings),
        priority_under_limits=settings.priority_under_limits == "on",
        readiness="Assumed" if settings.mode == "plan" else "Required",
    )


def build_disruption_settings(settings: Settings) -> DisruptionSettings:
    """Return the disruption settings of a deployment; a disruption must pay for its evictions and launches."""
    disruption_settings = parse_disruption_settings(
        settings.disruption_budgets,
        settings.disruption_time_zone,
        spot_to_spot=settings.gates.spot_to_spot_consolidation,
    )
    return msgspec.structs.replace(
        disruption_settings,
        overlap=NODE_OVERLAP_PERIOD,
        eviction_price_usd=settings.eviction_price_usd,
        workload_cooldown=settings.workload_cooldown_period,
    )


def build_launch_policy(settings: Settings) -> LaunchPolicy:
    """Return the policy of launches of a deployment, without what is read before each launch."""
    return LaunchPolicy(
        circuit_breaker_limits=CircuitBreakerLimits(
            nodes_per_minute=settings.launch_nodes_per_minute,
            usd_per_hour=settings.launch_usd_per_hour,
            pool_nodes_per_minute=settings.launch_pool_nodes_per_minute,
            pool_usd_per_hour=settings.launch_pool_usd_per_hour,
        ),
        money=build_money_policy(settings),
        uses_open_reservations=not settings.gates.reserved_capacity,
        best_effort=settings.min_values_policy == "BestEffort",
        spot_price_tolerance=SpotPriceTolerance(
            percent=settings.spot_price_tolerance_percent,
            min_types=MIN_SPOT_TO_SPOT_TYPES if settings.gates.spot_to_spot_consolidation else 1,
        ),
    )


def build_money_policy(settings: ChosenSettings) -> MoneyPolicy:
    """Return the limit of the cluster in USD per hour, and the prices that count against such limits."""
    return MoneyPolicy(
        cluster_limit=convert_to_micro_usd(settings.limit_usd_per_hour) if settings.limit_usd_per_hour else None,
        prices=settings.money_limit_prices,
        volume_usd_per_gib_month=settings.volume_usd_per_gib_month,
    )


def build_budget_policy(settings: ChosenSettings) -> BudgetPolicy:
    """Return the monthly budget of a deployment.

    Raises:
        ValueError: the steps cannot be parsed.
    """
    return BudgetPolicy(
        budget_usd=settings.monthly_budget_usd,
        step_percents=parse_budget_steps(settings.monthly_budget_steps),
        min_priority=settings.monthly_budget_priority,
    )


def build_capacity_settings(settings: ChosenSettings) -> CapacitySettings:
    """Return the settings of a deployment that affect the capacity of instance types.

    Raises:
        ValueError: the AWS feature gates cannot be parsed.
    """
    return CapacitySettings(
        vm_memory_overhead_percent=settings.vm_memory_overhead_percent,
        reserved_enis=settings.reserved_enis,
        node_class_cel=settings.aws_gates.node_class_cel,
    )
