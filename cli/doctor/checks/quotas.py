"""Checks of vCPU quotas, and of limits in USD per hour: what NodePools may use at most."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, KubernetesFacts, QuotaUsage, ReadFailure
from cli.facts.quota_families import QUOTA_BY_NAME, STANDARD, Quota, find_quota, list_node_pool_quotas
from shared.model.core.formatting import join_names
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, LIMIT_USD, NODEPOOL
from shared.model.core.resources import CPU, USD_PER_HOUR, format_amount
from shared.model.karpenter.money_limit import convert_to_micro_usd, find_limit_problem, list_limits
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node

INCREASE_COMMAND: Final = "aws service-quotas request-service-quota-increase --service-code ec2"
NEARLY_USED_RATIO: Final = 0.9
MAX_LISTED_NAMES: Final = 3
_MILLI_CPU_PER_VCPU: Final = 1000


def check_quotas(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the account's vCPU quotas allow what the NodePools allow."""
    if facts.account is None:
        return
    check, usage_by_name = CheckReporter("quotas"), facts.account.quotas
    exhausted = {
        name
        for name, quota_usage in usage_by_name.items()
        if not isinstance(quota_usage, ReadFailure) and _is_exhausted(name, quota_usage, facts)
    }
    for name, usage in usage_by_name.items():
        if not isinstance(usage, ReadFailure):
            yield _check_quota(QUOTA_BY_NAME[name], usage, exhausted, facts.kubernetes, check)
    failures = [(failure, name) for name, failure in usage_by_name.items() if isinstance(failure, ReadFailure)]
    for _, group in groupby(failures, key=lambda pair: (pair[0].is_denied, pair[0].fix)):
        same_failures = list(group)
        yield check.skip(
            f"vCPU quotas: {', '.join(name for _, name in same_failures)}", same_failures[0][0], _PERMISSIONS
        )


_PERMISSIONS: Final = "servicequotas:GetServiceQuota and servicequotas:GetAWSDefaultServiceQuota"


def _check_quota(
    quota: Quota, usage: QuotaUsage, exhausted: set[str], kubernetes: KubernetesFacts | None, check: CheckReporter
) -> CheckResult:
    used_vcpus, pools = _get_used_vcpus(quota, usage, kubernetes), _list_pools_using(quota, kubernetes)
    limit_vcpus = _sum_cpu_limits(quota, pools)
    summary = f"{quota.name}: quota {usage.vcpus:,.0f} vCPUs{_format_usage(quota, usage, kubernetes)}"
    fix = f"{INCREASE_COMMAND} --quota-code {quota.code} --desired-value"
    if quota.name in exhausted:
        return _build_exhausted_result(quota, summary, f"{fix} N", exhausted, pools, check)
    if used_vcpus is not None and used_vcpus > NEARLY_USED_RATIO * usage.vcpus:
        return check.warn(f"{summary}: nearly used up", f"{fix} N")
    if limit_vcpus is not None and limit_vcpus > usage.vcpus:
        message = (
            f"{quota.name}: NodePool limits allow {limit_vcpus:,} vCPUs, {summary.removeprefix(f'{quota.name}: ')}"
        )
        return check.warn(message, f"{fix} {limit_vcpus}, or lower spec.limits")
    return check.accept(summary)


def _build_exhausted_result(
    quota: Quota,
    summary: str,
    fix: str,
    exhausted: set[str],
    pools: tuple[NodePool, ...] | None,
    check: CheckReporter,
) -> CheckResult:
    """Return the result for an exhausted *quota*.

    It names the NodePools that cannot launch. NodePools with other families or capacity types still can.
    """
    if pools is None:
        return (
            check.fail(f"{summary}: no more instances can start", fix)
            if quota.family == STANDARD
            else check.warn(summary, fix)
        )
    stopped_pools = [
        pool.name for pool in pools if {pool_quota.name for pool_quota in list_node_pool_quotas(pool)} <= exhausted
    ]
    if stopped_pools:
        return check.fail(
            f"{summary}: no more instances can start for NodePool {join_names(stopped_pools, MAX_LISTED_NAMES)}", fix
        )
    if quota.family == STANDARD:
        return check.warn(f"{summary}: NodePools use their other instance families or capacity types", fix)
    return check.accept(f"{summary}: NodePools use their other instance families or capacity types")


def _is_exhausted(name: str, usage: QuotaUsage, facts: DoctorFacts) -> bool:
    used_vcpus = _get_used_vcpus(QUOTA_BY_NAME[name], usage, facts.kubernetes)
    return usage.vcpus < 1 or (used_vcpus is not None and used_vcpus >= usage.vcpus)


def _format_usage(quota: Quota, usage: QuotaUsage, kubernetes: KubernetesFacts | None) -> str:
    own_vcpus = _count_own_vcpus(quota, kubernetes)
    descriptions = [] if own_vcpus is None else [f"{own_vcpus:,} in use by NodePools"]
    descriptions += [] if usage.used is None else [f"{usage.used:,} in use in the account"]
    return "".join(f", {description}" for description in descriptions)


def _get_used_vcpus(quota: Quota, usage: QuotaUsage, kubernetes: KubernetesFacts | None) -> int | None:
    """Return the vCPUs in use as far as known: CloudWatch counts the whole account, some minutes late."""
    vcpu_counts = [
        vcpu_count for vcpu_count in (usage.used, _count_own_vcpus(quota, kubernetes)) if vcpu_count is not None
    ]
    return max(vcpu_counts, default=None)


def _count_own_vcpus(quota: Quota, kubernetes: KubernetesFacts | None) -> int | None:
    if kubernetes is None or isinstance(kubernetes.nodes, ReadFailure):
        return None
    own_nodes = (node for node in kubernetes.nodes if node.meta.get_label(NODEPOOL) and _find_node_quota(node) == quota)
    return sum(node.capacity[CPU] for node in own_nodes) // _MILLI_CPU_PER_VCPU


def _find_node_quota(node: Node) -> Quota | None:
    """Return the quota that *node* counts against; a node without an instance type counts as a standard one."""
    return find_quota(node.meta.get_label(INSTANCE_TYPE) or "m", node.meta.get_label(CAPACITY_TYPE))


def _list_pools_using(quota: Quota, kubernetes: KubernetesFacts | None) -> tuple[NodePool, ...] | None:
    """Return the NodePools that may use *quota*; None if they could not be read."""
    if kubernetes is None or isinstance(kubernetes.node_pools, ReadFailure):
        return None
    return tuple(pool for pool in kubernetes.node_pools if quota in list_node_pool_quotas(pool))


def _sum_cpu_limits(quota: Quota, pools: tuple[NodePool, ...] | None) -> int | None:
    """Return the sum of the CPU limits; None if a NodePool has no limit, or if they could not be read.

    For a special family, only NodePools that cannot use any other family count: for others, the share is unknown.
    """
    if pools is None:
        return None
    counted_pools = [
        pool
        for pool in pools
        if quota.family == STANDARD
        or {pool_quota.family for pool_quota in list_node_pool_quotas(pool)} == {quota.family}
    ]
    cpu_limits = [None if pool.limits is None else dict(pool.limits.amounts).get(CPU) for pool in counted_pools]
    known_limits = [cpu_limit for cpu_limit in cpu_limits if cpu_limit is not None]
    return sum(known_limits) // _MILLI_CPU_PER_VCPU if len(known_limits) == len(cpu_limits) else None


def check_money_limits(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that limits in USD per hour are valid, and that the cluster's limit allows that of each NodePool."""
    if facts.kubernetes is None or isinstance(facts.kubernetes.node_pools, ReadFailure):
        return
    check, settings = CheckReporter("money-limits"), facts.stack.settings if facts.stack is not None else None
    cluster_limit = convert_to_micro_usd(settings.limit_usd_per_hour) if settings is not None else 0
    for pool in facts.kubernetes.node_pools:
        problem, limit = find_limit_problem(pool), list_limits(pool).get(USD_PER_HOUR)
        if problem:
            yield check.fail(f"NodePool {pool.name}: {problem}", f"correct the annotation {LIMIT_USD}")
        elif limit is not None and 0 < cluster_limit < limit:
            amounts = [format_amount(USD_PER_HOUR, amount) for amount in (limit, cluster_limit)]
            message = f"NodePool {pool.name} has a limit of {amounts[0]}, above the cluster's limit of {amounts[1]}"
            yield check.warn(message, f"lower {LIMIT_USD}, or increase limit-usd-per-hour")
        elif limit is not None:
            yield check.accept(f"NodePool {pool.name} has a limit of {format_amount(USD_PER_HOUR, limit)}")
    if cluster_limit:
        yield check.accept(f"the cluster has a limit of {format_amount(USD_PER_HOUR, cluster_limit)}")
