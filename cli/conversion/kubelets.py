"""The kubelet's configuration: of the pool in older APIs, of the node class now."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.parts import Part
from cli.conversion.remarks import Path
from cli.conversion.remedies import hours
from shared.model.units import parse_quantity

Object = dict[str, Any]
_TABLES: Final = ("systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod")
_NUMBERS: Final = (
    "maxPods",
    "podsPerCore",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
)
_RESERVED: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_SHORT: Final = {
    "storage": "ephemeral-storage",
    "disk": "ephemeral-storage",
    "pids": "pid",
    "memory": "memory.available",
}
_SHARE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
_WHOLE: Final = 100


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
    for path, why in kubelet_faults(new):
        part.remarks.refuse(part.at(*path), why)
    part.end()
    return new or None


def _runtime(part: Part) -> None:
    runtime, path = part.text("containerRuntime"), part.at("containerRuntime")
    if runtime.lower() == "containerd":
        part.remarks.changed(path, "left out: every image runs containerd")
    elif runtime:
        part.remarks.refuse(path, f"{runtime} is on no image that EKS supports: remove it, nodes run containerd")


def kubelet_faults(config: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Iterate over what no kubelet would start with: where in *config*, why and a remedy."""
    if not isinstance(servers := config.get("clusterDNS", []), list):
        yield ("clusterDNS",), f'is no list: write clusterDNS: ["{servers}"]'
    for name in _NUMBERS:
        if isinstance(number := config.get(name), int) and number < 0:
            yield (name,), f"is {number}: write 0 or more"
    for field in ("systemReserved", "kubeReserved"):
        for key, text in _table(config, field):
            yield from _amount((field, key), text, _RESERVED)
    for field in ("evictionHard", "evictionSoft"):
        for key, text in _table(config, field):
            yield from _share((field, key), text)
    for key, text in _table(config, "evictionSoftGracePeriod"):
        if hours(text) != text and not re.fullmatch(r"([0-9]+(\.[0-9]+)?(h|m|s|ms))+", text):
            yield ("evictionSoftGracePeriod", key), f"is {text!r}, which is no duration: write {hours(text) or '90s'}"
    yield from _graces(config)


def _table(config: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    table = config.get(field)
    yield from ((str(key), str(text)) for key, text in table.items()) if isinstance(table, Mapping) else ()


def _amount(path: Path, text: str, known: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    key = str(path[-1])
    if key not in known:
        close = [_SHORT[key]] if _SHORT.get(key) in known else get_close_matches(key, known, n=1)
        yield path, f"did you mean {close[0]}?" if close else f"nothing is called {key} here: write {', '.join(known)}"
        return
    try:
        amount = parse_quantity(text)
    except ValueError:
        yield path, f"is {text!r}: write an amount, as 100m or 200Mi"
        return
    if amount < 0:
        yield path, f"is {text}: write 0 or more"


def _share(path: Path, text: str) -> Iterator[tuple[Path, str]]:
    share = _SHARE.fullmatch(text)
    if share is not None and float(share[1]) > _WHOLE:
        yield path, f"is {text}: write 100% at most"
    yield from _amount(path, "0" if share is not None else text, _SIGNALS)


def _graces(config: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    soft, graces = (dict(_table(config, field)) for field in ("evictionSoft", "evictionSoftGracePeriod"))
    for signal in sorted(soft.keys() ^ graces.keys()):
        field, other = ("evictionSoft", "evictionSoftGracePeriod")[:: 1 if signal in soft else -1]
        yield (field, signal), f"has no counterpart in {other}: write one"
    high, low = config.get("imageGCHighThresholdPercent"), config.get("imageGCLowThresholdPercent")
    if isinstance(high, int) and isinstance(low, int) and high <= low:
        yield ("imageGCHighThresholdPercent",), f"is {high}: it has to be above the low one, {low}"
