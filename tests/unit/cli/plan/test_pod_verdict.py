"""`joiner plan --pod`: one verdict in full, and that what it says is what was planned."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.support.cli.cli_objects import (
    CATALOGUE,
    EXISTING,
    POOL,
    Object,
    make_instance_type,
    make_node_pool,
    make_pod,
    make_workload,
)

Out = pytest.CaptureFixture[str]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BLUE = {"matchLabels": {"app": "blue"}}


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


class PlanRunner:
    """Run `joiner plan --pod` on a cluster of *objects*."""

    def __init__(self, tmp_path: Path, catalogue: str, capsys: Out, *objects: Object) -> None:
        """Write the objects to a file."""
        self._path, self._catalogue, self._capsys = tmp_path / "cluster.json", catalogue, capsys
        self._path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def render_page(self, name: str, *flags: str, code: int = 0) -> str:
        arguments = ["-f", str(self._path), "--instance-types", self._catalogue, "--pod", name, *flags]
        assert main(["plan", *arguments]) == code
        return self._capsys.readouterr().out

    def read_document(self, name: str, *flags: str, code: int = 0) -> Any:
        return json.loads(self.render_page(name, "-o", "json", *flags, code=code))

    def read_error(self, name: str) -> str:
        assert main(["plan", "-f", str(self._path), "--instance-types", self._catalogue, "--pod", name]) == 1
        captured = self._capsys.readouterr()
        assert captured.out == ""
        return captured.err


def test_pod_verdict_shows_new_node_offering_and_reasons(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    pools = [
        make_node_pool("only-a", requirements=[{"key": ZONE, "operator": "In", "values": ["a"]}]),
        make_node_pool("tainted", taints=[{"key": "x", "effect": "NoSchedule"}]),
        make_node_pool("both") | {"spec": make_node_pool("both")["spec"] | {"weight": 10}},
    ]
    cluster = (*pools, make_workload("web", 2), make_pod("big", "64"))
    page = PlanRunner(tmp_path, catalogue, capsys, *cluster).render_page("web-2")
    lines = page.splitlines()
    assert lines[0] == "pod default/web-2 (Deployment default/web)"
    assert lines[1] == "requests    1 cpu, 1Gi memory"
    assert lines[2].startswith("node        both-")
    assert lines[2].endswith(", a new node of NodePool both, with 1 other pending pod (default/web-1)")
    offer = "m.02 on-demand in a ($0.1000/h)"
    assert lines[3] == f"offering    {offer}: cheapest of 2 instance types (m.02, m.04)"
    assert lines[4] == (
        "types       2 in the catalog → 2 allowed by NodePool both → 2 allowed by the pod → 2 large enough for the pod "
        "→ 2 large enough for all pods of the node, at the planned price"
    )
    assert lines[-3:] == [
        "other NodePools",
        f"  NodePool only-a: possible too; cheapest offering for the pod alone: {offer}",
        "  NodePool tainted: needs toleration x:NoSchedule",
    ]


def test_source_of_each_zone_constraint_is_named(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    """The pool, the pod itself, its volumes, its rules for other pods, or the pods beside it."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": BLUE}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": BLUE}]}}
    near = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "red"}}}]}}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "csi": {"driver": "ebs.csi.aws.com"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]
                }
            },
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound"},
    }
    pod_fields: Object = {"nodeSelector": {"karpenter.sh/nodepool": "lone", ZONE: "b"}}
    runner = PlanRunner(
        tmp_path,
        catalogue,
        capsys,
        volume,
        claim,
        make_node_pool("default", requirements=[{"key": ZONE, "operator": "In", "values": ["a", "b"]}]),
        make_node_pool("lone"),
        make_node_pool("mates"),
        make_pod("blue", labels={"app": "blue"}, topologySpreadConstraints=[spread], affinity=apart),
        make_pod("red", "3", labels={"app": "red"}, affinity=near),
        make_pod("stored", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]),
        make_pod("picky", **pod_fields),
        make_pod("mate", nodeSelector={"karpenter.sh/nodepool": "mates"}),
        make_pod("mates", nodeSelector={"karpenter.sh/nodepool": "mates", ZONE: "a"}),
    )
    makers_by_pod = {}
    for name in ("blue", "red", "stored", "picky", "mate"):
        constraints = runner.read_document(name)["constraints"]
        makers_by_pod[name] = {
            constraint["key"]: constraint["sources"][-1]
            for constraint in constraints
            if constraint["key"] in (ZONE, HOST)
        }
    assert makers_by_pod["blue"] == {ZONE: "the pod's topology spread (maxSkew 1)", HOST: "the pod's anti-affinity"}
    assert makers_by_pod["red"][ZONE] == "the pod's affinity to other pods"
    assert makers_by_pod["stored"][ZONE] == "the pod's volumes"
    assert makers_by_pod["picky"][ZONE] == "the pod"
    assert makers_by_pod["mate"][ZONE] == "other pods on the node"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [
                            {
                                "weight": 1,
                                "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]},
                            }
                        ]
                    }
                }
            },
            "the pod's preferences",
        ),
        ({}, "pods on other nodes"),
    ],
)
def test_preferences_and_existing_pods_are_named_as_constraint_sources(
    tmp_path: Path, catalogue: str, capsys: Out, spec: dict[str, Any], expected: str
) -> None:
    node = EXISTING | {"metadata": {"name": "here", "labels": {ZONE: "a", HOST: "here"}}}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": BLUE}]}}
    guard = make_pod("guard", affinity=apart) | {"status": {"phase": "Running"}}
    guard["spec"]["nodeName"] = "here"
    objects = (POOL, node, guard, make_pod("lone", labels={"app": "blue"}, **spec))
    constraints = PlanRunner(tmp_path, catalogue, capsys, *objects).read_document("lone")["constraints"]
    assert [constraint["sources"][-1] for constraint in constraints if constraint["key"] == ZONE] == [expected]


def test_unschedulable_pod_verdict_lists_the_reason_of_each_nodepool(
    tmp_path: Path, catalogue: str, capsys: Out
) -> None:
    runner = PlanRunner(
        tmp_path,
        catalogue,
        capsys,
        POOL,
        make_node_pool("open"),
        make_pod("big", "64"),
        make_pod("shy", tolerations=[], cpu="3"),
    )
    assert runner.render_page("big").splitlines()[1:] == [
        "requests    64 cpu, 1Gi memory",
        "unschedulable: NoInstanceTypeFits",
        "  NodePools open, default: no instance type has 64 cpu",
    ]
    assert runner.read_document("big")["nodePoolMessages"] == [
        {"nodePools": ["open", "default"], "message": "no instance type has 64 cpu"}
    ]
    assert "  NodePool default: needs toleration team=a:NoSchedule" in runner.render_page("shy")


@pytest.mark.parametrize(
    ("labels", "costs"),
    [
        ({}, "no additional cost"),
        (
            {"node.kubernetes.io/instance-type": "m.02", ZONE: "b", "karpenter.sh/capacity-type": "on-demand"},
            "no additional cost: the node is m.02 on-demand in b ($0.2000/h)",
        ),
        ({"node.kubernetes.io/instance-type": "old.01", ZONE: "b"}, "no additional cost: the node is old.01"),
    ],
)
def test_pod_that_fits_an_existing_node_has_no_additional_cost(
    tmp_path: Path, catalogue: str, capsys: Out, labels: dict[str, str], costs: str
) -> None:
    node = EXISTING | {"metadata": {"name": "here", "labels": labels}}
    lines = PlanRunner(tmp_path, catalogue, capsys, node, make_pod("a")).render_page("a").splitlines()
    assert lines[2] == "node        here, an existing or in-flight node, without other pending pods"
    assert lines[3] == f"cost        {costs}"


CONDITION = {"type": "PodScheduled", "status": "False"}


@pytest.mark.parametrize(
    ("spec", "status", "words"),
    [
        ({"nodeName": "here"}, {"phase": "Running"}, "already bound to node here"),
        ({}, {"nominatedNodeName": "here", "conditions": [CONDITION]}, "nominated to node here, where kube-scheduler"),
        (
            {},
            {"conditions": [CONDITION | {"reason": "SchedulingGated"}]},
            "has not marked it Unschedulable: SchedulingGated",
        ),
        ({}, {}, "has not tried to schedule it yet (--assume-unschedulable"),
    ],
)
def test_pod_that_is_not_pending_shows_the_reason(
    tmp_path: Path, catalogue: str, capsys: Out, spec: Object, status: Object, words: str
) -> None:
    manifest = make_pod("a", **spec) | {"status": status}
    runner = PlanRunner(tmp_path, catalogue, capsys, EXISTING, manifest)
    assert words in runner.render_page("a", "--no-assume-unschedulable")
    assert runner.read_document("a", "--no-assume-unschedulable")["result"] == "NotPending"


def test_daemonset_pod_gets_no_node_of_its_own(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    manifest = make_pod("logs-x")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "u", "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    assert "DaemonSet pods and static pods get no node of their own" in PlanRunner(
        tmp_path, catalogue, capsys, manifest
    ).render_page("logs-x")


def test_invalid_pod_verdict_shows_the_error(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    page = PlanRunner(tmp_path, catalogue, capsys, POOL, make_pod("poison", "lots")).render_page("poison", code=1)
    assert "unschedulable: InvalidPod\n  spec.containers[app].resources.requests: cpu: not a quantity" in page


def test_unknown_or_ambiguous_pod_name_gets_suggestions(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    second_cart = make_pod("cart") | {"metadata": {"name": "cart", "namespace": "shop"}}
    runner = PlanRunner(tmp_path, catalogue, capsys, POOL, make_pod("cart"), make_pod("web-1"), second_cart)
    assert "--pod cart: exists in several namespaces: write default/cart or shop/cart" in runner.read_error("cart")
    assert "--pod web1: not found among 3 pods: did you mean default/web-1?" in runner.read_error("web1")
    assert "--pod zzz: not found among 3 pods: write NAMESPACE/NAME" in runner.read_error("zzz")
    assert runner.render_page("shop/cart").startswith("pod shop/cart\n")


def test_pod_verdict_plans_the_pod_alone_for_comparison(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    """Alone, the second pod would fit on the existing node."""
    first = make_pod("first", "1", nodeSelector={"on": "here"})
    node = EXISTING | {"metadata": {"name": "here", "labels": {"on": "here"}}}
    runner = PlanRunner(
        tmp_path, catalogue, capsys, POOL, make_node_pool("other"), node, first, make_pod("second", "900m")
    )
    assert "the pod alone would fit on node here" in runner.render_page("second")


def test_narrow_page_is_wrapped_and_all_flag_lists_everything(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger_catalogue = CATALOGUE | {
        "instanceTypes": [make_instance_type(f"m.{number:02}", number, number * 0.05) for number in range(10, 22)]
    }
    Path(catalogue).write_text(json.dumps(larger_catalogue))
    values = [f"m.{number:02}" for number in range(10, 21)]
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": values}]
    requirements.append({"key": "karpenter.k8s.aws/instance-category", "operator": "DoesNotExist"})
    runner = PlanRunner(
        tmp_path,
        catalogue,
        capsys,
        make_node_pool("p", requirements=requirements),
        *(make_pod(f"a{number}") for number in range(9)),
    )
    monkeypatch.setenv("COLUMNS", "60")
    page = runner.render_page("a1")
    assert [line for line in page.splitlines() if len(line) > 60] == []
    assert "and 5 more" in page
    full_page = runner.render_page("a1", "--all", "--wide")
    assert "more" not in full_page
    assert all(f"default/a{number}" in full_page for number in range(9))


def test_yaml_output_equals_json_output(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    import yaml  # noqa: PLC0415 - only here

    runner = PlanRunner(tmp_path, catalogue, capsys, POOL, make_pod("a"))
    assert yaml.safe_load(runner.render_page("a", "-o", "yaml")) == runner.read_document("a")


def test_workload_name_selects_one_of_its_pods(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    """An unschedulable pod comes first, else a planned one."""
    job = make_workload("batch", None, kind="Job", selector=None, parallelism=2) | {"apiVersion": "batch/v1"}
    running = make_pod("db-0", labels={"app": "db"}) | {"status": {"phase": "Running"}}
    running["spec"]["nodeName"] = "here"
    running["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    ]
    objects = (POOL, EXISTING, running, make_workload("web", 2), make_workload("db", 2, kind="StatefulSet"), job)
    runner = PlanRunner(tmp_path, catalogue, capsys, *objects)
    for query, pod in (("web", "web-1"), ("default/web", "web-1"), ("db", "db-1"), ("batch", "batch-1")):
        assert runner.read_document(query)["pod"] == f"default/{pod}"
    other_namespace = make_workload("web", 1) | {"metadata": {"name": "web", "namespace": "shop"}}
    runner = PlanRunner(tmp_path, catalogue, capsys, *objects, other_namespace)
    assert "--pod web: exists in several namespaces: write default/web or shop/web" in runner.read_error("web")
    assert "did you mean default/batch" in runner.read_error("bach")
