"""What pods say to Karpenter, in Pods and in everything that makes them; the rest of them is left as it is."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from cli.conversion.metadata import ANNOTATIONS, RENAMED, renamed_annotation, renamed_label
from cli.conversion.remarks import Path, Remarks
from shared.model.labels import DISRUPTED_TAINT

Object = dict[str, Any]
_TEMPLATE: Final = ("spec", "template")
PODS: Final[dict[str, Path]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "Deployment": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "Rollout": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind has a pod."""
_OLD_LABELS: Final = ("karpenter.sh/provisioner-name", "node.k8s.aws/capacity-type")
_OLD_TAINT: Final = "karpenter.sh/disruption"
_KNOWN: Final = frozenset((*ANNOTATIONS, *ANNOTATIONS.values()))


def converted(value: Object, remarks: Remarks) -> Object:
    """Answer *value* with today's annotations and labels; *value* itself if there is nothing to change, or no pod."""
    if value["kind"] not in PODS:
        for where, message in _unread(value):
            remarks.warn(where, message)
        return value
    path = PODS[value["kind"]]
    if not isinstance(_at(value, path), dict):
        return value
    new = deepcopy(value)
    pod = _at(new, path)
    _annotations(pod, path, remarks)
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _selector(spec, (*path, "spec", "nodeSelector"), remarks)
        _tolerations(spec, (*path, "spec", "tolerations"), remarks)
        for where, holder, key in _keys(spec, (*path, "spec")):
            holder[key] = renamed_label(holder[key], where, remarks)
    return value if new == value else new


def _unread(value: Object) -> Iterator[tuple[Path, str]]:
    """Iterate over what an older Karpenter read in *value*, of a kind that is left as it is, and nobody reads now."""
    for path, key in _names(value, ()):
        now = ANNOTATIONS.get(key) or RENAMED[key]
        yield path, f"{key} is called {now} now, and {value['kind']} is passed as it is: write the new name yourself"


def _names(value: Any, path: Path) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from _names(one, (*path, place))
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in ANNOTATIONS or key in _OLD_LABELS:
                yield (*path, key), key
            yield from _names(one, (*path, key))


def _at(value: Any, path: Path) -> Any:  # noqa: ANN401 - JSON
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _annotations(pod: Object, path: Path, remarks: Remarks) -> None:
    meta = pod.get("metadata")
    notes = meta.get("annotations") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(notes, dict):
        return
    where = (*path, "metadata", "annotations")
    new: Object = {}
    for key, value in notes.items():
        name = renamed_annotation(str(key), (*where, key), remarks)
        if name in _KNOWN and isinstance(value, bool):
            remarks.changed((*where, key), f'the API server takes texts only, so it is quoted: "{str(value).lower()}"')
            value = str(value).lower()  # noqa: PLW2901 - the same value, quoted
        new[name] = value
    meta["annotations"] = new


def _selector(spec: Object, path: Path, remarks: Remarks) -> None:
    old = spec.get("nodeSelector")
    if isinstance(old, dict) and not old.keys().isdisjoint(RENAMED):
        spec["nodeSelector"] = {renamed_label(key, (*path, key), remarks): value for key, value in old.items()}


def _tolerations(spec: Object, path: Path, remarks: Remarks) -> None:
    """Who tolerated the taint of a node that is to go still does."""
    some = spec.get("tolerations")
    if not isinstance(some, list):
        return
    for place, one in enumerate(some):
        if isinstance(one, dict) and one.get("key") == _OLD_TAINT:
            remarks.changed((*path, place), f"the taint {_OLD_TAINT} is called {DISRUPTED_TAINT} now, and has no value")
            kept = {key: value for key, value in one.items() if key not in ("value", "operator")}
            some[place] = kept | {"key": DISRUPTED_TAINT, "operator": "Exists"}


def _keys(value: Any, path: Path) -> Iterator[tuple[Path, Any, str]]:  # noqa: ANN401 - JSON
    """Iterate over what names a label of nodes: affinity's expressions, topology keys."""
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from _keys(one, (*path, place))
    elif isinstance(value, dict):
        for key, one in value.items():
            if (
                isinstance(one, str)
                and one in RENAMED
                and (key == "topologyKey" or (key == "key" and "operator" in value))
            ):
                yield (*path, key), value, key
            else:
                yield from _keys(one, (*path, key))
