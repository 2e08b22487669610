"""What a NodePool must keep to be used."""

from typing import Any

import pytest

from shared.model.cluster import Cluster
from shared.snapshot.take import Wanted, take
from tests.unit.snapshot_world import Lists, a_pool, named, world

REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def seen(pools: list[dict[str, Any]]) -> Cluster:
    return take(world(Lists({"NodePool": pools})), Wanted(lists=("node_pools",)))


def pool_with_labels(labels: dict[str, str]) -> dict[str, Any]:
    pool = a_pool("bad")
    pool["spec"]["template"]["metadata"] = {"labels": labels}
    return pool


def pool_with(**spec: Any) -> dict[str, Any]:
    pool = a_pool("bad")
    pool["spec"] |= spec
    return pool


def requiring(key: str, operator: str, *values: str, **more: int) -> dict[str, Any]:
    return a_pool("bad", requirements=[{"key": key, "operator": operator, "values": list(values)} | more])


def tainted(**taint: str) -> dict[str, Any]:
    return a_pool("bad", taints=[taint])


def without(field: str) -> dict[str, Any]:
    return a_pool("bad", nodeClassRef=REF | {field: ""})


DISRUPTION = "spec.disruption"
REQUIREMENT = "spec.template.spec.requirements[0]"


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (
            pool_with_labels({"karpenter.sh/nodepool": "x"}),
            "labels[karpenter.sh/nodepool]: karpenter.sh/nodepool is set by the autoscaler",
        ),
        (pool_with_labels({"kubernetes.io/hostname": "x"}), "is set by the autoscaler; remove it"),
        (pool_with_labels({"my.karpenter.sh/x": "x"}), "is set by the autoscaler"),
        (pool_with_labels({"karpenter.k8s.aws/instance-colour": "x"}), "is set by the autoscaler"),
        (pool_with_labels({"a": "b c"}), "labels[a]: 'b c' is not a label's value"),
        (pool_with_labels({"a": "b" * 64}), "is not a label's value"),
        (pool_with_labels({"-a": "b"}), "'-a' is not a label's name"),
        (pool_with_labels({"A_b/c": "b"}), "'A_b/c' is not a label's name"),
        (pool_with_labels({"/c": "b"}), "'/c' is not a label's name"),
        (pool_with_labels({f"{'d' * 254}/c": "b"}), "is not a label's name"),
        (requiring("karpenter.sh/nodepool", "Exists"), f"{REQUIREMENT}.key: karpenter.sh/nodepool is set"),
        (requiring("karpenter.sh/registered", "Exists"), "is set by the autoscaler"),
        (requiring("a", "Is", "b"), "a: unknown operator 'Is'; known are In,"),
        (requiring("a", "In"), "a: In needs at least one value"),
        (requiring("a", "In", "b c"), f"{REQUIREMENT}.values: 'b c' is not a label's value"),
        (requiring("a", "Gt", "b"), "a: Gt takes one integer"),
        (requiring("a", "Lte", "-4"), "-4 is below zero"),
        (requiring("a", "Exists", minValues=0), "minValues: 0 is not between 1 and 50"),
        (requiring("a", "Exists", minValues=51), "minValues: 51 is not between 1 and 50"),
        (requiring("a", "In", "b", "b", minValues=2), "minValues: 2 of 1 values"),
        (requiring("karpenter.sh/capacity-type", "In", "spott"), "none of on-demand, reserved, spot"),
        (
            requiring("karpenter.sh/capacity-type", "In", "spot", "x", minValues=2),
            "only 1 of the values are capacity types",
        ),
        (requiring("failure-domain.beta.kubernetes.io/zone", "In"), "topology.kubernetes.io/zone: In needs"),
        (tainted(key="a", effect="Never"), "taints[0].effect: 'Never' is unknown; write one of NoSchedule"),
        (tainted(key="a b", effect="NoExecute"), "taints[0].key: 'a b' is not a label's name"),
        (tainted(key="a", value="b c", effect="NoExecute"), "taints[0].value: 'b c'"),
        (
            a_pool(
                "bad",
                taints=[{"key": "a", "effect": "NoExecute"}],
                startupTaints=[{"key": "a", "effect": "NoExecute", "value": "b"}],
            ),
            "startupTaints[0]: a second taint a:NoExecute; remove one",
        ),
        (without("name"), "nodeClassRef.name: is empty"),
        (without("kind"), "nodeClassRef.kind: is empty"),
        (without("group"), "nodeClassRef.group: is empty"),
        (a_pool("bad", expireAfter="soon"), "spec.template.spec.expireAfter: not a duration: 'soon'; write a duration"),
        (a_pool("bad", expireAfter="-1h"), "expireAfter: below zero: '-1h'"),
        (a_pool("bad", expireAfter="99999999999h"), "expireAfter: too long"),
        (a_pool("bad", terminationGracePeriod="Never"), "terminationGracePeriod: not a duration: 'Never'"),
        (pool_with(disruption={"consolidateAfter": "1d"}), f"{DISRUPTION}.consolidateAfter: not a duration: '1d'"),
        (
            pool_with(disruption={"consolidationPolicy": "WhenUnderutilized"}),
            "consolidationPolicy: 'WhenUnderutilized' is unknown",
        ),
        (
            pool_with(disruption={"budgets": [{"schedule": "@daily"}]}),
            f"{DISRUPTION}.budgets[0]: schedule and duration need each other",
        ),
        (pool_with(disruption={"budgets": [{"duration": "1h"}]}), "schedule and duration need each other"),
        (
            pool_with(disruption={"budgets": [{"schedule": "@daily", "duration": "1d"}]}),
            "budgets[0].duration: not a duration",
        ),
        (pool_with(limits={"cpu": "lots"}), "spec.limits: cpu: not a quantity: 'lots'"),
        (pool_with(weight=0), "spec.weight: 0 is not between 1 and 100"),
        (pool_with(weight=101), "spec.weight: 101 is not between 1 and 100"),
        (pool_with(replicas=-1), "spec.replicas: -1 is below zero"),
        (pool_with(replicas=1, limits={"cpu": "1"}), "spec.limits: with replicas only nodes may be limited"),
        (pool_with(replicas=1, weight=1), "spec.weight: has no meaning with replicas"),
        (a_pool("bad", requirements="none"), "spec.template.spec.requirements: expected `array`"),
        (named("bad", spec={}), "spec: object missing required field `template`"),
    ],
)
def test_a_bad_node_pool_is_named_and_left_out(pool: dict[str, Any], words: str) -> None:
    cluster = seen([a_pool("a"), pool, a_pool("z")])
    assert [one.name for one in cluster.node_pools] == ["a", "z"]
    [problem] = cluster.problems
    assert (problem.kind, problem.name) == ("NodePool", "bad")
    assert words in problem.message


def test_a_node_pool_is_told_all_its_errors_at_once() -> None:
    pool = a_pool("bad", expireAfter="soon", taints=[{"key": "a", "effect": "Never"}])
    pool["spec"]["weight"] = 500
    [problem] = seen([pool]).problems
    assert len(problem.message.split(" | ")) == 3


@pytest.mark.parametrize(
    "pool",
    [
        requiring("karpenter.sh/capacity-type", "In", "spot", "future"),
        requiring("karpenter.sh/capacity-type", "NotIn", "spot"),
        requiring("karpenter.k8s.aws/instance-cpu", "Gte", "0"),
        requiring("mykarpenter.sh/x", "Exists", minValues=50),
        requiring("a", "In", ""),
        pool_with_labels({"karpenter.sh/capacity-type": "spot", "a.b-c/d_e": ""}),
        pool_with(replicas=0, limits={"nodes": "3"}),
        pool_with(disruption={"budgets": []}, weight=100),
    ],
)
def test_what_is_allowed_is_not_refused(pool: dict[str, Any]) -> None:
    assert seen([pool]).problems == ()
