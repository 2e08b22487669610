"""Objects of a cluster of some size, as controllers and kubelets write them: pods of Deployments on their nodes."""

from typing import Any, Final

Object = dict[str, Any]

PODS_PER_NODE: Final = 10
PODS_PER_DEPLOYMENT: Final = 100
"""Pods of a Deployment, equal except for each pod's own fields."""
_TIMESTAMP: Final = "2026-11-21T08:00:00Z"
_SIZES: Final = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("1500m", "6Gi"))
_CAPACITY: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "80Gi"}
_ENV_VARIABLE_COUNT: Final = 12
_IMAGE_COUNT: Final = 20
_POD_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_NODE_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_ACCOUNT_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def make_node(number: int) -> Object:
    """Return Node *number*, as registered."""
    name, zone = get_node_name(number), f"us-east-1{'abc'[number % 3]}"
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "spot" if number % 2 else "on-demand",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "m6a.4xlarge",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": zone,
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": {"providerID": _get_provider_id(number)}}


def make_node_status(number: int) -> Object:
    """Return the status that the kubelet of Node *number* reports."""
    times = {"lastHeartbeatTime": _TIMESTAMP, "lastTransitionTime": _TIMESTAMP}
    pressure_conditions = [
        {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}", "message": f"kubelet has no {kind}", **times}
        for kind in _NODE_CONDITIONS
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready", **times}
    images = [
        {"names": [f"registry.example.com/team/app-{index}@sha256:{index:064x}"], "sizeBytes": 10**8 + index}
        for index in range(_IMAGE_COUNT)
    ]
    facts = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    info = dict.fromkeys((*facts, "kubeletVersion", "kubeProxyVersion"), f"{number:032x}")
    return {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY | {"cpu": "15890m", "memory": "62Gi"},
        "addresses": [{"type": "InternalIP", "address": f"10.1.{number // 250}.{number % 250}"}],
        "conditions": [*pressure_conditions, ready],
        "images": images,
        "nodeInfo": info | {"operatingSystem": "linux", "architecture": "amd64"},
    }


def make_node_claim(number: int) -> Object:
    """Return the NodeClaim of Node *number*."""
    requirements = (
        ("kubernetes.io/arch", ["amd64"]),
        ("karpenter.sh/capacity-type", ["spot", "on-demand"]),
        (
            "node.kubernetes.io/instance-type",
            [f"m{generation}a.{size}xlarge" for generation in (5, 6) for size in (2, 4, 8)],
        ),
    )
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": get_node_name(number), "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": key, "operator": "In", "values": values} for key, values in requirements],
            "resources": {"requests": {"cpu": "12", "memory": "40Gi", "pods": "12"}},
            "expireAfter": "720h",
        },
    }


def make_node_claim_status(number: int) -> Object:
    """Return the status of the NodeClaim of Node *number*."""
    states = ("Initialized", "Launched", "Ready", "Registered")
    return {
        "nodeName": get_node_name(number),
        "providerID": _get_provider_id(number),
        "imageID": "ami-0123456789abcdef0",
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY | {"cpu": "15890m", "memory": "62Gi"},
        "conditions": [
            {
                "type": condition_type,
                "status": "True",
                "reason": condition_type,
                "message": "",
                "lastTransitionTime": _TIMESTAMP,
            }
            for condition_type in states
        ],
    }


def make_csi_node(number: int) -> Object:
    """Return the CSINode of Node *number*; only odd ones have a driver."""
    driver = {"name": "ebs.csi.aws.com", "nodeID": f"i-{number:017x}", "allocatable": {"count": 26}}
    return {"metadata": {"name": get_node_name(number)}, "spec": {"drivers": [driver] if number % 2 else []}}


def make_pod(number: int, nodes: int) -> Object:
    """Return pod *number*, bound to one of *nodes*: about 6.5 KB as a server stores and sends it."""
    app, suffix = f"app-{number // PODS_PER_DEPLOYMENT}", f"{number:05d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-7d4b9c", "uid": f"uid-{app}"}
    labels = {"app": app, "pod-template-hash": "7d4b9c", "team": f"team-{number // PODS_PER_DEPLOYMENT % 12}"}
    annotations = {"checksum/config": f"{number // PODS_PER_DEPLOYMENT:064x}", "prometheus.io/scrape": "true"}
    return {
        "metadata": {
            "name": f"{app}-7d4b9c-{suffix}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": get_node_name(number % nodes),
            "serviceAccountName": "default",
            "containers": [_make_container(number // PODS_PER_DEPLOYMENT, suffix)],
            "volumes": [_make_token_volume(suffix)],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "topologySpreadConstraints": [_make_spread_constraint(app)],
        },
    }


def make_pod_status(number: int) -> Object:
    """Return the status that the kubelet reports for pod *number*."""
    address = f"100.{64 + number // 62500}.{number // 250 % 250}.{number % 250}"
    return {
        "phase": "Running",
        "startTime": _TIMESTAMP,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": condition_type, "status": "True", "lastTransitionTime": _TIMESTAMP}
            for condition_type in _POD_CONDITIONS
        ],
        "containerStatuses": [
            {
                "name": "app",
                "image": _get_image(number // PODS_PER_DEPLOYMENT),
                "imageID": f"registry.example.com/team/app@sha256:{number // PODS_PER_DEPLOYMENT:064x}",
                "containerID": f"containerd://{number:064x}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _TIMESTAMP}},
            }
        ],
    }


def get_node_name(number: int) -> str:
    """Return the name of Node *number*."""
    return f"ip-10-1-{number // 250}-{number % 250}.ec2.internal"


def _get_provider_id(number: int) -> str:
    return f"aws:///us-east-1{'abc'[number % 3]}/i-{number:017x}"


def _get_image(deployment: int) -> str:
    return f"registry.example.com/team/app-{deployment}:1.{deployment}"


def _make_container(deployment: int, suffix: str) -> Object:
    cpu, memory = _SIZES[deployment % len(_SIZES)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    variables = [
        {"name": f"SETTING_{index}", "value": f"value-{deployment}-{index}"} for index in range(_ENV_VARIABLE_COUNT)
    ]
    return {
        "name": "app",
        "image": _get_image(deployment),
        "env": [*variables, {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": f"kube-api-access-{suffix}", "mountPath": _ACCOUNT_MOUNT, "readOnly": True}],
    }


def _make_token_volume(suffix: str) -> Object:
    """Return the volume that every pod gets for its service account, under a name of its own."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": f"kube-api-access-{suffix}", "projected": {"sources": sources}}


def _make_spread_constraint(app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
