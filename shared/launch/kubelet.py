"""spec.kubelet: what of it a kubelet would refuse, and what an image family cannot pass on."""

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from shared.launch.families import FAMILIES
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Pairs, pairs
from shared.model.units import is_quantity, parse_duration

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "text": (str,),
    "number": (int,),
    "fraction": (int, float),
    "switch": (bool,),
    "map": (dict,),
    "list": (list,),
}
_WORDS: Final = {
    "text": "a text",
    "number": "a whole number",
    "fraction": "a number",
    "switch": "true or false",
    "map": "a map",
    "list": "a list",
}
_FIELDS: Final = {
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
_KIND_OF: Final = {name: kind for kind, names in _FIELDS.items() for name in names.split()}
MANAGED: Final = frozenset(
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
"""Fields that every family can pass on in words of its own."""
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_WHOLE: Final = 100


def structure_problems(node_class: EC2NodeClass) -> Iterator[str]:
    """Iterate over what a kubelet would not start with, each with field and remedy."""
    said: Mapping[str, Any] = json.loads(node_class.kubelet_text) if node_class.kubelet_text else {}
    for name, value in sorted(said.items()):
        problem = _shape(name, value)
        if problem:
            yield f"spec.kubelet.{name}: {problem}"
    yield from _thresholds(said)
    yield from _reserved(said)
    yield from _numbers(said)


def expressions(node_class: EC2NodeClass) -> Pairs:
    """Answer the fields that hold an expression instead of an amount, as ``("kubeReserved.cpu", "10 * vcpus")``."""
    return _expressions(node_class.kubelet_text)


@lru_cache(maxsize=64)
def _expressions(kubelet_text: str) -> Pairs:
    said: Mapping[str, Any] = json.loads(kubelet_text) if kubelet_text else {}
    found = {"maxPods": said["maxPods"]} if isinstance(said.get("maxPods"), str) else {}
    for field in ("kubeReserved", "systemReserved"):
        for key, value in _map(said, field).items():
            text = str(value)
            if key in _RESERVABLE and not text.startswith("-") and not is_quantity(text):
                found[f"{field}.{key}"] = text
    return pairs(found)


def family_problems(node_class: EC2NodeClass) -> Iterator[str]:
    """Iterate over what the image family has no words for."""
    family = FAMILIES.get(node_class.ami_family, FAMILIES["Custom"])
    if family.arbitrary_kubelet:
        return
    said: Mapping[str, Any] = json.loads(node_class.kubelet_text) if node_class.kubelet_text else {}
    for name in sorted(said.keys() - MANAGED):
        yield f"spec.kubelet.{name}: {family.name} does not take it: remove it, or use AL2023, which takes any field"
    if len(_list(said, "clusterDNS")) > 1:
        yield f"spec.kubelet.clusterDNS: {family.name} takes one address: keep one, or use AL2023"
    if said.get("podsPerCore") and not family.pods_per_core:
        yield f"spec.kubelet.podsPerCore: {family.name} does not know it: use maxPods"


def _shape(name: str, value: object) -> str:
    if name == "registerWithTaints":
        return "is ours to write: put taints into the NodePool's spec.template.spec.taints"
    kind = _KIND_OF.get(name)
    if kind is None:
        close = get_close_matches(name, sorted(_KIND_OF), n=1)
        return f"there is no such field of KubeletConfiguration: {f'write {close[0]}' if close else 'remove it'}"
    if name == "maxPods" and isinstance(value, str):
        return ""
    is_shaped = isinstance(value, _KINDS[kind]) and (kind == "switch" or not isinstance(value, bool))
    return "" if is_shaped else f"is {json.dumps(value)}: write {_WORDS[kind]}"


def _thresholds(said: Mapping[str, Any]) -> Iterator[str]:
    for field in ("evictionHard", "evictionMinimumReclaim", "evictionSoft", "evictionSoftGracePeriod"):
        for key, value in sorted(_map(said, field).items()):
            path = f"spec.kubelet.{field}[{key}]"
            if key not in _SIGNALS:
                yield f"{path}: there is no such signal: use one of {', '.join(_SIGNALS)}"
            elif field == "evictionSoftGracePeriod":
                if not _is_duration(str(value)):
                    yield f"{path}: {value!r} is no duration: write one like 1m30s"
            elif not _is_threshold(str(value)):
                yield f"{path}: {value!r} is no threshold: write an amount like 100Mi, or a percentage from 0% to 100%"
    soft, grace = _map(said, "evictionSoft").keys(), _map(said, "evictionSoftGracePeriod").keys()
    for key in sorted(soft - grace):
        yield f"spec.kubelet.evictionSoft[{key}]: has no evictionSoftGracePeriod: add one like 1m30s"
    for key in sorted(grace - soft):
        yield f"spec.kubelet.evictionSoftGracePeriod[{key}]: has no evictionSoft: add a threshold, or remove it"


def _reserved(said: Mapping[str, Any]) -> Iterator[str]:
    for field in ("kubeReserved", "systemReserved"):
        for key, value in sorted(_map(said, field).items()):
            path = f"spec.kubelet.{field}.{key}"
            if key not in _RESERVABLE:
                yield f"{path}: cannot be reserved: use {', '.join(_RESERVABLE)}"
            if str(value).startswith("-"):
                yield f"{path}: {value!r} is below zero: write an amount like 100m or 200Mi"


def _numbers(said: Mapping[str, Any]) -> Iterator[str]:
    for name in ("podsPerCore", "evictionMaxPodGracePeriod", "maxPods"):
        if _number(said, name, 0) < 0:
            yield f"spec.kubelet.{name}: {said[name]} is below zero: write 0 or more"
    high = _number(said, "imageGCHighThresholdPercent", _WHOLE)
    low = _number(said, "imageGCLowThresholdPercent", 0)
    for name, value in (("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)):
        if not 0 <= value <= _WHOLE:
            yield f"spec.kubelet.{name}: {value} is no percentage: write 0 to 100"
    if {"imageGCHighThresholdPercent", "imageGCLowThresholdPercent"} <= said.keys() and high <= low:
        path = "spec.kubelet.imageGCHighThresholdPercent"
        yield f"{path}: {high} is not above imageGCLowThresholdPercent ({low}): raise it"


def _map(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _list(said: Mapping[str, Any], name: str) -> list[Any]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _number(said: Mapping[str, Any], name: str, default: int) -> int:
    found = said.get(name)
    return found if isinstance(found, int) else default


def _is_threshold(text: str) -> bool:
    if text.endswith("%"):
        number = text[:-1]
        return number.replace(".", "", 1).isdecimal() and float(number) <= _WHOLE
    return not text.startswith("-") and is_quantity(text)


def _is_duration(text: str) -> bool:
    try:
        return parse_duration(text).total_seconds() >= 0
    except ValueError:
        return False
