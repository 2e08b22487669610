"""Deployments and their like -> the pods that their controllers would make.

A manifest says what will be there, before anybody has applied it. Pods that a workload has already are among the
objects themselves, or in the live cluster; only those that are missing are made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any, Final

import msgspec

from shared.model.selectors import LabelSelector, selector
from shared.snapshot import wire_core
from shared.snapshot.core import selector_from_wire

Object = dict[str, Any]
Existing = Callable[[str, LabelSelector], int]
"""Answers how many pods of a namespace a selector means."""
MOST: Final = 100_000
"""Pods of one workload: no cluster holds more."""
_JOB_NAME: Final = "batch.kubernetes.io/job-name"
KINDS: Final = {
    ("apps/v1", "Deployment"): "replicas",
    ("apps/v1", "ReplicaSet"): "replicas",
    ("apps/v1", "StatefulSet"): "replicas",
    ("v1", "ReplicationController"): "replicas",
    ("batch/v1", "Job"): "parallelism",
}
"""Where each says how many pods it wants."""


class Unusable(ValueError):
    """A workload of which no pod can be made; the message names the field and the remedy."""


def is_workload(one: Mapping[str, Any]) -> bool:
    """Whether *one* is of a kind that makes pods."""
    return (one.get("apiVersion"), one.get("kind")) in KINDS


def made_by(one: Object, existing: Existing) -> tuple[Object, ...]:
    """Answer what the controller of the workload *one* would still make: its volume claims, then its pods.

    Raises:
        Unusable: nothing can be made of it.
    """
    meta, spec = _part(one, "metadata"), _part(one, "spec")
    template = _part(spec, "template")
    if not isinstance(template.get("spec"), dict):
        raise Unusable("spec.template.spec: is missing: write the pod that it is to make")
    if _is_owned(meta) or _is_over(one):
        return ()
    wanted = _wanted(one)
    labels = _labels(one, _part(template, "metadata"))
    owner = {key: one.get(key) for key in ("apiVersion", "kind")} | {"name": meta["name"], "controller": True}
    namespace = str(meta.get("namespace") or "default")
    there = existing(namespace, _selector(one))
    place = {"namespace": namespace, "ownerReferences": [owner]}
    numbers = count(0 if one["kind"] == "StatefulSet" else 1)
    made: list[Object] = []
    for number in islice(numbers, there, max(wanted, there)):
        name = f"{meta['name']}-{number}"
        claims = list(_claims(spec, name, namespace))
        annotations = _part(_part(template, "metadata"), "annotations")
        made += claims
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": place | {"name": name, "labels": labels, "annotations": annotations},
                "spec": _with_claims(template["spec"], claims),
            }
        )
    return tuple(made)


def _wanted(one: Object) -> int:
    field = KINDS[one["apiVersion"], one["kind"]]
    spec = one["spec"]
    number = spec.get(field)
    number = 1 if number is None else number
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Unusable(f"spec.{field}: is no count of pods: {number!r}: write a whole number, zero or more")
    if number > MOST:
        raise Unusable(f"spec.{field}: {number} pods are more than any cluster holds: write at most {MOST}")
    total = spec.get("completions")
    return min(number, total) if isinstance(total, int) and one["kind"] == "Job" else number


def _labels(one: Object, meta: Object) -> dict[str, str]:
    own = _part(meta, "labels")
    return own | {_JOB_NAME: one["metadata"]["name"]} if one["kind"] == "Job" else own


def _selector(one: Object) -> LabelSelector:
    said = one["spec"].get("selector")
    if one["kind"] == "Job" and said is None:
        return selector({_JOB_NAME: one["metadata"]["name"]})
    try:
        if one["kind"] == "ReplicationController":
            own = _part(_part(one["spec"], "template"), "metadata").get("labels")
            return selector(msgspec.convert(said or own or {}, dict[str, str]))
        found = selector_from_wire("spec.selector", msgspec.convert(said, wire_core.LabelSelector | None))
    except ValueError as error:
        raise Unusable(f"spec.selector: {error}: write matchLabels") from None
    if found is None or not found.expressions:
        raise Unusable("spec.selector: is missing: write matchLabels, the labels of spec.template")
    return found


def _is_owned(meta: Mapping[str, Any]) -> bool:
    """Whether another workload, which speaks for it, owns it."""
    owners = meta.get("ownerReferences")
    some = owners if isinstance(owners, list) else []
    return any(isinstance(owner, dict) and owner.get("kind") == "Deployment" for owner in some)


def _is_over(one: Mapping[str, Any]) -> bool:
    return _part(one, "spec").get("suspend") is True or bool(_part(one, "status").get("completionTime"))


def _claims(spec: Mapping[str, Any], pod: str, namespace: str) -> Iterator[Object]:
    templates = spec.get("volumeClaimTemplates")
    for one in templates if isinstance(templates, list) else []:
        volume = _part(one, "metadata").get("name")
        if isinstance(volume, str):
            meta = {"name": f"{volume}-{pod}", "namespace": namespace}
            yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": _part(one, "spec")}


def _with_claims(spec: Object, claims: Iterable[Object]) -> Object:
    names = [one["metadata"]["name"] for one in claims]
    if not names:
        return spec
    own = spec.get("volumes")
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return spec | {"volumes": [*(own if isinstance(own, list) else []), *added]}


def _part(one: object, key: str) -> Object:
    found = one.get(key) if isinstance(one, dict) else None
    return found if isinstance(found, dict) else {}
