"""Conversion of Deployments and other workloads to the pods that their controllers would create.

This makes it possible to plan for manifests before they are applied. Existing pods of a workload are among the objects
themselves or in the live cluster; only the missing pods are created.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any, Final

import msgspec

from shared.model.core.selectors import LabelSelector, build_label_selector
from shared.wire.decode.core import parse_label_selector_json
from shared.wire.schema import core

JsonObject = dict[str, Any]
PodCounter = Callable[[str, LabelSelector], int]
"""Returns how many pods of a namespace match a selector."""
MAX_PODS_PER_WORKLOAD: Final = 100_000
"""Upper limit for the pods of one workload."""
_JOB_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
REPLICAS_FIELD_BY_KIND: Final = {
    ("apps/v1", "Deployment"): "replicas",
    ("apps/v1", "ReplicaSet"): "replicas",
    ("apps/v1", "StatefulSet"): "replicas",
    ("v1", "ReplicationController"): "replicas",
    ("batch/v1", "Job"): "parallelism",
}
"""The field with the number of pods, by kind."""


class Unusable(ValueError):
    """A workload from which no pod can be created; the message names the field and the fix."""


def is_workload(workload: Mapping[str, Any]) -> bool:
    """Return whether *workload* is of a kind that creates pods."""
    return (workload.get("apiVersion"), workload.get("kind")) in REPLICAS_FIELD_BY_KIND


def build_workload_objects(workload: JsonObject, count_pods: PodCounter) -> tuple[JsonObject, ...]:
    """Return the objects that the controller of *workload* would still create: volume claims and pods.

    Raises:
        Unusable: the workload is invalid.
    """
    meta, spec = _get_object(workload, "metadata"), _get_object(workload, "spec")
    template = _get_object(spec, "template")
    if not isinstance(meta.get("name"), str) or not meta["name"]:
        raise Unusable("metadata.name: missing")
    if not isinstance(template.get("spec"), dict):
        raise Unusable("spec.template.spec: missing: write the pod template")
    if _is_owned(meta) or _is_finished(workload):
        return ()
    replica_count = _read_replica_count(workload)
    template_metadata = _get_object(template, "metadata")
    owner = {key: workload.get(key) for key in ("apiVersion", "kind")} | {"name": meta["name"], "controller": True}
    namespace = str(meta.get("namespace") or "default")
    existing_pods = count_pods(namespace, _read_selector(workload))
    common_metadata = {
        "namespace": namespace,
        "ownerReferences": [owner],
        "labels": _build_pod_labels(workload, template_metadata),
        "annotations": _get_object(template_metadata, "annotations"),
    }
    numbers = count(0 if workload["kind"] == "StatefulSet" else 1)
    new_objects: list[JsonObject] = []
    for number in islice(numbers, existing_pods, max(replica_count, existing_pods)):
        name = f"{meta['name']}-{number}"
        claims = list(_build_volume_claims(spec, name, namespace))
        pod_spec = _with_claims(template["spec"], claims)
        new_objects += claims
        pod_metadata = common_metadata | {"name": name}
        new_objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": pod_spec})
    return tuple(new_objects)


def _read_replica_count(workload: JsonObject) -> int:
    field = REPLICAS_FIELD_BY_KIND[workload["apiVersion"], workload["kind"]]
    spec = workload["spec"]
    number = spec.get(field)
    number = 1 if number is None else number
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Unusable(f"spec.{field}: {number!r} is not a number of pods: write 0 or more")
    if number > MAX_PODS_PER_WORKLOAD:
        raise Unusable(f"spec.{field}: {number} pods are too many: write at most {MAX_PODS_PER_WORKLOAD}")
    total = spec.get("completions")
    return min(number, total) if isinstance(total, int) and workload["kind"] == "Job" else number


def _build_pod_labels(workload: JsonObject, meta: JsonObject) -> dict[str, str]:
    labels = _get_object(meta, "labels")
    return labels | {_JOB_NAME_LABEL: workload["metadata"]["name"]} if workload["kind"] == "Job" else labels


def _read_selector(workload: JsonObject) -> LabelSelector:
    selector_json = workload["spec"].get("selector")
    if workload["kind"] == "Job" and selector_json is None:
        return build_label_selector({_JOB_NAME_LABEL: workload["metadata"]["name"]})
    try:
        if workload["kind"] == "ReplicationController":
            template_labels = _get_object(_get_object(workload["spec"], "template"), "metadata").get("labels")
            return build_label_selector(msgspec.convert(selector_json or template_labels or {}, dict[str, str]))
        label_selector = parse_label_selector_json(
            "spec.selector", msgspec.convert(selector_json, core.LabelSelectorJson | None)
        )
    except ValueError as error:
        raise Unusable(f"spec.selector: {error}: write matchLabels") from None
    if label_selector is None or not label_selector.expressions:
        raise Unusable("spec.selector: missing: write matchLabels with the labels of spec.template")
    return label_selector


def _is_owned(meta: Mapping[str, Any]) -> bool:
    """Return whether a Deployment owns the workload; its pods are then created for that Deployment."""
    owners = meta.get("ownerReferences")
    owner_list = owners if isinstance(owners, list) else []
    return any(isinstance(owner, dict) and owner.get("kind") == "Deployment" for owner in owner_list)


def _is_finished(workload: Mapping[str, Any]) -> bool:
    return _get_object(workload, "spec").get("suspend") is True or bool(
        _get_object(workload, "status").get("completionTime")
    )


def _build_volume_claims(spec: Mapping[str, Any], pod: str, namespace: str) -> Iterator[JsonObject]:
    templates = spec.get("volumeClaimTemplates")
    for claim_template in templates if isinstance(templates, list) else []:
        volume = _get_object(claim_template, "metadata").get("name")
        if isinstance(volume, str):
            meta, claim_spec = {"name": f"{volume}-{pod}", "namespace": namespace}, _get_object(claim_template, "spec")
            yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim_spec}


def _with_claims(spec: JsonObject, claims: Iterable[JsonObject]) -> JsonObject:
    names = [claim["metadata"]["name"] for claim in claims]
    if not names:
        return spec
    volumes = spec.get("volumes")
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return spec | {"volumes": [*(volumes if isinstance(volumes, list) else []), *added]}


def _get_object(parent: object, key: str) -> JsonObject:
    child = parent.get(key) if isinstance(parent, dict) else None
    return child if isinstance(child, dict) else {}
