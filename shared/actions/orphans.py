"""Instances that seem to have no claim are looked up once more before they are ended.

A snapshot may be older than the instances that EC2 shows: what a watch has not told yet is missing in it. What is read
by its name is as it is.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from shared.actions.kube_writes import path_of
from shared.errors import Fault, Gone
from shared.lifecycle.garbage import NO_CLAIM
from shared.lifecycle.tagging import NODE_CLAIM_TAG
from shared.model.action import Action, DeleteObject, TerminateInstances
from shared.model.cluster import Cluster
from shared.model.ec2 import Instance
from shared.model.labels import LAUNCH_GROUP
from shared.ports import Kube


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    provider_id: str = msgspec.field(default="", name="providerID")


class _Claim(msgspec.Struct, frozen=True, kw_only=True):
    status: _Status | None = None


def spared(actions: Iterable[Action], cluster: Cluster, kube: Kube) -> tuple[str, ...]:
    """Answer the instances that *actions* end as nobody's, and whose claim is there or cannot be looked up; sorted."""
    suspects = {
        one
        for each in actions
        if isinstance(each, TerminateInstances) and each.why == NO_CLAIM
        for one in each.instance_ids
    }
    some = (one for one in cluster.instances or () if one.instance_id in suspects)
    return tuple(sorted(one.instance_id for one in some if _may_have_a_claim(one, cluster, kube)))


def reconsidered(actions: tuple[Action, ...], cluster: Cluster, spared: Collection[str]) -> tuple[Action, ...]:
    """Answer *actions* without what ends instances that are *spared*, or their Nodes."""
    if not spared:
        return actions
    nodes = {one.name for one in cluster.nodes if one.provider_id.rpartition("/")[2] in spared}
    return tuple(_without(actions, spared, nodes))


def _without(actions: Iterable[Action], spared: Collection[str], nodes: set[str]) -> Iterator[Action]:
    for one in actions:
        if isinstance(one, TerminateInstances) and one.why == NO_CLAIM:
            left = tuple(each for each in one.instance_ids if each not in spared)
            if left:
                yield msgspec.structs.replace(one, instance_ids=left)
        elif not (isinstance(one, DeleteObject) and one.kind == "Node" and one.why == NO_CLAIM and one.name in nodes):
            yield one


def _may_have_a_claim(instance: Instance, cluster: Cluster, kube: Kube) -> bool:
    for name in sorted({*_tagged(instance), *_written(instance, cluster)}):
        try:
            claim = msgspec.json.decode(kube.read(path_of("NodeClaim", name)), type=_Claim)
        except Gone:
            continue
        except (Fault, msgspec.DecodeError):
            return True
        known = claim.status.provider_id if claim.status is not None else ""
        if known in ("", instance.provider_id):
            return True
    return False


def _tagged(instance: Instance) -> Iterator[str]:
    if name := instance.tag(NODE_CLAIM_TAG):
        yield name


def _written(instance: Instance, cluster: Cluster) -> Iterator[str]:
    """Answer the claims that the launch which started *instance* was for: one, once EC2's answer is known."""
    group = next((one for one in cluster.launch_groups if one.name == instance.tag(LAUNCH_GROUP)), None)
    if group is None:
        return
    if group.result is None:
        yield from group.claims
        return
    given = zip(group.claims, sorted(group.result.instances), strict=False)
    yield from (name for name, one in given if one.instance_id == instance.instance_id)
