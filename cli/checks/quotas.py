"""vCPUs: what NodePools may ask for against what the account may run."""

from collections.abc import Iterator
from typing import Final

from cli.checks.facts import Facts, Kubernetes, Unseen
from cli.checks.findings import Finding, Findings
from shared.model.labels import CAPACITY_TYPE, NODEPOOL, ON_DEMAND, SPOT
from shared.model.resources import CPU

CODES: Final = {ON_DEMAND: "L-1216C47A", SPOT: "L-34B43A08"}
"""Of Service Quotas: standard instances (A, C, D, H, I, M, R, T, Z), in vCPUs."""
ASK: Final = "aws service-quotas request-service-quota-increase --service-code ec2"
NEARLY: Final = 0.9
_MILLI: Final = 1000


def quotas(facts: Facts) -> Iterator[Finding]:
    """Does the account allow what the NodePools do?"""
    if facts.account is None:
        return
    say = Findings("quotas")
    for kind, quota in sorted(facts.account.quotas.items()):
        if isinstance(quota, Unseen):
            yield say.unseen(f"the quota of {kind} vCPUs", quota, "servicequotas:GetServiceQuota")
        else:
            yield _judged(kind, quota, facts.kubernetes, say)


def _judged(kind: str, quota: float, seen: Kubernetes | None, say: Findings) -> Finding:
    remedy = f"{ASK} --quota-code {CODES[kind]} --desired-value"
    used, limit = _used(kind, seen), _limit(kind, seen)
    now = "" if used is None else f", {used:,} in use by NodePools"
    if quota < 1 or (used is not None and used >= quota):
        return say.fail(f"{kind}: the account may run {quota:,.0f} vCPUs{now}: nothing more starts", f"{remedy} N")
    if used is not None and used > NEARLY * quota:
        return say.warn(f"{kind}: the account may run {quota:,.0f} vCPUs{now}", f"{remedy} N")
    if limit is not None and limit > quota:
        what = f"{kind}: NodePools may ask for {limit:,} vCPUs, the account may run {quota:,.0f}{now}"
        return say.warn(what, f"{remedy} {limit}, or lower spec.limits")
    return say.ok(f"{kind}: the account may run {quota:,.0f} vCPUs{now}")


def _used(kind: str, seen: Kubernetes | None) -> int | None:
    if seen is None or isinstance(seen.nodes, Unseen):
        return None
    ours = (one for one in seen.nodes if one.meta.label(NODEPOOL) and one.meta.label(CAPACITY_TYPE) == kind)
    return sum(one.capacity[CPU] for one in ours) // _MILLI


def _limit(kind: str, seen: Kubernetes | None) -> int | None:
    """Answer the sum of limits of pools that may have *kind*; None where one has none, or they were not seen."""
    if seen is None or isinstance(seen.node_pools, Unseen):
        return None
    limits = []
    for pool in seen.node_pools:
        if pool.requirements[CAPACITY_TYPE].has(kind):
            amounts = dict(pool.limits.amounts) if pool.limits is not None else {}
            limits.append(amounts.get(CPU))
    known = [one for one in limits if one is not None]
    return sum(known) // _MILLI if len(known) == len(limits) else None
