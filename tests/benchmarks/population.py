"""What lives in a cluster of some size, as controllers and kubelets write it: pods of Deployments on their nodes."""

from typing import Any, Final

Object = dict[str, Any]

PODS_A_NODE: Final = 10
REPLICAS: Final = 100
"""Pods of a Deployment, all equal but for what is a pod's own."""
_AT: Final = "2026-11-21T08:00:00Z"
_SIZES: Final = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("1500m", "6Gi"))
_CAPACITY: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "80Gi"}
_SETTINGS: Final = 12
_IMAGES: Final = 20
_POD_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_NODE_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_ACCOUNT_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def node(number: int) -> Object:
    """Answer Node *number*, as registered."""
    name, zone = node_name(number), f"us-east-1{'abc'[number % 3]}"
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
    return {"metadata": {"name": name, "labels": labels}, "spec": {"providerID": _machine(number)}}


def node_status(number: int) -> Object:
    """Answer what the kubelet of Node *number* reports."""
    times = {"lastHeartbeatTime": _AT, "lastTransitionTime": _AT}
    fine = [
        {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}", "message": f"kubelet has no {kind}", **times}
        for kind in _NODE_CONDITIONS
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready", **times}
    images = [
        {"names": [f"registry.example.com/team/app-{one}@sha256:{one:064x}"], "sizeBytes": 10**8 + one}
        for one in range(_IMAGES)
    ]
    facts = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    info = dict.fromkeys((*facts, "kubeletVersion", "kubeProxyVersion"), f"{number:032x}")
    return {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY | {"cpu": "15890m", "memory": "62Gi"},
        "addresses": [{"type": "InternalIP", "address": f"10.1.{number // 250}.{number % 250}"}],
        "conditions": [*fine, ready],
        "images": images,
        "nodeInfo": info | {"operatingSystem": "linux", "architecture": "amd64"},
    }


def node_claim(number: int) -> Object:
    """Answer the NodeClaim of Node *number*."""
    wanted = (
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
        "metadata": {"name": node_name(number), "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": key, "operator": "In", "values": values} for key, values in wanted],
            "resources": {"requests": {"cpu": "12", "memory": "40Gi", "pods": "12"}},
            "expireAfter": "720h",
        },
    }


def node_claim_status(number: int) -> Object:
    """Answer the status of that NodeClaim."""
    states = ("Initialized", "Launched", "Ready", "Registered")
    return {
        "nodeName": node_name(number),
        "providerID": _machine(number),
        "imageID": "ami-0123456789abcdef0",
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY | {"cpu": "15890m", "memory": "62Gi"},
        "conditions": [
            {"type": one, "status": "True", "reason": one, "message": "", "lastTransitionTime": _AT} for one in states
        ],
    }


def csi_node(number: int) -> Object:
    """Answer the CSINode of Node *number*; every other one has no driver yet."""
    driver = {"name": "ebs.csi.aws.com", "nodeID": f"i-{number:017x}", "allocatable": {"count": 26}}
    return {"metadata": {"name": node_name(number)}, "spec": {"drivers": [driver] if number % 2 else []}}


def pod(number: int, nodes: int) -> Object:
    """Answer pod *number*, bound to one of *nodes*: about 6.5 KB as a server stores and sends it."""
    app, ending = f"app-{number // REPLICAS}", f"{number:05d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-7d4b9c", "uid": f"uid-{app}"}
    labels = {"app": app, "pod-template-hash": "7d4b9c", "team": f"team-{number // REPLICAS % 12}"}
    annotations = {"checksum/config": f"{number // REPLICAS:064x}", "prometheus.io/scrape": "true"}
    return {
        "metadata": {
            "name": f"{app}-7d4b9c-{ending}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": node_name(number % nodes),
            "serviceAccountName": "default",
            "containers": [_container(number // REPLICAS, ending)],
            "volumes": [_token_volume(ending)],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "topologySpreadConstraints": [_spread(app)],
        },
    }


def pod_status(number: int) -> Object:
    """Answer what the kubelet reports of pod *number*."""
    address = f"100.{64 + number // 62500}.{number // 250 % 250}.{number % 250}"
    return {
        "phase": "Running",
        "startTime": _AT,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": one, "status": "True", "lastTransitionTime": _AT} for one in _POD_CONDITIONS],
        "containerStatuses": [
            {
                "name": "app",
                "image": _image(number // REPLICAS),
                "imageID": f"registry.example.com/team/app@sha256:{number // REPLICAS:064x}",
                "containerID": f"containerd://{number:064x}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _AT}},
            }
        ],
    }


def node_name(number: int) -> str:
    """Answer the name of Node *number*."""
    return f"ip-10-1-{number // 250}-{number % 250}.ec2.internal"


def _machine(number: int) -> str:
    return f"aws:///us-east-1{'abc'[number % 3]}/i-{number:017x}"


def _image(deployment: int) -> str:
    return f"registry.example.com/team/app-{deployment}:1.{deployment}"


def _container(deployment: int, ending: str) -> Object:
    cpu, memory = _SIZES[deployment % len(_SIZES)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    settings = [{"name": f"SETTING_{one}", "value": f"value-{deployment}-{one}"} for one in range(_SETTINGS)]
    return {
        "name": "app",
        "image": _image(deployment),
        "env": [*settings, {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": f"kube-api-access-{ending}", "mountPath": _ACCOUNT_MOUNT, "readOnly": True}],
    }


def _token_volume(ending: str) -> Object:
    """Answer what every pod gets for its service account, under a name of its own."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": f"kube-api-access-{ending}", "projected": {"sources": sources}}


def _spread(app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
