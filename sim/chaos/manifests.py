"""What people apply in a play: node classes, NodePools, and workloads of a few shapes."""

from typing import Any, Final

from shared.model.labels import REBALANCE_POLICY
from sim.chaos.script import Setting

Json = dict[str, Any]
TYPES: Final = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge")
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
POOL: Final = "main"
SECOND: Final = "second"
STATIC: Final = "static"
RESERVED_TYPE: Final = "m5.xlarge"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
CLOSED_FOR: Final = 5
"""Minutes in which no node may be disrupted, where a setting has such."""
BEGINS: Final = 8 * 60 + 1
"""The minute of the day at which a script begins."""

SHAPES: Final[dict[str, tuple[int, str]]] = {
    "big": (2, "3"),
    "fixed": (1, "500m"),
    "guarded": (4, "700m"),
    "spread": (4, "600m"),
    "store": (3, "800m"),
    "web": (6, "900m"),
}
"""The Deployments: the most replicas of each, and the CPU of a pod.

*fixed* must not be disrupted; of *guarded* one may be missing at a time; *spread* is over zones, and must be; *store*
is a StatefulSet, each pod with a disk that stays in its zone, of which half may be missing at a time.
"""
AGENT: Final = "150m"
"""The CPU of the pod that runs on every node."""


def set_up(setting: Setting) -> list[Json]:
    """Answer all manifests, in order."""
    pools = [node_class(setting), pool(setting)]
    if setting.second_cpu:
        pools += second(setting)
    if setting.has_static:
        pools += [static(setting.static)]
    agents = [agent()] if setting.agent else []
    return [*pools, *budgets(), storage(), *agents, *(workload(name, count) for name, count in setting.replicas)]


def node_class(setting: Setting, name: str = POOL, owner: str = "") -> Json:
    """Answer an EC2NodeClass that finds what the embedded account has; another *owner* is a drift of all its nodes."""
    selector = [{"tags": {"karpenter.sh/discovery": "*"}}]
    spec: Json = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    if setting.reserved:
        spec["capacityReservationSelectorTerms"] = [{"tags": {"purpose": "chaos"}}]
    if owner:
        spec["tags"] = {"owner": owner}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def pool(setting: Setting, release: str = "r", without: str = "") -> Json:
    """Answer the NodePool; another *release* is a drift of all its nodes, a type *without* which it is, of some."""
    capacity = ["on-demand", "spot"] if setting.spot else ["on-demand"]
    types = [name for name in TYPES if name != without]
    template = _template(setting, POOL, [*capacity, "reserved"] if setting.reserved else capacity, types)
    counts = [str(setting.budget), *([setting.percent] if setting.percent else [])]
    allowed: list[Json] = [{"nodes": count} for count in counts]
    if setting.closed:
        hour, minute = divmod(BEGINS + setting.closed, 60)
        allowed.append({"nodes": "0", "schedule": f"{minute} {hour} * * *", "duration": f"{CLOSED_FOR}m"})
    made = _pool(
        POOL, {"limits": {"cpu": str(setting.limit_cpu)}, "template": template} | _disruption(setting, allowed)
    )
    made["spec"]["template"]["metadata"] = {"labels": {"release": release}}
    made["metadata"]["annotations"] = {REBALANCE_POLICY: setting.rebalance} if setting.rebalance else {}
    return made


def second(setting: Setting) -> list[Json]:
    """Answer the NodePool that is preferred and small, below its EC2NodeClass."""
    template = _template(setting, SECOND, ["on-demand"], ["m5.large", "m5.xlarge"])
    spec = {"limits": {"cpu": str(setting.second_cpu)}, "weight": 50, "template": template}
    return [
        node_class(setting, SECOND),
        _pool(SECOND, spec | _disruption(setting, [{"nodes": "50%"}, {"nodes": "1"}])),
    ]


def static(replicas: int) -> Json:
    """Answer the NodePool that has so many nodes whoever needs them."""
    template = _template(Setting(), POOL, ["on-demand"], ["m5.large"])
    return _pool(STATIC, {"replicas": replicas, "template": template, "disruption": {"consolidateAfter": "Never"}})


def _template(setting: Setting, class_name: str, capacity: list[str], types: list[str]) -> Json:
    spec: Json = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class_name},
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
        ],
        "expireAfter": setting.expire_after,
    }
    if setting.grace:
        spec["terminationGracePeriod"] = setting.grace
    return {"spec": spec}


def _disruption(setting: Setting, allowed: list[Json]) -> Json:
    when = {"consolidationPolicy": setting.policy, "consolidateAfter": setting.consolidate_after}
    return {"disruption": when | {"budgets": allowed}}


def _pool(name: str, spec: Json) -> Json:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def workload(name: str, replicas: int) -> Json:
    """Answer the Deployment or StatefulSet of one of `SHAPES`."""
    made = _set("StatefulSet" if name == "store" else "Deployment", name, SHAPES[name][1])
    made["spec"]["replicas"] = replicas
    pod = made["spec"]["template"]
    if name == "fixed":
        pod["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    if name == "spread":
        zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        pod["spec"]["topologySpreadConstraints"] = [zones | {"labelSelector": {"matchLabels": {"app": name}}}]
    if name == "store":
        made["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel", "volumeClaimTemplates": [_disk()]}
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return made


def job(name: str, pods: int, seconds: int) -> Json:
    """Answer a Job of so many pods at once, each of which runs for so long."""
    made = _set("Job", name, "600m")
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = {"sim.joiner.dev/run-seconds": str(seconds)}
    template["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 100, "template": template}
    return made | {"apiVersion": "batch/v1", "spec": spec}


def agent() -> Json:
    """Answer the DaemonSet that is on every node."""
    return _set("DaemonSet", "agent", AGENT)


def _set(kind: str, name: str, cpu: str) -> Json:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 5}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def _disk() -> Json:
    wants = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]}
    return {"metadata": {"name": "data"}, "spec": wants | {"resources": {"requests": {"storage": "1Gi"}}}}


def storage() -> Json:
    """Answer the StorageClass whose disks are made where their first pod comes to run."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def budgets() -> list[Json]:
    """Answer the PodDisruptionBudgets: one pod of *guarded* may be missing, and half of *store*."""
    return [_budget("guarded", {"maxUnavailable": 1}), _budget("store", {"maxUnavailable": "50%"})]


def _budget(name: str, allows: Json) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": allows | {"selector": {"matchLabels": {"app": name}}},
    }
