"""The launch of the node of one pod, for the tests of traces: journal entries and the cluster after it."""

import json
from datetime import timedelta
from typing import Any

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import PatchStatus
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.unit.cli.explain.explained_journals import (
    JOINS,
    PODS,
    TAGGED,
    make_claim_creation,
    make_entry,
    make_launch,
    make_launched_patches,
    make_note,
)

BOUND_POD_UID = "0f0e5e3c-0000-4000-8000-000000000001"


def make_condition_patch(claim: str, **seconds: float) -> PatchStatus:
    """Return the patch with the conditions of *claim* that became True, by type, seconds after the start."""
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": format_seconds_after_start(second)}
        for type_, second in seconds.items()
    ]
    return PatchStatus(kind="NodeClaim", name=claim, status=json.dumps({"conditions": conditions}), message="")


def format_seconds_after_start(seconds: float) -> str:
    return f"{DEFAULT_START_TIME + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


TRACED_ENTRIES = (
    make_entry(
        5 / 60,
        make_claim_creation(),
        make_launch("c1"),
        *make_launched_patches(),
        make_condition_patch("c1", Launched=7),
        notes=tuple(make_note("Pod", pod, "nodeclaim/c1", "new node, cheapest instance type m5.large") for pod in PODS),
    ),
    make_entry(40 / 60, JOINS, TAGGED, make_condition_patch("c1", Launched=7, Registered=40), function="lifecycle"),
    make_entry(50 / 60, make_condition_patch("c1", Launched=7, Registered=40, Initialized=50), function="lifecycle"),
)
"""The launch of the node of `shop/cart`, which is initialized 50 seconds after the start."""


def make_trace_cluster(*, is_pod_bound: bool = True) -> ClusterSnapshot:
    """Return the cluster in which `shop/cart` runs on n1 since 60 seconds after the start, or is pending."""
    container = {"containers": [{"name": "main", "image": "x"}]}
    bound_conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_seconds_after_start(52)},
        {"type": "Ready", "status": "True", "lastTransitionTime": format_seconds_after_start(60)},
    ]
    pod_meta = {"name": "cart", "namespace": "shop", "uid": BOUND_POD_UID}
    created = {"creationTimestamp": format_seconds_after_start(0)}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta | created}
    pod |= {"spec": container | {"nodeName": "n1"}, "status": {"phase": "Running", "conditions": bound_conditions}}
    if not is_pod_bound:
        pod |= {"spec": container, "status": {"phase": "Pending"}}
    node_meta = {"name": "n1", "uid": "n", "creationTimestamp": format_seconds_after_start(35)}
    claim_meta = {"name": "c1", "uid": "c", "creationTimestamp": format_seconds_after_start(6)}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    condition_patch = make_condition_patch("c1", Launched=7, Registered=40, Initialized=50)
    status = json.loads(condition_patch.status) | {"providerID": "aws:///us-east-1c/i-1", "nodeName": "n1"}
    documents = [
        pod,
        {"apiVersion": "v1", "kind": "Node", "metadata": node_meta, "spec": {}},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": claim_meta,
            "spec": {"nodeClassRef": reference, "requirements": []},
            "status": status,
        },
    ]
    return build_snapshot_from_documents(documents, DEFAULT_START_TIME + timedelta(seconds=90))
