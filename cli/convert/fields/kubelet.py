"""Conversion of the kubelet configuration: part of the pool in older APIs, of the node class in v1."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.reading.field_reader import MappingReader
from cli.convert.reading.fixes import suggest_duration
from cli.convert.reading.remarks import FieldPath
from shared.model.core.units import parse_quantity

JsonObject = dict[str, Any]
_TABLE_FIELDS: Final = ("systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod")
_NUMBER_FIELDS: Final = (
    "maxPods",
    "podsPerCore",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
)
_RESERVED_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_EVICTION_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_NAME_BY_SHORT_NAME: Final = {
    "storage": "ephemeral-storage",
    "disk": "ephemeral-storage",
    "pids": "pid",
    "memory": "memory.available",
}
_PERCENTAGE_PATTERN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
_MAX_PERCENT: Final = 100


def convert_kubelet(reader: MappingReader | None) -> JsonObject | None:
    """Return `spec.kubelet` of the EC2NodeClass for the mapping that *reader* reads; None if it is empty."""
    if reader is None:
        return None
    converted: JsonObject = {}
    if reader.has("clusterDNS"):
        converted["clusterDNS"] = reader.read_texts("clusterDNS")
    for name in _NUMBER_FIELDS:
        if (number := reader.read_integer(name)) is not None:
            converted[name] = number
    for name in _TABLE_FIELDS:
        if table := reader.read_text_map(name):
            converted[name] = table
    if (has_cfs_quota := reader.read_boolean("cpuCFSQuota")) is not None:
        converted["cpuCFSQuota"] = has_cfs_quota
    _check_container_runtime(reader)
    for path, reason in find_kubelet_problems(converted):
        reader.remarks.add_refusal(reader.get_path(*path), reason)
    reader.refuse_unread_keys()
    return converted or None


def _check_container_runtime(reader: MappingReader) -> None:
    runtime, path = reader.read_text("containerRuntime"), reader.get_path("containerRuntime")
    if runtime.lower() == "containerd":
        reader.remarks.add_change(path, "removed: all images run containerd")
    elif runtime:
        reader.remarks.add_refusal(path, f"{runtime} is not supported by EKS images: remove it; nodes run containerd")


def find_kubelet_problems(config: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each setting in *config* that the kubelet would not start with, with reason and fix."""
    if not isinstance(servers := config.get("clusterDNS", []), list):
        yield ("clusterDNS",), f'must be a list: write clusterDNS: ["{servers}"]'
    for name in _NUMBER_FIELDS:
        if isinstance(number := config.get(name), int) and number < 0:
            yield (name,), f"is {number}: write 0 or more"
    for field in ("systemReserved", "kubeReserved"):
        for key, text in _list_entries(config, field):
            yield from _check_amount((field, key), text, _RESERVED_RESOURCES)
    for field in ("evictionHard", "evictionSoft"):
        for key, text in _list_entries(config, field):
            yield from _check_threshold((field, key), text)
    for key, text in _list_entries(config, "evictionSoftGracePeriod"):
        if suggest_duration(text) != text and not re.fullmatch(r"([0-9]+(\.[0-9]+)?(h|m|s|ms))+", text):
            yield (
                ("evictionSoftGracePeriod", key),
                f"is {text!r}, not a duration: write {suggest_duration(text) or '90s'}",
            )
    yield from _check_thresholds(config)


def _list_entries(config: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    table = config.get(field)
    yield from ((str(key), str(text)) for key, text in table.items()) if isinstance(table, Mapping) else ()


def _check_amount(path: FieldPath, text: str, allowed_keys: tuple[str, ...]) -> Iterator[tuple[FieldPath, str]]:
    key = str(path[-1])
    if key not in allowed_keys:
        close = (
            [_NAME_BY_SHORT_NAME[key]]
            if _NAME_BY_SHORT_NAME.get(key) in allowed_keys
            else get_close_matches(key, allowed_keys, n=1)
        )
        yield (
            path,
            f"did you mean {close[0]}?" if close else f"unknown key {key}: write one of {', '.join(allowed_keys)}",
        )
        return
    try:
        amount = parse_quantity(text)
    except ValueError:
        yield path, f"is {text!r}: write a quantity, such as 100m or 200Mi"
        return
    if amount < 0:
        yield path, f"is {text}: write 0 or more"


def _check_threshold(path: FieldPath, text: str) -> Iterator[tuple[FieldPath, str]]:
    match = _PERCENTAGE_PATTERN.fullmatch(text)
    if match is not None and float(match[1]) > _MAX_PERCENT:
        yield path, f"is {text}: write 100% at most"
    yield from _check_amount(path, "0" if match is not None else text, _EVICTION_SIGNALS)


def _check_thresholds(config: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    soft_thresholds, grace_periods = (
        dict(_list_entries(config, field)) for field in ("evictionSoft", "evictionSoftGracePeriod")
    )
    for signal in sorted(soft_thresholds.keys() ^ grace_periods.keys()):
        field, counterpart = ("evictionSoft", "evictionSoftGracePeriod")[:: 1 if signal in soft_thresholds else -1]
        yield (field, signal), f"needs a value in {counterpart}"
    high_percent, low_percent = config.get("imageGCHighThresholdPercent"), config.get("imageGCLowThresholdPercent")
    if isinstance(high_percent, int) and isinstance(low_percent, int) and high_percent <= low_percent:
        yield (
            ("imageGCHighThresholdPercent",),
            f"is {high_percent}: it must be above imageGCLowThresholdPercent, {low_percent}",
        )
