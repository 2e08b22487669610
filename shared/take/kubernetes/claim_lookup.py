"""Second check of orphaned instances: their claims are read by name before the instances are terminated.

A snapshot can be older than the instances that EC2 returns: a claim that the watch has not delivered yet is missing in
it. A read by name returns the current state.
"""

from collections.abc import Iterable, Iterator

import msgspec

from shared.errors import Fault, Forbidden, NotFound
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.core.metadata import Problem
from shared.model.decisions.action import NO_CLAIM_MESSAGE, Action, TerminateInstances
from shared.model.ec2.instance import NODE_CLAIM_TAG, Instance
from shared.ports.kubernetes import Kube
from shared.wire.paths import build_object_path


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Claim(msgspec.Struct, frozen=True, kw_only=True):
    status: _Status | None = None


class ClaimLookup(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the second check."""

    spared_ids: tuple[str, ...]
    """Ids of the suspected orphans whose claim exists or cannot be read, sorted."""
    problems: tuple[Problem, ...] = ()
    """The claims that cannot be read: their instances keep running, and a person must know why."""


def find_spared_instances(actions: Iterable[Action], cluster: ClusterSnapshot, kube: Kube) -> ClaimLookup:
    """Read the claims of suspected orphans: the instances that *actions* terminate because they have no claim."""
    suspect_ids = {
        instance_id
        for action in actions
        if isinstance(action, TerminateInstances) and action.message == NO_CLAIM_MESSAGE
        for instance_id in action.instance_ids
    }
    suspect_instances = (instance for instance in cluster.instances or () if instance.instance_id in suspect_ids)
    problems: list[Problem] = []
    spared_ids = [
        instance.instance_id for instance in suspect_instances if _has_possible_claim(instance, cluster, kube, problems)
    ]
    return ClaimLookup(spared_ids=tuple(sorted(spared_ids)), problems=tuple(sorted(problems)))


def _has_possible_claim(instance: Instance, cluster: ClusterSnapshot, kube: Kube, problems: list[Problem]) -> bool:
    for name in sorted({*_find_tagged_claim(instance), *_find_launched_claims(instance, cluster)}):
        try:
            claim = msgspec.json.decode(kube.read(build_object_path("NodeClaim", name)), type=_Claim)
        except NotFound:
            continue
        except (Fault, msgspec.DecodeError) as error:
            problems.append(_build_problem(instance, name, error))
            return True
        provider_id = claim.status.provider_id if claim.status is not None else ""
        if provider_id in ("", instance.provider_id):
            return True
    return False


def _build_problem(instance: Instance, claim_name: str, error: Exception) -> Problem:
    """Return the problem of an instance that has no NodeClaim in the snapshot, and whose claim cannot be read."""
    permission = " (missing permission: get on nodeclaims.karpenter.sh)" if isinstance(error, Forbidden) else ""
    message = (
        f"not terminated although it has no NodeClaim: NodeClaim {claim_name} cannot be read{permission}: "
        f"{type(error).__name__}: {error}"
    )
    return Problem(kind="EC2 instance", name=instance.instance_id, message=message)


def _find_tagged_claim(instance: Instance) -> Iterator[str]:
    if name := instance.get_tag(NODE_CLAIM_TAG):
        yield name


def _find_launched_claims(instance: Instance, cluster: ClusterSnapshot) -> Iterator[str]:
    """Yield the claims that the launch of *instance* was for: one claim once EC2's result is known."""
    group = next(
        (launch_group for launch_group in cluster.launch_groups if launch_group.name == instance.get_tag(LAUNCH_GROUP)),
        None,
    )
    if group is None:
        return
    if group.result is None:
        yield from group.claims
        return
    claim_instances = zip(group.claims, sorted(group.result.instances), strict=False)
    yield from (
        name for name, launched_instance in claim_instances if launched_instance.instance_id == instance.instance_id
    )
