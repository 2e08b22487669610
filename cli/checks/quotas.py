"""vCPUs: what the account may run and runs of each family that NodePools may come to, and what they may ask for."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from cli.checks.facts import Allowed, Facts, Kubernetes, Unseen
from cli.checks.families import BY_NAME, STANDARD, Quota, quota_of, quotas_of
from cli.checks.findings import Finding, Findings
from cli.text import some
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL
from shared.model.nodepools import NodePool
from shared.model.nodes import Node
from shared.model.resources import CPU

ASK: Final = "aws service-quotas request-service-quota-increase --service-code ec2"
NEARLY: Final = 0.9
NAMED: Final = 3
_MILLI: Final = 1000


def quotas(facts: Facts) -> Iterator[Finding]:
    """Does the account allow what the NodePools do?"""
    if facts.account is None:
        return
    say, told = Findings("quotas"), facts.account.quotas
    spent = {name for name, one in told.items() if not isinstance(one, Unseen) and _is_spent(name, one, facts)}
    for name, one in told.items():
        if not isinstance(one, Unseen):
            yield _judged(BY_NAME[name], one, spent, facts.kubernetes, say)
    hidden = [(one, name) for name, one in told.items() if isinstance(one, Unseen)]
    for _, some_hidden in groupby(hidden, key=lambda pair: (pair[0].is_denied, pair[0].remedy)):
        same = list(some_hidden)
        yield say.unseen(f"the quota of vCPUs: {', '.join(name for _, name in same)}", same[0][0], _RIGHT)


_RIGHT: Final = "servicequotas:GetServiceQuota and servicequotas:GetAWSDefaultServiceQuota"


def _judged(quota: Quota, allowed: Allowed, spent: set[str], seen: Kubernetes | None, say: Findings) -> Finding:
    used, pools = _used(quota, allowed, seen), _pools(quota, seen)
    limit = _limit(quota, pools)
    said = f"{quota.name}: the account may run {allowed.vcpus:,.0f} vCPUs{_in_use(quota, allowed, seen)}"
    remedy = f"{ASK} --quota-code {quota.code} --desired-value"
    if quota.name in spent:
        return _spent(quota, said, f"{remedy} N", spent, pools, say)
    if used is not None and used > NEARLY * allowed.vcpus:
        return say.warn(said, f"{remedy} N")
    if limit is not None and limit > allowed.vcpus:
        what = f"{quota.name}: NodePools may ask for {limit:,} vCPUs, {said.removeprefix(f'{quota.name}: ')}"
        return say.warn(what, f"{remedy} {limit}, or lower spec.limits")
    return say.ok(said)


def _spent(
    quota: Quota, said: str, remedy: str, spent: set[str], pools: tuple[NodePool, ...] | None, say: Findings
) -> Finding:
    """Answer that nothing more starts by *quota*: whom that stops, and who has other families or ways to buy."""
    if pools is None:
        return say.fail(f"{said}: nothing more starts", remedy) if quota.family == STANDARD else say.warn(said, remedy)
    stopped = [pool.name for pool in pools if {one.name for one in quotas_of(pool)} <= spent]
    if stopped:
        return say.fail(f"{said}: nothing more starts for NodePool {some(stopped, NAMED)}", remedy)
    if quota.family == STANDARD:
        return say.warn(f"{said}: NodePools get what else they allow", remedy)
    return say.ok(f"{said}: NodePools get what else they allow")


def _is_spent(name: str, allowed: Allowed, facts: Facts) -> bool:
    used = _used(BY_NAME[name], allowed, facts.kubernetes)
    return allowed.vcpus < 1 or (used is not None and used >= allowed.vcpus)


def _in_use(quota: Quota, allowed: Allowed, seen: Kubernetes | None) -> str:
    ours = _ours(quota, seen)
    told = [] if ours is None else [f"{ours:,} in use by NodePools"]
    told += [] if allowed.used is None else [f"{allowed.used:,} in use by all"]
    return "".join(f", {one}" for one in told)


def _used(quota: Quota, allowed: Allowed, seen: Kubernetes | None) -> int | None:
    """Answer what is known to run: CloudWatch counts everybody's, some minutes late."""
    known = [one for one in (allowed.used, _ours(quota, seen)) if one is not None]
    return max(known, default=None)


def _ours(quota: Quota, seen: Kubernetes | None) -> int | None:
    if seen is None or isinstance(seen.nodes, Unseen):
        return None
    ours = (one for one in seen.nodes if one.meta.label(NODEPOOL) and _quota(one) == quota)
    return sum(one.capacity[CPU] for one in ours) // _MILLI


def _quota(node: Node) -> Quota | None:
    """Answer by which quota *node* counts; one that does not say its type is taken for a standard one."""
    return quota_of(node.meta.label(INSTANCE_TYPE) or "m", node.meta.label(CAPACITY_TYPE))


def _pools(quota: Quota, seen: Kubernetes | None) -> tuple[NodePool, ...] | None:
    """Answer the NodePools that may come to *quota*; None: they were not seen."""
    if seen is None or isinstance(seen.node_pools, Unseen):
        return None
    return tuple(pool for pool in seen.node_pools if quota in quotas_of(pool))


def _limit(quota: Quota, pools: tuple[NodePool, ...] | None) -> int | None:
    """Answer the sum of limits; None where a NodePool has none, or they were not seen.

    Of a special family only NodePools count that can have nothing else: of others nobody knows how much is meant.
    """
    if pools is None:
        return None
    meant = [
        one for one in pools if quota.family == STANDARD or {each.family for each in quotas_of(one)} == {quota.family}
    ]
    amounts = [None if one.limits is None else dict(one.limits.amounts).get(CPU) for one in meant]
    known = [one for one in amounts if one is not None]
    return sum(known) // _MILLI if len(known) == len(amounts) else None
