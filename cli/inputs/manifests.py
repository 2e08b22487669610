"""Manifests -> the objects to plan with, problems with other objects, and the kinds that are ignored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from cli.inputs.documents import InputDocument
from cli.inputs.files import ErrorReporter
from cli.inputs.workload_pods import (
    REPLICAS_FIELD_BY_KIND,
    JsonObject,
    PodCounter,
    Unusable,
    build_workload_objects,
    is_workload,
)
from shared.model.core.formatting import format_count
from shared.model.core.selectors import LabelSelector
from shared.take.kubernetes.optional_resources import DEVICE_LISTS, OPTIONAL_KINDS
from shared.take.kubernetes.page_decoding import format_missing_name
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.manifests.documents import DocumentSource

_PLANNING_KINDS: Final = frozenset(listing.kind for listing in RESOURCE_KINDS) | {
    kind for _, kind in REPLICAS_FIELD_BY_KIND
}
_DEVICE_KINDS: Final = frozenset(listing.kind for listing in OPTIONAL_KINDS if listing.field in DEVICE_LISTS)
_FEATURE_KINDS: Final = frozenset(listing.kind for listing in OPTIONAL_KINDS) - _DEVICE_KINDS
_API_BY_KIND: Final = {listing.kind: listing.api_version for listing in (*RESOURCE_KINDS, *OPTIONAL_KINDS)} | {
    kind: api for api, kind in REPLICAS_FIELD_BY_KIND
}
_NAMESPACED_KINDS: Final = frozenset(
    (
        *("Pod", "DaemonSet", "PersistentVolumeClaim", "PodDisruptionBudget"),
        *("ResourceClaim", "ResourceClaimTemplate"),
    )
)
_KARPENTER_KINDS: Final = frozenset(
    ("Provisioner", "AWSNodeTemplate", "Machine", "NodePool", "NodeClaim", "EC2NodeClass")
)
_FINISHED_PHASES: Final = ("Succeeded", "Failed")
_API_GROUPS: Final = frozenset(api.partition("/")[0] for api in _API_BY_KIND.values())
_NO_NAME: Final = format_missing_name()
_MIN_SIMILARITY_RATIO: Final = 0.9


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """Objects parsed from manifests."""

    objects: tuple[DocumentSource, ...]
    """The objects to plan with, in input order; objects that workloads create come last."""
    locations: Mapping[tuple[str, str], str]
    """Location of each object, by kind and name (``shop/cart``)."""
    notes: tuple[str, ...] = ()
    """Information about the input that needs no correction."""
    workload_by_pod: Mapping[str, tuple[str, str]] = {}
    """Kind and name of the workload of each pod that was created from a workload's template."""


def parse_manifests(
    documents: Iterable[InputDocument],
    report_error: ErrorReporter,
    running_labels: Mapping[str, list[Mapping[str, str]]],
    *,
    are_features_on: bool = False,
    are_devices_on: bool = False,
) -> Manifests:
    """Sort the objects in *documents* by use; problems with objects are passed to *report_error*.

    *running_labels*: labels of the pods that are already in the cluster, by namespace. Optional kinds are used only if
    *are_features_on*, those of dynamic resource allocation only if *are_devices_on*.
    """
    unused_kinds: Counter[str] = Counter()
    document_by_key: dict[tuple[str, str, str], InputDocument] = {}
    for number, document in enumerate(documents):
        if _is_relevant(document, report_error, unused_kinds):
            _add_document(_set_generated_name(document, number), number, document_by_key, report_error)
    count_pods = _build_pod_counter((document.value for document in document_by_key.values()), running_labels)
    expanded_objects, notes = _expand_workloads(document_by_key, count_pods, report_error)
    for kind in (*(_FEATURE_KINDS if are_features_on else ()), *(_DEVICE_KINDS if are_devices_on else ())):
        del unused_kinds[kind]
    unused_kinds = +unused_kinds
    if unused_kinds:
        kinds = ", ".join(format_count(number, kind) for kind, number in sorted(unused_kinds.items()))
        notes.append(f"ignored, because scheduling does not depend on it: {kinds}")
    return Manifests(
        objects=(*(document.source for document in document_by_key.values()), *expanded_objects),
        locations={
            (str(document.value["kind"]), _get_problem_name(document.value)): document.location
            for document in document_by_key.values()
        },
        notes=tuple(notes),
        workload_by_pod={
            _get_name(item): (owner["kind"], f"{item['metadata']['namespace']}/{owner['name']}")
            for item in expanded_objects
            for owner in item["metadata"].get("ownerReferences", ())
        },
    )


def _is_relevant(document: InputDocument, report_error: ErrorReporter, unused_kinds: Counter[str]) -> bool:
    """Return whether *document* is of a kind that is used; if its kind is a likely mistake, that is reported."""
    api, kind = (document.value.get(key) for key in ("apiVersion", "kind"))
    if "instanceTypes" in document.value:
        report_error(f"{document.location}: is a catalog: name it with --instance-types instead of -f")
        return False
    if not isinstance(kind, str) or not kind:
        report_error(f"{document.location}: kind: missing: write for example `kind: Pod`")
        return False
    if _API_BY_KIND.get(kind) == api or (kind in _KARPENTER_KINDS and "karpenter" in str(api)):
        unused_kinds[kind] += kind not in _PLANNING_KINDS and kind not in _KARPENTER_KINDS
        return True
    likely_kind = "" if _is_foreign_api(str(api or "")) else _find_likely_kind(kind)
    if not likely_kind:
        unused_kinds[kind] += 1
        return False
    if likely_kind != kind:
        message = f"kind: unknown: did you mean {likely_kind}?"
    elif api:
        message = f"apiVersion: {api} is not supported: convert it to {_API_BY_KIND[kind]}"
    else:
        message = f"apiVersion: missing: write `apiVersion: {_API_BY_KIND[kind]}`"
    report_error(f"{document.location}: {kind} {_get_name(document.value)}: {message}")
    return False


def _is_foreign_api(api: str) -> bool:
    """Return whether *api* belongs to another vendor's API extension."""
    group = api.partition("/")[0]
    return "." in group and group not in _API_GROUPS


def _find_likely_kind(kind: str) -> str:
    """Return the known kind that *kind* probably means; "" if there is none."""
    if kind in _API_BY_KIND:
        return kind
    kind_by_lowercase = {known_kind.lower(): known_kind for known_kind in _API_BY_KIND}
    close_names = get_close_matches(kind.lower(), sorted(kind_by_lowercase), n=1, cutoff=_MIN_SIMILARITY_RATIO)
    return kind_by_lowercase[close_names[0]] if close_names else ""


def _set_generated_name(document: InputDocument, number: int) -> InputDocument:
    """Return *document* with the name that the API server would generate for it."""
    meta = document.value.get("metadata")
    if not isinstance(meta, dict) or meta.get("name") or not isinstance(meta.get("generateName"), str):
        return document
    named_meta = meta | {"name": f"{meta['generateName']}{number}"}
    return InputDocument(location=document.location, value=document.value | {"metadata": named_meta})


def _add_document(
    document: InputDocument,
    number: int,
    document_by_key: dict[tuple[str, str, str], InputDocument],
    report_error: ErrorReporter,
) -> None:
    """Add *document*; of two objects with the same name the last is kept, and it is reported if they differ."""
    kind, name = str(document.value["kind"]), _get_name(document.value)
    key = (str(document.value.get("apiVersion")), kind, f"{name} {number}" if name == _NO_NAME else name)
    previous = document_by_key.pop(key, None)
    document_by_key[key] = document
    if previous is None or previous.is_same_as(document) or _is_same_object(previous.value, document.value):
        return
    report_error(
        f"{document.location}: {kind} {name}: metadata.name: replaces a different {kind} of the same name at "
        f"{previous.location}: rename or remove one of them"
    )


def _is_same_object(before: JsonObject, after: JsonObject) -> bool:
    """Return whether both are the same live object, read at two times."""
    uids = [version["metadata"].get("uid") for version in (before, after) if isinstance(version.get("metadata"), dict)]
    return len(set(uids)) == 1 and bool(uids[0])


def _get_name(manifest: Mapping[str, Any]) -> str:
    meta = manifest.get("metadata")
    name, namespace = (meta.get(key) if isinstance(meta, dict) else None for key in ("name", "namespace"))
    if not isinstance(name, str) or not name:
        return _NO_NAME
    is_namespaced = manifest.get("kind") in _NAMESPACED_KINDS or is_workload(manifest)
    return f"{namespace or 'default'}/{name}" if is_namespaced else name


def _get_problem_name(manifest: Mapping[str, Any]) -> str:
    """Return the name that problems use for *manifest*."""
    name, meta = _get_name(manifest), manifest.get("metadata")
    if name == _NO_NAME and manifest.get("kind") in _NAMESPACED_KINDS and isinstance(meta, dict):
        return format_missing_name(str(meta.get("namespace") or "default"))
    return name


def _expand_workloads(
    document_by_key: dict[tuple[str, str, str], InputDocument], existing: PodCounter, report_error: ErrorReporter
) -> tuple[list[JsonObject], list[str]]:
    """Return the objects that workloads create, and a note; workloads that cannot be expanded are dropped."""
    expanded_objects: list[JsonObject] = []
    pod_count_by_title: dict[str, int] = {}
    for key, document in list(document_by_key.items()):
        if not is_workload(document.value):
            continue
        title = f"{document.value['kind']} {_get_name(document.value)}"
        try:
            workload_objects = build_workload_objects(document.value, existing)
        except Unusable as error:
            report_error(f"{document.location}: {title}: {error}")
            del document_by_key[key]
            continue
        expanded_objects += workload_objects
        pod_count_by_title[title] = sum(workload_object["kind"] == "Pod" for workload_object in workload_objects)
    summaries = [f"{title} ({number})" for title, number in pod_count_by_title.items() if number]
    pods_text = format_count(sum(pod_count_by_title.values()), "pod")
    return expanded_objects, [f"{pods_text} created from templates: {', '.join(summaries)}"] if summaries else []


def _build_pod_counter(
    objects: Iterable[JsonObject], running_labels: Mapping[str, list[Mapping[str, str]]]
) -> PodCounter:
    """Return a function that counts matching pods, in *objects* and among the pods that already run."""
    labels_by_namespace = {namespace: list(labels) for namespace, labels in running_labels.items()}
    for namespace, labels in _list_active_pod_labels(objects):
        labels_by_namespace.setdefault(namespace, []).append(labels)

    def count_pods(namespace: str, selector: LabelSelector) -> int:
        return sum(selector.is_match(labels) for labels in labels_by_namespace.get(namespace, ()))

    return count_pods


def _list_active_pod_labels(objects: Iterable[JsonObject]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for manifest in objects:
        meta, status = manifest.get("metadata"), manifest.get("status")
        if manifest["kind"] != "Pod" or not isinstance(meta, dict) or meta.get("deletionTimestamp"):
            continue
        if isinstance(status, dict) and status.get("phase") in _FINISHED_PHASES:
            continue
        labels = meta.get("labels")
        yield str(meta.get("namespace") or "default"), labels if isinstance(labels, dict) else {}
