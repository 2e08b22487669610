"""Validation of spec.kubelet: values that a kubelet would reject, and fields that an AMI family cannot pass on."""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.model.core.metadata import Pairs, build_pairs
from shared.model.core.units import is_quantity, parse_duration
from shared.model.karpenter.node_class import EC2NodeClass

_PYTHON_TYPES_BY_KIND: Final[dict[str, tuple[type, ...]]] = {
    "text": (str,),
    "number": (int,),
    "fraction": (int, float),
    "switch": (bool,),
    "map": (dict,),
    "list": (list,),
}
_KIND_DESCRIPTIONS: Final = {
    "text": "a string",
    "number": "a whole number",
    "fraction": "a number",
    "switch": "true or false",
    "map": "a map",
    "list": "a list",
}
_FIELD_NAMES_BY_KIND: Final = {
    "text": (
        "address apiVersion cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy "
        "containerLogMaxSize containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuotaPeriod "
        "cpuManagerPolicy cpuManagerReconcilePeriod evictionPressureTransitionPeriod fileCheckFrequency hairpinMode "
        "healthzBindAddress httpCheckFrequency imageMaximumGCAge imageMinimumGCAge "
        "imagePullCredentialsVerificationPolicy "
        "imageServiceEndpoint kind kubeReservedCgroup kubeletCgroups memoryManagerPolicy nodeStatusReportFrequency "
        "nodeStatusUpdateFrequency podCIDR podLogsDir providerID reservedSystemCPUs resolvConf runtimeRequestTimeout "
        "showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodCriticalPods staticPodPath staticPodURL "
        "streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile tlsMinVersion "
        "tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir volumeStatsAggPeriod"
    ),
    "number": (
        "containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort "
        "imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst "
        "kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages "
        "oomScoreAdj podPidsLimit podsPerCore port readOnlyPort registryBurst registryPullQPS"
    ),
    "fraction": "memoryThrottlingFactor",
    "switch": (
        "cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler "
        "enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery "
        "failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains "
        "mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault "
        "serializeImagePulls serverTLSBootstrap singleProcessOOMKill"
    ),
    "map": (
        "authentication authorization cpuManagerPolicyOptions crashLoopBackOff evictionHard evictionMinimumReclaim "
        "evictionSoft evictionSoftGracePeriod featureGates kubeReserved logging memorySwap qosReserved "
        "staticPodURLHeader systemReserved topologyManagerPolicyOptions tracing userNamespaces"
    ),
    "list": (
        "allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist "
        "registerWithTaints reservedMemory shutdownGracePeriodByPodPriority tlsCipherSuites tlsCurvePreferences"
    ),
}
_KIND_BY_FIELD: Final = {name: kind for kind, names in _FIELD_NAMES_BY_KIND.items() for name in names.split()}
FIELDS_OF_ALL_FAMILIES: Final = frozenset(
    (
        "clusterDNS",
        "cpuCFSQuota",
        "evictionHard",
        "evictionMaxPodGracePeriod",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReserved",
        "maxPods",
        "podsPerCore",
        "systemReserved",
    )
)
"""Fields that every AMI family supports, each in its own format."""
_EVICTION_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_RESERVABLE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_MAX_PERCENT: Final = 100


def validate_kubelet(node_class: EC2NodeClass) -> Iterator[str]:
    """Yield a problem, with field and fix, for everything with which a kubelet would not start."""
    fields: Mapping[str, Any] = json.loads(node_class.kubelet_text) if node_class.kubelet_text else {}
    for name, value in sorted(fields.items()):
        problem = _explain_wrong_type(name, value)
        if problem:
            yield f"spec.kubelet.{name}: {problem}"
    yield from _validate_thresholds(fields)
    yield from _validate_reserved(fields)
    yield from _validate_numbers(fields)


def list_expressions(node_class: EC2NodeClass) -> Pairs:
    """Return the fields that hold an expression instead of an amount: ``("kubeReserved.cpu", "10 * vcpus")``."""
    return _parse_expressions(node_class.kubelet_text)


@lru_cache(maxsize=64)
def _parse_expressions(kubelet_text: str) -> Pairs:
    fields: Mapping[str, Any] = json.loads(kubelet_text) if kubelet_text else {}
    expression_by_path = {"maxPods": fields["maxPods"]} if isinstance(fields.get("maxPods"), str) else {}
    for section_name in ("kubeReserved", "systemReserved"):
        for key, value in _get_map(fields, section_name).items():
            text = str(value)
            if key in _RESERVABLE_RESOURCES and not text.startswith("-") and not is_quantity(text):
                expression_by_path[f"{section_name}.{key}"] = text
    return build_pairs(expression_by_path)


def validate_kubelet_for_family(node_class: EC2NodeClass) -> Iterator[str]:
    """Yield a problem for each setting that the AMI family does not support."""
    family = AMI_FAMILIES.get(node_class.ami_family, AMI_FAMILIES["Custom"])
    if family.arbitrary_kubelet:
        return
    fields: Mapping[str, Any] = json.loads(node_class.kubelet_text) if node_class.kubelet_text else {}
    for name in sorted(fields.keys() - FIELDS_OF_ALL_FAMILIES):
        yield (
            f"spec.kubelet.{name}: {family.name} does not support it: remove it, or use AL2023, which "
            "supports every field"
        )
    if len(_get_list(fields, "clusterDNS")) > 1:
        yield f"spec.kubelet.clusterDNS: {family.name} supports one address: remove the others, or use AL2023"
    if fields.get("podsPerCore") and not family.pods_per_core:
        yield f"spec.kubelet.podsPerCore: {family.name} does not support it: use maxPods"


def _explain_wrong_type(name: str, value: object) -> str:
    if name == "registerWithTaints":
        return "is set by Joiner: put taints into the NodePool's spec.template.spec.taints"
    kind = _KIND_BY_FIELD.get(name)
    if kind is None:
        close = get_close_matches(name, sorted(_KIND_BY_FIELD), n=1)
        return f"KubeletConfiguration has no such field: {f'write {close[0]}' if close else 'remove it'}"
    if name == "maxPods" and isinstance(value, str):
        return ""
    is_shaped = isinstance(value, _PYTHON_TYPES_BY_KIND[kind]) and (kind == "switch" or not isinstance(value, bool))
    return "" if is_shaped else f"is {json.dumps(value)}: write {_KIND_DESCRIPTIONS[kind]}"


def _validate_thresholds(fields: Mapping[str, Any]) -> Iterator[str]:
    for field in ("evictionHard", "evictionMinimumReclaim", "evictionSoft", "evictionSoftGracePeriod"):
        for key, value in sorted(_get_map(fields, field).items()):
            path = f"spec.kubelet.{field}[{key}]"
            if key not in _EVICTION_SIGNALS:
                yield f"{path}: unknown eviction signal: use one of {', '.join(_EVICTION_SIGNALS)}"
            elif field == "evictionSoftGracePeriod":
                if not _is_duration(str(value)):
                    yield f"{path}: {value!r} is not a duration: write a duration like 1m30s"
            elif not _is_threshold(str(value)):
                yield (
                    f"{path}: {value!r} is not a threshold: write an amount like 100Mi, or a percentage from 0% to 100%"
                )
    soft, grace = _get_map(fields, "evictionSoft").keys(), _get_map(fields, "evictionSoftGracePeriod").keys()
    for key in sorted(soft - grace):
        yield f"spec.kubelet.evictionSoft[{key}]: has no evictionSoftGracePeriod: add a duration like 1m30s"
    for key in sorted(grace - soft):
        yield f"spec.kubelet.evictionSoftGracePeriod[{key}]: has no evictionSoft: add a threshold, or remove it"


def _validate_reserved(fields: Mapping[str, Any]) -> Iterator[str]:
    for field in ("kubeReserved", "systemReserved"):
        for key, value in sorted(_get_map(fields, field).items()):
            path = f"spec.kubelet.{field}.{key}"
            if key not in _RESERVABLE_RESOURCES:
                yield f"{path}: cannot be reserved: use {', '.join(_RESERVABLE_RESOURCES)}"
            if str(value).startswith("-"):
                yield f"{path}: {value!r} is below zero: write an amount like 100m or 200Mi"


def _validate_numbers(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in ("podsPerCore", "evictionMaxPodGracePeriod", "maxPods"):
        if _get_number(fields, name, 0) < 0:
            yield f"spec.kubelet.{name}: {fields[name]} is below zero: write 0 or more"
    high = _get_number(fields, "imageGCHighThresholdPercent", _MAX_PERCENT)
    low = _get_number(fields, "imageGCLowThresholdPercent", 0)
    for name, value in (("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)):
        if not 0 <= value <= _MAX_PERCENT:
            yield f"spec.kubelet.{name}: {value} is not a percentage: write 0 to 100"
    if {"imageGCHighThresholdPercent", "imageGCLowThresholdPercent"} <= fields.keys() and high <= low:
        path = "spec.kubelet.imageGCHighThresholdPercent"
        yield f"{path}: {high} is not above imageGCLowThresholdPercent ({low}): raise it"


def _get_map(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _get_list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return value if isinstance(value, list) else []


def _get_number(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else default


def _is_threshold(text: str) -> bool:
    if text.endswith("%"):
        number = text[:-1]
        return number.replace(".", "", 1).isdecimal() and float(number) <= _MAX_PERCENT
    return not text.startswith("-") and is_quantity(text)


def _is_duration(text: str) -> bool:
    try:
        return parse_duration(text).total_seconds() >= 0
    except ValueError:
        return False
