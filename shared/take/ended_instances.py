"""Instances that ended before their node registered: EC2 no longer lists them, but still gives the reason."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Fault
from shared.model.core.metadata import is_condition_true
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_claim import NodeClaim
from shared.ports.aws import Ec2

MAX_LOOKUPS_PER_RUN: Final = 10
"""A cause that ends more instances is known after a few of them."""
MIN_CLAIM_AGE: Final = timedelta(minutes=1)
"""EC2 lists a new instance only after a while."""


def read_ended_instances(
    ec2: Ec2, claims: Iterable[NodeClaim], instances: Iterable[Instance], now: datetime
) -> tuple[Instance, ...]:
    """Return the instances of unregistered *claims* that are not among *instances*, sorted by id.

    An instance that EC2 does not return is left out: the reason is only a report.
    """
    listed_ids = {instance.instance_id for instance in instances}
    missing_ids = sorted(
        claim.instance_id for claim in claims if claim.instance_id not in listed_ids and _needs_reason(claim, now)
    )
    return tuple(_look_up(ec2, missing_ids[:MAX_LOOKUPS_PER_RUN]))


def _needs_reason(claim: NodeClaim, now: datetime) -> bool:
    if not claim.provider_id or is_condition_true(claim.conditions, "Registered"):
        return False
    return claim.is_deleting() or now - (claim.meta.created_at or now) > MIN_CLAIM_AGE


def _look_up(ec2: Ec2, instance_ids: Iterable[str]) -> Iterator[Instance]:
    for instance_id in instance_ids:
        with suppress(Fault):
            yield ec2.describe_instance(instance_id)
