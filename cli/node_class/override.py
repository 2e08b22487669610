"""Approvals and rejections of an operator are annotations of EC2NodeClasses, where the functions read them."""

import json
from datetime import datetime
from itertools import chain
from typing import Any, Final

import msgspec

from cli.cluster.live_cluster import read_live_cluster
from cli.cluster.writable_client import ReadWriteKube
from cli.terminal.errors import InputError
from shared.errors import Conflict, Fault
from shared.model.core.formatting import join_names
from shared.model.core.labels import CANARY_APPROVED, CANARY_REJECTED
from shared.model.karpenter.health.canary import parse_canary_settings, parse_canary_state
from shared.model.karpenter.node_class import EC2NodeClass
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

NODE_CLASS_LISTINGS: Final = tuple(kind for kind in RESOURCE_KINDS if kind.field == "node_classes")
MAX_WRITE_ATTEMPTS: Final = 5
"""Number of attempts if other clients write the object at the same time."""
NODE_CLASS_PATH: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


def read_node_classes(kube: ReadWriteKube, cluster_name: str, now: datetime) -> tuple[EC2NodeClass, ...]:
    """Return the EC2NodeClasses of the cluster.

    Raises:
        InputError: they cannot be read.
    """
    cluster, notes = read_live_cluster(kube, now, cluster_name, NODE_CLASS_LISTINGS)
    messages = [
        *notes,
        *(f"{problem.kind} {problem.name}: {problem.message}" for problem in cluster.problems if problem.name == "*"),
    ]
    if messages:
        raise InputError("; ".join(messages))
    return cluster.node_classes


def choose_node_classes(
    node_classes: tuple[EC2NodeClass, ...], names: list[str], identity: str
) -> tuple[EC2NodeClass, ...]:
    """Return the EC2NodeClasses *names*; without names, those that know *identity*, an image or a hash.

    Raises:
        InputError: a name does not exist, or no class knows *identity*.
    """
    existing_names = sorted(node_class.name for node_class in node_classes)
    for name in names:
        if name not in existing_names:
            raise InputError(
                f"EC2NodeClass {name} does not exist; existing EC2NodeClasses: {join_names(existing_names) or 'none'}"
            )
    matching_classes = tuple(
        node_class
        for node_class in node_classes
        if (node_class.name in names if names else identity in list_identities(node_class))
    )
    if not matching_classes:
        identities = sorted({*chain.from_iterable(map(list_identities, node_classes))})
        raise InputError(
            f"no EC2NodeClass has {identity}; existing images and hashes: {join_names(identities, 20) or 'none'}; "
            "for another one, name the EC2NodeClass with --nodeclass"
        )
    return matching_classes


def list_identities(node_class: EC2NodeClass) -> set[str]:
    """Return the images and hashes that *node_class* uses, tests, or has a result for."""
    state = parse_canary_state(node_class)
    images = (*node_class.resolved_images, *state.previous_images)
    trials = (trial for trial in (*state.trials, state.configuration_trial) if trial is not None)
    return {
        *(image.image_id for image in images),
        *(trial.identity for trial in trials),
        *state.verdicts,
        node_class.spec_hash,
        state.good_hash,
    } - {""}


def write_override(kube: ReadWriteKube, name: str, identity: str, *, is_approved: bool) -> None:
    """Add *identity* to the approved or to the rejected ones of EC2NodeClass *name*, and remove it from the others.

    Raises:
        InputError: the class cannot be read or written.
    """
    path = f"{NODE_CLASS_PATH}/{name}"
    for attempts_left in reversed(range(MAX_WRITE_ATTEMPTS)):
        try:
            meta = msgspec.json.decode(kube.read(path), type=_Object).metadata
            kube.patch(path, _build_patch(meta, identity, is_approved=is_approved))
        except Conflict:
            if not attempts_left:
                raise InputError(f"EC2NodeClass {name}: other clients keep changing it: try again") from None
        except Fault as fault:
            raise InputError(f"EC2NodeClass {name}: {fault}: you need the permissions get and patch on it") from None
        else:
            return


def build_document(node_class: EC2NodeClass) -> dict[str, Any]:
    """Return the JSON and YAML output of one class."""
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    trials = [trial for trial in (*state.trials, state.configuration_trial) if trial is not None]
    return {
        "name": node_class.name,
        "amis": [image.image_id for image in node_class.resolved_images],
        "testing": sorted(trial.identity for trial in trials),
        "approved": sorted(settings.approved),
        "rejected": sorted(settings.rejected),
    }


def _build_patch(meta: _Meta, identity: str, *, is_approved: bool) -> bytes:
    annotations: dict[str, str | None] = {}
    for key, has_identity in ((CANARY_APPROVED, is_approved), (CANARY_REJECTED, not is_approved)):
        words = {word.strip() for word in meta.annotations.get(key, "").split(",") if word.strip()} - {identity}
        text = ",".join(sorted(words | {identity} if has_identity else words))
        if text != meta.annotations.get(key, ""):
            annotations[key] = text or None
    return json.dumps({"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}).encode()
