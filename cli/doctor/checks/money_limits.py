"""Check of the limits in USD per hour: the annotation of each NodePool, and the setting of the cluster."""

from collections.abc import Iterator

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, ReadFailure
from shared.model.core.labels import LIMIT_USD
from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.model.karpenter.money_limit import find_limit_problem, list_limits, to_micro_usd


def check_money_limits(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that limits in USD per hour are valid, and that the cluster's limit allows that of each NodePool."""
    if facts.kubernetes is None or isinstance(facts.kubernetes.node_pools, ReadFailure):
        return
    check, settings = CheckReporter("money-limits"), facts.stack.settings if facts.stack is not None else None
    cluster_limit = to_micro_usd(settings.limit_usd_per_hour) if settings is not None else 0
    for pool in facts.kubernetes.node_pools:
        problem, limit = find_limit_problem(pool), list_limits(pool).get(USD_PER_HOUR)
        if problem:
            yield check.fail(f"NodePool {pool.name}: {problem}", f"correct the annotation {LIMIT_USD}")
        elif limit is not None and 0 < cluster_limit < limit:
            amounts = [format_amount(USD_PER_HOUR, amount) for amount in (limit, cluster_limit)]
            message = f"NodePool {pool.name} has a limit of {amounts[0]}, the cluster has one of {amounts[1]}"
            yield check.warn(message, f"lower {LIMIT_USD}, or raise limit-usd-per-hour")
        elif limit is not None:
            yield check.accept(f"NodePool {pool.name} has a limit of {format_amount(USD_PER_HOUR, limit)}")
    if cluster_limit:
        yield check.accept(f"the cluster has a limit of {format_amount(USD_PER_HOUR, cluster_limit)}")
