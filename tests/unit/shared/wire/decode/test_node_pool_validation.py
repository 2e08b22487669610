"""Tests of NodePool validation."""

from typing import Any

import pytest

from shared.model.cluster import ClusterSnapshot
from shared.take.snapshot import SnapshotRequest, take_snapshot
from tests.support.snapshot_world import Lists, make_node_pool, make_object, make_world

REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def take_pool_snapshot(pools: list[dict[str, Any]]) -> ClusterSnapshot:
    return take_snapshot(make_world(Lists({"NodePool": pools})), SnapshotRequest(lists=("node_pools",)))


def make_pool_with_labels(labels: dict[str, str]) -> dict[str, Any]:
    pool = make_node_pool("bad")
    pool["spec"]["template"]["metadata"] = {"labels": labels}
    return pool


def make_pool_with_spec(**spec: Any) -> dict[str, Any]:
    pool = make_node_pool("bad")
    pool["spec"] |= spec
    return pool


def make_pool_with_requirement(key: str, operator: str, *values: str, **fields: int) -> dict[str, Any]:
    return make_node_pool("bad", requirements=[{"key": key, "operator": operator, "values": list(values)} | fields])


def make_pool_with_taint(**taint: str) -> dict[str, Any]:
    return make_node_pool("bad", taints=[taint])


def make_pool_without_ref_field(field: str) -> dict[str, Any]:
    return make_node_pool("bad", nodeClassRef=REF | {field: ""})


DISRUPTION = "spec.disruption"
REQUIREMENT = "spec.template.spec.requirements[0]"


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (
            make_pool_with_labels({"karpenter.sh/nodepool": "x"}),
            "labels[karpenter.sh/nodepool]: karpenter.sh/nodepool is set by the autoscaler",
        ),
        (make_pool_with_labels({"kubernetes.io/hostname": "x"}), "is set by the autoscaler; remove it"),
        (make_pool_with_labels({"my.karpenter.sh/x": "x"}), "is set by the autoscaler"),
        (make_pool_with_labels({"karpenter.k8s.aws/instance-colour": "x"}), "is set by the autoscaler"),
        (make_pool_with_labels({"a": "b c"}), "labels[a]: 'b c' is not a label value"),
        (make_pool_with_labels({"a": "b" * 64}), "is not a label value"),
        (make_pool_with_labels({"-a": "b"}), "'-a' is not a label key"),
        (make_pool_with_labels({"A_b/c": "b"}), "'A_b/c' is not a label key"),
        (make_pool_with_labels({"/c": "b"}), "'/c' is not a label key"),
        (make_pool_with_labels({f"{'d' * 254}/c": "b"}), "is not a label key"),
        (
            make_pool_with_requirement("karpenter.sh/nodepool", "Exists"),
            f"{REQUIREMENT}.key: karpenter.sh/nodepool is set",
        ),
        (make_pool_with_requirement("karpenter.sh/registered", "Exists"), "is set by the autoscaler"),
        (make_pool_with_requirement("a", "Is", "b"), "a: unknown operator 'Is'; known are In,"),
        (make_pool_with_requirement("a", "In"), "a: In needs at least one value"),
        (make_pool_with_requirement("a", "In", "b c"), f"{REQUIREMENT}.values: 'b c' is not a label value"),
        (make_pool_with_requirement("a", "Gt", "b"), "a: Gt takes one integer"),
        (make_pool_with_requirement("a", "Lte", "-4"), "-4 is below zero"),
        (make_pool_with_requirement("a", "Exists", minValues=0), "minValues: 0 must be between 1 and 50"),
        (make_pool_with_requirement("a", "Exists", minValues=51), "minValues: 51 must be between 1 and 50"),
        (make_pool_with_requirement("a", "In", "b", "b", minValues=2), "minValues: 2 of 1 values"),
        (make_pool_with_requirement("karpenter.sh/capacity-type", "In", "spott"), "none of on-demand, reserved, spot"),
        (
            make_pool_with_requirement("karpenter.sh/capacity-type", "In", "spot", "x", minValues=2),
            "only 1 of the values are capacity types",
        ),
        (
            make_pool_with_requirement("failure-domain.beta.kubernetes.io/zone", "In"),
            "topology.kubernetes.io/zone: In needs",
        ),
        (
            make_pool_with_taint(key="a", effect="Never"),
            "taints[0].effect: 'Never' is unknown; write one of NoSchedule",
        ),
        (make_pool_with_taint(key="a b", effect="NoExecute"), "taints[0].key: 'a b' is not a label key"),
        (make_pool_with_taint(key="a", value="b c", effect="NoExecute"), "taints[0].value: 'b c'"),
        (
            make_node_pool(
                "bad",
                taints=[{"key": "a", "effect": "NoExecute"}],
                startupTaints=[{"key": "a", "effect": "NoExecute", "value": "b"}],
            ),
            "startupTaints[0]: a second taint a:NoExecute; remove one",
        ),
        (make_pool_without_ref_field("name"), "nodeClassRef.name: is empty"),
        (make_pool_without_ref_field("kind"), "nodeClassRef.kind: is empty"),
        (make_pool_without_ref_field("group"), "nodeClassRef.group: is empty"),
        (
            make_node_pool("bad", expireAfter="soon"),
            "spec.template.spec.expireAfter: not a duration: 'soon'; write a duration",
        ),
        (make_node_pool("bad", expireAfter="-1h"), "expireAfter: below zero: '-1h'"),
        (make_node_pool("bad", expireAfter="99999999999h"), "expireAfter: too long"),
        (make_node_pool("bad", terminationGracePeriod="Never"), "terminationGracePeriod: not a duration: 'Never'"),
        (
            make_pool_with_spec(disruption={"consolidateAfter": "1d"}),
            f"{DISRUPTION}.consolidateAfter: not a duration: '1d'",
        ),
        (
            make_pool_with_spec(disruption={"consolidationPolicy": "WhenUnderutilized"}),
            "consolidationPolicy: 'WhenUnderutilized' is unknown",
        ),
        (
            make_pool_with_spec(disruption={"budgets": [{"schedule": "@daily"}]}),
            f"{DISRUPTION}.budgets[0]: schedule and duration belong together",
        ),
        (make_pool_with_spec(disruption={"budgets": [{"duration": "1h"}]}), "schedule and duration belong together"),
        (
            make_pool_with_spec(disruption={"budgets": [{"schedule": "@daily", "duration": "1d"}]}),
            "budgets[0].duration: not a duration",
        ),
        (make_pool_with_spec(limits={"cpu": "lots"}), "spec.limits: cpu: not a quantity: 'lots'"),
        (make_pool_with_spec(weight=0), "spec.weight: 0 must be between 1 and 100"),
        (make_pool_with_spec(weight=101), "spec.weight: 101 must be between 1 and 100"),
        (make_pool_with_spec(replicas=-1), "spec.replicas: -1 is below zero"),
        (make_pool_with_spec(replicas=1, limits={"cpu": "1"}), "spec.limits: with replicas, only nodes can be limited"),
        (make_pool_with_spec(replicas=1, weight=1), "spec.weight: has no effect with replicas"),
        (make_node_pool("bad", requirements="none"), "spec.template.spec.requirements: expected `array`"),
        (make_object("bad", spec={}), "spec: object missing required field `template`"),
    ],
)
def test_invalid_nodepool_is_reported_and_left_out(pool: dict[str, Any], words: str) -> None:
    cluster = take_pool_snapshot([make_node_pool("a"), pool, make_node_pool("z")])
    assert [node_pool.name for node_pool in cluster.node_pools] == ["a", "z"]
    [problem] = cluster.problems
    assert (problem.kind, problem.name) == ("NodePool", "bad")
    assert words in problem.message


def test_all_errors_of_a_nodepool_are_reported_together() -> None:
    pool = make_node_pool("bad", expireAfter="soon", taints=[{"key": "a", "effect": "Never"}])
    pool["spec"]["weight"] = 500
    [problem] = take_pool_snapshot([pool]).problems
    assert len(problem.message.split(" | ")) == 3


@pytest.mark.parametrize(
    "pool",
    [
        make_pool_with_requirement("karpenter.sh/capacity-type", "In", "spot", "future"),
        make_pool_with_requirement("karpenter.sh/capacity-type", "NotIn", "spot"),
        make_pool_with_requirement("karpenter.k8s.aws/instance-cpu", "Gte", "0"),
        make_pool_with_requirement("mykarpenter.sh/x", "Exists", minValues=50),
        make_pool_with_requirement("a", "In", ""),
        make_pool_with_labels({"karpenter.sh/capacity-type": "spot", "a.b-c/d_e": ""}),
        make_pool_with_spec(replicas=0, limits={"nodes": "3"}),
        make_pool_with_spec(disruption={"budgets": []}, weight=100),
    ],
)
def test_valid_nodepool_is_accepted(pool: dict[str, Any]) -> None:
    assert take_pool_snapshot([pool]).problems == ()
