"""The commitments that plans use: those of the account and of its payer account, or those in a document in the bucket.

They are read for each new catalog. If they cannot be read, those of the last catalog are used until their terms end.
Only a document that is missing in the bucket means that there are none.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from shared.errors import Fault, Forbidden, NotFound
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ON_DEMAND
from shared.model.core.metadata import Problem
from shared.model.ec2.commitments import Commitments, OnDemandInstance
from shared.model.ec2.instance import Instance
from shared.ports.world import World
from shared.store.commitments import COMMITMENTS_KEY, build_commitments, decode_commitments

_PROBLEM_KIND: Final = "Commitments"


def load_commitments(
    world: World, cluster: ClusterSnapshot, on_demand_prices: Mapping[str, float]
) -> tuple[Commitments | None, tuple[Problem, ...]]:
    """Return the commitments and the problems in reading them; None with the setting `commitments: off`.

    *on_demand_prices* are by instance type.
    """
    source = world.settings.commitments
    if source == "off":
        return None, ()
    try:
        commitments = _read_account(world) if source == "account" else _read_document(world, on_demand_prices)
        instances = world.ec2.describe_other_instances(world.settings.cluster_name)
    except (Fault, ValueError) as error:
        if source == "bucket" and isinstance(error, NotFound):
            message = "is missing: write it with `joiner catalog commitments`, or set commitments: account"
            return None, (Problem(kind=_PROBLEM_KIND, name=COMMITMENTS_KEY, message=message),)
        earlier = cluster.catalog.commitments if cluster.catalog is not None else None
        use = "they are not used" if earlier is None else "those of the last catalog are used"
        message = f"could not be read: {type(error).__name__}: {error}; {use}"
        return earlier, (Problem(kind=_PROBLEM_KIND, name=source, message=message),)
    return replace(commitments, other_instances=group_instances(instances, on_demand_prices)), ()


def group_instances(
    instances: Iterable[Instance], on_demand_prices: Mapping[str, float]
) -> tuple[OnDemandInstance, ...]:
    """Return the on-demand instances with a known price: one entry for each instance type and zone, sorted."""
    counts: dict[tuple[str, str], int] = {}
    for instance in instances:
        if instance.capacity_type == ON_DEMAND and instance.instance_type in on_demand_prices:
            kind = (instance.instance_type, instance.zone)
            counts[kind] = counts.get(kind, 0) + 1
    return tuple(
        OnDemandInstance(
            instance_id="/".join(kind),
            instance_type=kind[0],
            zone=kind[1],
            usd_per_hour=on_demand_prices[kind[0]],
            hours=float(count),
        )
        for kind, count in sorted(counts.items())
    )


def _read_account(world: World) -> Commitments:
    reserved = world.ec2.describe_reserved_instances()
    plans = world.savings_plans.describe_savings_plans(world.settings.region) if world.savings_plans is not None else ()
    return _merge_commitments(Commitments(reserved=reserved, plans=plans), _read_payer_account(world))


def _read_payer_account(world: World) -> Commitments:
    """Return the commitments of the payer account; none without a role of it.

    Raises:
        Forbidden: the role cannot be assumed, or may not read them; the message names the role and the fix.
    """
    if world.payer is None:
        return Commitments()
    try:
        return world.payer.describe_commitments(world.settings.region)
    except Forbidden as fault:
        fix = f"check the trust policy and the permissions of {world.settings.commitments_role}: docs/guide/money.md"
        raise Forbidden(f"{fault}; to fix: {fix}") from fault


def _merge_commitments(account: Commitments, payer: Commitments) -> Commitments:
    """Return both, each commitment once: the payer account can be the account of the cluster."""
    reserved = {item.reservation_id: item for item in (*account.reserved, *payer.reserved)}
    plans = {plan.plan_id: plan for plan in (*account.plans, *payer.plans)}
    return Commitments(
        reserved=tuple(reserved[identifier] for identifier in sorted(reserved)),
        plans=tuple(plans[identifier] for identifier in sorted(plans)),
    )


def _read_document(world: World, on_demand_prices: Mapping[str, float]) -> Commitments:
    document = decode_commitments(COMMITMENTS_KEY, world.bucket.get(COMMITMENTS_KEY))
    return build_commitments(document, (world.settings.region,), on_demand_prices)
