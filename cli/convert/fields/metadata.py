"""Conversion of names, labels and annotations: without server-written fields, with current keys."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.reading.field_reader import MappingReader, choose_fix
from cli.convert.reading.missing_values import NAME
from cli.convert.reading.remarks import FieldPath, RemarkCollector
from shared.model.core.labels import DO_NOT_DISRUPT

JsonObject = dict[str, Any]
V1_LABEL_BY_OLD_LABEL: Final = {
    "karpenter.sh/provisioner-name": "karpenter.sh/nodepool",
    "node.k8s.aws/capacity-type": "karpenter.sh/capacity-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Old label keys with their current keys."""
V1_ANNOTATION_BY_OLD_ANNOTATION: Final = {
    "karpenter.sh/do-not-evict": "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-consolidate": "karpenter.sh/do-not-disrupt",
}
_CONTROLLER_ANNOTATIONS: Final = (
    "compatibility.karpenter.k8s.aws/kubelet-drift-hash",
    "compatibility.karpenter.sh/v1beta1-kubelet-conversion",
    "compatibility.karpenter.sh/v1beta1-nodeclass-reference",
    "karpenter.sh/stored-version-migrated",
    "karpenter.sh/emptiness-timestamp",
    "karpenter.sh/linked",
    "karpenter.sh/managed-by",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.sh/provisioner-hash",
    "karpenter.sh/voluntary-disruption",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    "karpenter.k8s.aws/nodetemplate-hash",
    "kubectl.kubernetes.io/last-applied-configuration",
)
"""Annotations that controllers and kubectl write for their own use."""
_SERVER_FIELDS: Final = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
_MIN_SIMILARITY_RATIO: Final = 0.75
_NON_LETTER: Final = re.compile(r"[^a-z]")
_NAME_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_NAME_LENGTH: Final = 63
"""In characters: the name is also used as the value of a label."""
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^a-z0-9.]+")


def convert_metadata(root: MappingReader) -> JsonObject:
    """Return the metadata of a cluster-scoped object, without the fields that the API server wrote."""
    metadata_reader = root.read_mapping("metadata", "name")
    if metadata_reader is None or not (
        name := metadata_reader.read_text("name") or metadata_reader.read_text("generateName")
    ):
        if metadata_reader is not None or not root.is_set("metadata"):
            return {"name": root.remarks.add_missing(("metadata", "name"), NAME)}
        return {}
    converted: JsonObject = {"name" if metadata_reader.has("name") else "generateName": name}
    if metadata_reader.has("name"):
        check_object_name(name, metadata_reader.get_path("name"), root.remarks)
    if metadata_reader.has("namespace"):
        root.remarks.add_change(
            metadata_reader.get_path("namespace"), "left out: the kind belongs to the cluster, not to a namespace"
        )
    labels, converted_annotations = metadata_reader.read_text_map("labels"), convert_annotations(metadata_reader)
    if labels:
        converted["labels"] = labels
    if converted_annotations:
        converted["annotations"] = converted_annotations
    for key in (*_SERVER_FIELDS, "generateName"):
        metadata_reader.read_raw(key)
    metadata_reader.refuse_unread_keys()
    return converted


def check_object_name(name: str, path: FieldPath, remarks: RemarkCollector) -> None:
    """Refuse a name that no API server accepts."""
    if len(name) > _MAX_NAME_LENGTH:
        remarks.add_refusal(path, f"{name} has {len(name)} letters: write {_MAX_NAME_LENGTH} at most")
    elif _NAME_PATTERN.fullmatch(name) is None:
        hint = f"write small letters, digits and hyphens: {_INVALID_NAME_CHARACTERS.sub('-', name.lower()).strip('-.')}"
        remarks.add_refusal(path, f"{name} is no name: {choose_fix(name, hint)}")


def convert_annotations(reader: MappingReader) -> dict[str, str]:
    """Return the annotations that *reader* reads, with their current keys."""
    converted: dict[str, str] = {}
    for key, value in reader.read_text_map("annotations").items():
        path = reader.get_path("annotations", key)
        if key in _CONTROLLER_ANNOTATIONS:
            reader.remarks.add_change(path, "left out: a controller, or kubectl, wrote it for itself")
            continue
        converted[convert_annotation_key(key, path, reader.remarks)] = value
    return converted


def convert_annotation_key(key: str, path: FieldPath, remarks: RemarkCollector) -> str:
    """Return the current spelling of *key*; add a warning if it looks misspelled."""
    current_key = V1_ANNOTATION_BY_OLD_ANNOTATION.get(key)
    if current_key is not None:
        explanation = ": it keeps a node from all disruption by choice, not from consolidation alone" * (
            "consol" in key
        )
        remarks.add_change(path, f"is called {current_key} now{explanation}")
        return current_key
    if suggestion := _suggest_annotation(key):
        remarks.add_warning(path, f"unknown annotation: did you mean {suggestion}?")
    return key


def _suggest_annotation(key: str) -> str:
    """Return the annotation that *key* is a misspelling of; "" if there is none."""
    domain, slash, name = key.rpartition("/")
    key_by_letters = {
        _NON_LETTER.sub("", annotation.rpartition("/")[2]): annotation
        for annotation in (*V1_ANNOTATION_BY_OLD_ANNOTATION, DO_NOT_DISRUPT)
    }
    if key in key_by_letters.values() or (slash and "arpenter" not in domain):
        return ""
    close = get_close_matches(_NON_LETTER.sub("", name.lower()), key_by_letters, n=1, cutoff=_MIN_SIMILARITY_RATIO)
    return key_by_letters[close[0]] if close else ""


def convert_label_key(key: str, path: FieldPath, remarks: RemarkCollector) -> str:
    """Return the current key of the label *key*."""
    current_key = V1_LABEL_BY_OLD_LABEL.get(key)
    if current_key is None:
        return key
    remarks.add_change(path, f"the label {key} is called {current_key} now")
    return current_key
