"""The kubelet's configuration: of the pool in older APIs, of the node class now."""

from typing import Any, Final

from cli.conversion.parts import Part

Object = dict[str, Any]
_TABLES: Final = ("systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod")
_NUMBERS: Final = (
    "maxPods",
    "podsPerCore",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
)


def kubelet(part: Part | None) -> Object | None:
    """Answer `spec.kubelet` of the EC2NodeClass for *part*; None if that says nothing."""
    if part is None:
        return None
    new: Object = {}
    if part.has("clusterDNS"):
        new["clusterDNS"] = part.texts("clusterDNS")
    for name in _NUMBERS:
        if (number := part.number(name)) is not None:
            new[name] = number
    for name in _TABLES:
        if table := part.table(name):
            new[name] = table
    if (quota := part.flag("cpuCFSQuota")) is not None:
        new["cpuCFSQuota"] = quota
    _runtime(part)
    _graces(part, new)
    part.end()
    return new or None


def _runtime(part: Part) -> None:
    runtime, path = part.text("containerRuntime"), part.at("containerRuntime")
    if runtime == "containerd":
        part.remarks.changed(path, "left out: every image runs containerd")
    elif runtime:
        part.remarks.refuse(path, f"{runtime} is on no image that EKS supports: remove it, nodes run containerd")


def _graces(part: Part, new: Object) -> None:
    soft, graces = new.get("evictionSoft", {}), new.get("evictionSoftGracePeriod", {})
    for signal in sorted(soft.keys() ^ graces.keys()):
        field, other = ("evictionSoft", "evictionSoftGracePeriod")[:: 1 if signal in soft else -1]
        part.remarks.refuse(part.at(field, signal), f"has no counterpart in {other}: write one")
    high, low = new.get("imageGCHighThresholdPercent"), new.get("imageGCLowThresholdPercent")
    if high is not None and low is not None and high <= low:
        part.remarks.refuse(part.at("imageGCHighThresholdPercent"), f"is {high}: it has to be above the low one, {low}")
