"""An EC2NodeClass and the account -> its status: subnets, security groups, images, profile, conditions.

What has to be asked is an answer of this room (`parameters_wanted`, the selectors in the spec); asking is done by the
catalog function; what the answers mean is decided here again.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.model.action import PatchStatus
from shared.model.conditions import conditions_json, rooted, with_condition
from shared.model.ec2 import Image, SecurityGroup, Subnet
from shared.model.labels import ARCH
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import condition
from shared.model.requirements import Requirement, Requirements, requirements, written

_GPU: Final = "karpenter.k8s.aws/instance-gpu-count"
_ACCELERATOR: Final = "karpenter.k8s.aws/instance-accelerator-count"
_ARCHES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_VARIANTS: Final = {
    "standard": (Requirement(key=_GPU), Requirement(key=_ACCELERATOR)),
    "nvidia": (Requirement(key=_GPU, complement=True),),
    "neuron": (Requirement(key=_ACCELERATOR, complement=True),),
}
_AL2023: Final = (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia")))
_ROOTS: Final = (
    "AMIsReady",
    "InstanceProfileReady",
    "SecurityGroupsReady",
    "SubnetsReady",
    "ValidationSucceeded",
)


class WantedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """An SSM parameter whose value is an image id, and which types that image is for besides its architecture."""

    name: str
    variants: tuple[str, ...]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the account answered for one node class; None: it could not be asked, so nothing is concluded."""

    subnets: tuple[Subnet, ...] | None
    security_groups: tuple[SecurityGroup, ...] | None
    images: tuple[tuple[Image, tuple[str, ...]], ...] | None
    """Images with the variants they are for; a term of the user's own has none: any type of the architecture."""


def parameters_wanted(node_class: EC2NodeClass, kubernetes_version: str) -> tuple[WantedParameter, ...]:
    """Answer the parameters behind the alias and the ssmParameter terms of *node_class*."""
    wanted: list[WantedParameter] = []
    for term in node_class.image_selectors:
        if term.ssm_parameter:
            wanted.append(WantedParameter(name=term.ssm_parameter, variants=()))
        elif term.alias:
            family, _, version = term.alias.partition("@")
            wanted.extend(_alias(family.lower(), version, kubernetes_version))
    return tuple(wanted)


def _alias(family: str, version: str, kubernetes: str) -> Iterable[WantedParameter]:
    base = "/aws/service/eks/optimized-ami"
    if family == "al2023":
        for arch, variants in _AL2023:
            for variant in variants:
                named = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
                which = "recommended" if version == "latest" else named
                name = f"{base}/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{which}/image_id"
                yield WantedParameter(name=name, variants=(variant,))
    elif family == "bottlerocket":
        which = version.lstrip("v")
        base = f"/aws/service/bottlerocket/aws-k8s-{kubernetes}"
        yield WantedParameter(name=f"{base}/x86_64/{which}/image_id", variants=("standard", "neuron"))
        yield WantedParameter(name=f"{base}/arm64/{which}/image_id", variants=("standard",))
        for arch in ("x86_64", "arm64"):
            yield WantedParameter(name=f"{base}-nvidia/{arch}/{which}/image_id", variants=("nvidia",))


def resolve(
    node_class: EC2NodeClass, found: Found, profile: str, now: datetime, problems: Iterable[str] = ()
) -> PatchStatus:
    """Answer the new status; what could not be asked stays as it was, unless the spec has changed since.

    *profile* is the instance profile that the stack made for nodes; a class that names its own keeps that.
    *problems* are what validation found wrong with the spec.
    """
    own_profile = node_class.instance_profile or profile
    status: dict[str, object] = {"instanceProfile": own_profile}
    if found.subnets is not None:
        status["subnets"] = [{"id": one.subnet_id, "zone": one.zone, "zoneID": one.zone_id} for one in found.subnets]
    if found.security_groups is not None:
        status["securityGroups"] = [{"id": one.group_id, "name": one.name} for one in found.security_groups]
    if found.images is not None:
        status["amis"] = _images(found.images, now)
    states = _states(found, own_profile, tuple(problems))
    status["conditions"] = _conditions(node_class, states, now)
    return PatchStatus(
        kind="EC2NodeClass",
        name=node_class.name,
        status=json.dumps(status, sort_keys=True),
        why=next((f"{kind}: {why}" for kind, (state, _, why) in sorted(states.items()) if state != "True"), "resolved"),
    )


def _images(images: Iterable[tuple[Image, tuple[str, ...]]], now: datetime) -> list[dict[str, object]]:
    """Answer status.amis: per set of requirements the best image, newest first, then by id."""
    best: dict[str, tuple[tuple[bool, datetime, str], Image, Requirements]] = {}
    for image, variants in images:
        if image.architecture not in _ARCHES:
            continue
        arch = Requirement(key=ARCH, values=frozenset((_ARCHES[image.architecture],)))
        for extra in [_VARIANTS[variant] for variant in variants] or [()]:
            wanted = requirements((arch, *extra))
            key = json.dumps(written(wanted))
            alive = image.deprecated_at is None or image.deprecated_at > now
            rank = (alive, image.created_at, image.name)
            if key not in best or rank > best[key][0]:
                best[key] = (rank, image, wanted)
    ordered = sorted(best.items(), key=lambda item: (-item[1][1].created_at.timestamp(), item[1][1].image_id, item[0]))
    return [
        {
            "id": image.image_id,
            "name": image.name,
            "requirements": written(wanted),
            **({} if rank[0] else {"deprecated": True}),
        }
        for _, (rank, image, wanted) in ordered
    ]


State = tuple[str, str, str]
"""Status, reason, message."""


def _states(found: Found, profile: str, problems: tuple[str, ...]) -> Mapping[str, State]:
    return {
        "SubnetsReady": _state(found.subnets, "SubnetsReady", "SubnetsNotFound", "spec.subnetSelectorTerms"),
        "SecurityGroupsReady": _state(
            found.security_groups, "SecurityGroupsReady", "SecurityGroupsNotFound", "spec.securityGroupSelectorTerms"
        ),
        "AMIsReady": _state(found.images, "AMIsReady", "AMINotFound", "spec.amiSelectorTerms"),
        "InstanceProfileReady": ("True", "InstanceProfileReady", "")
        if profile
        else (
            "False",
            "InstanceProfileNotFound",
            "spec.role: the stack made no instance profile for it: deploy with this role, or set spec.instanceProfile",
        ),
        "ValidationSucceeded": ("False", "ValidationFailed", "; ".join(problems))
        if problems
        else ("True", "ValidationSucceeded", ""),
    }


def _state(found: tuple[object, ...] | None, kind: str, missing: str, field: str) -> State:
    if found is None:
        return ("Unknown", "AwaitingReconciliation", f"{field}: EC2 could not be asked")
    if not found:
        return ("False", missing, f"{field} matched nothing in this account and region: check ids, names and tags")
    return ("True", kind, "")


def _conditions(node_class: EC2NodeClass, states: Mapping[str, State], now: datetime) -> list[dict[str, Any]]:
    some = node_class.conditions
    generation = node_class.meta.generation
    for kind, (status, reason, message) in sorted(states.items()):
        known = condition(some, kind)
        if status == "Unknown" and known is not None and known.observed_generation >= generation:
            continue
        some = with_condition(some, kind, status, reason, message, now=now, generation=generation)
    return conditions_json(rooted(some, _ROOTS, now, generation, node_class.meta.created_at))
