"""`joiner plan --pod`: one verdict in full, and that what it says is what was planned."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.unit.cli_objects import CATALOGUE, EXISTING, POOL, Object, deployment, pod, pool, sold

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


class Told:
    """What is said of pods in a cluster of *objects*."""

    def __init__(self, tmp_path: Path, catalogue: str, capsys: Out, *objects: Object) -> None:
        """Write them down."""
        self._path, self._catalogue, self._capsys = tmp_path / "cluster.json", catalogue, capsys
        self._path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def page(self, name: str, *flags: str, code: int = 0) -> str:
        arguments = ["-f", str(self._path), "--instance-types", self._catalogue, "--pod", name, *flags]
        assert main(["plan", *arguments]) == code
        return self._capsys.readouterr().out

    def document(self, name: str, *flags: str, code: int = 0) -> Any:
        return json.loads(self.page(name, "-o", "json", *flags, code=code))

    def error(self, name: str) -> str:
        assert main(["plan", "-f", str(self._path), "--instance-types", self._catalogue, "--pod", name]) == 1
        told = self._capsys.readouterr()
        assert told.out == ""
        return told.err


def test_a_pod_on_a_new_node_is_told_where_it_goes_what_was_bought_and_why(
    tmp_path: Path, catalogue: str, capsys: Out
) -> None:
    pools = [
        pool("only-a", requirements=[{"key": ZONE, "operator": "In", "values": ["a"]}]),
        pool("tainted", taints=[{"key": "x", "effect": "NoSchedule"}]),
        pool("both") | {"spec": pool("both")["spec"] | {"weight": 10}},
    ]
    cluster = (*pools, deployment("web", 2), pod("big", "64"))
    told = Told(tmp_path, catalogue, capsys, *cluster).page("web-2")
    lines = told.splitlines()
    assert lines[0] == "pod default/web-2, of Deployment default/web"
    assert lines[1] == "asks for    1 cpu, 1Gi memory"
    assert lines[2].startswith("goes to     both-")
    assert lines[2].endswith(", a new node of pool both, with 1 other pod (default/web-1)")
    offer = "m.02, on-demand, in a, $0.1000 per hour"
    assert lines[3] == f"bought as   {offer}: the cheapest of 2 types (m.02, m.04)"
    assert lines[4] == (
        "types       2 in the catalogue → 2 allowed by pool both → 2 allowed by the pod → 2 large enough for it alone "
        "→ 2 for all of the node's pods, within the plan's price"
    )
    assert lines[-3:] == [
        "other pools",
        f"  pool only-a: would do too; the cheapest for it alone is {offer}",
        "  pool tainted: needs toleration x:NoSchedule",
    ]


def test_who_narrowed_the_place_is_named(tmp_path: Path, catalogue: str, capsys: Out) -> None:
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
    own: Object = {"nodeSelector": {"karpenter.sh/nodepool": "lone", ZONE: "b"}}
    told = Told(
        tmp_path,
        catalogue,
        capsys,
        volume,
        claim,
        pool("default", requirements=[{"key": ZONE, "operator": "In", "values": ["a", "b"]}]),
        pool("lone"),
        pool("mates"),
        pod("blue", labels={"app": "blue"}, topologySpreadConstraints=[spread], affinity=apart),
        pod("red", "3", labels={"app": "red"}, affinity=near),
        pod("stored", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]),
        pod("picky", **own),
        pod("mate", nodeSelector={"karpenter.sh/nodepool": "mates"}),
        pod("mates", nodeSelector={"karpenter.sh/nodepool": "mates", ZONE: "a"}),
    )
    found = {}
    for name in ("blue", "red", "stored", "picky", "mate"):
        constraints = told.document(name)["constraints"]
        found[name] = {one["key"]: one["madeBy"][-1] for one in constraints if one["key"] in (ZONE, HOST)}
    assert found["blue"] == {ZONE: "the pod's topology spread (maxSkew 1)", HOST: "the pod's anti-affinity"}
    assert found["red"][ZONE] == "the pod's affinity to other pods"
    assert found["stored"][ZONE] == "the pod's volumes"
    assert found["picky"][ZONE] == "the pod"
    assert found["mate"][ZONE] == "the pods beside it"


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
        ({}, "pods elsewhere"),
    ],
)
def test_a_lone_pod_is_narrowed_by_what_it_prefers_or_by_pods_elsewhere(
    tmp_path: Path, catalogue: str, capsys: Out, spec: dict[str, Any], expected: str
) -> None:
    here = EXISTING | {"metadata": {"name": "here", "labels": {ZONE: "a", HOST: "here"}}}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": BLUE}]}}
    guard = pod("guard", affinity=apart) | {"status": {"phase": "Running"}}
    guard["spec"]["nodeName"] = "here"
    objects = (POOL, here, guard, pod("lone", labels={"app": "blue"}, **spec))
    constraints = Told(tmp_path, catalogue, capsys, *objects).document("lone")["constraints"]
    assert [one["madeBy"][-1] for one in constraints if one["key"] == ZONE] == [expected]


def test_a_pod_without_a_place_is_told_what_each_pool_has_against_it(
    tmp_path: Path, catalogue: str, capsys: Out
) -> None:
    told = Told(tmp_path, catalogue, capsys, POOL, pool("open"), pod("big", "64"), pod("shy", tolerations=[], cpu="3"))
    assert told.page("big").splitlines()[1:] == [
        "asks for    64 cpu, 1Gi memory",
        "goes nowhere: NoInstanceTypeFits",
        "  pools open, default: no instance type has 64 cpu",
    ]
    assert told.document("big")["pools"] == [{"nodePools": ["open", "default"], "says": "no instance type has 64 cpu"}]
    assert "  pool default: needs toleration team=a:NoSchedule" in told.page("shy")


@pytest.mark.parametrize(
    ("labels", "costs"),
    [
        ({}, "nothing more"),
        (
            {"node.kubernetes.io/instance-type": "m.02", ZONE: "b", "karpenter.sh/capacity-type": "on-demand"},
            "nothing more: the node (m.02, on-demand, in b, $0.2000 per hour) is paid for",
        ),
        ({"node.kubernetes.io/instance-type": "old.01", ZONE: "b"}, "nothing more: the node (old.01) is paid for"),
    ],
)
def test_a_pod_that_fits_what_is_there_costs_nothing_more(
    tmp_path: Path, catalogue: str, capsys: Out, labels: dict[str, str], costs: str
) -> None:
    here = EXISTING | {"metadata": {"name": "here", "labels": labels}}
    told = Told(tmp_path, catalogue, capsys, here, pod("a")).page("a").splitlines()
    assert told[2] == "goes to     here, a node that is there or on its way, alone"
    assert told[3] == f"costs       {costs}"


CONDITION = {"type": "PodScheduled", "status": "False"}


@pytest.mark.parametrize(
    ("spec", "status", "words"),
    [
        ({"nodeName": "here"}, {"phase": "Running"}, "it is on node here already"),
        ({}, {"nominatedNodeName": "here", "conditions": [CONDITION]}, "makes room for it on node here"),
        ({}, {"conditions": [CONDITION | {"reason": "SchedulingGated"}]}, "has not given up on it: SchedulingGated"),
        ({}, {}, "has not looked at it yet (--assume-unschedulable"),
    ],
)
def test_a_pod_that_does_not_wait_is_told_why(
    tmp_path: Path, catalogue: str, capsys: Out, spec: Object, status: Object, words: str
) -> None:
    one = pod("a", **spec) | {"status": status}
    told = Told(tmp_path, catalogue, capsys, EXISTING, one)
    assert words in told.page("a", "--no-assume-unschedulable")
    assert told.document("a", "--no-assume-unschedulable")["verdict"] == "NotWaiting"


def test_a_daemons_pod_waits_for_no_node_of_ours(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    one = pod("logs-x")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "u", "controller": True}
    one["metadata"]["ownerReferences"] = [owner]
    assert "it belongs to one node" in Told(tmp_path, catalogue, capsys, one).page("logs-x")


def test_a_pod_that_could_not_be_read_is_told_why(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    told = Told(tmp_path, catalogue, capsys, POOL, pod("poison", "lots")).page("poison", code=1)
    assert "goes nowhere: InvalidPod\n  spec.containers[app].resources.requests: cpu: not a quantity" in told


def test_a_pod_that_is_not_there_is_asked_back(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    other = pod("cart") | {"metadata": {"name": "cart", "namespace": "shop"}}
    told = Told(tmp_path, catalogue, capsys, POOL, pod("cart"), pod("web-1"), other)
    assert "--pod cart: is in several namespaces: write one of default/cart, shop/cart" in told.error("cart")
    assert "--pod web1: no such pod among 3: do you mean default/web-1?" in told.error("web1")
    assert "--pod zzz: no such pod among 3: name it as namespace/name" in told.error("zzz")
    assert told.page("shop/cart").startswith("pod shop/cart\n")


def test_other_pools_are_planned_with_alone(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    """One would put it on a node that is there, since nobody else is in its way then."""
    first = pod("first", "1", nodeSelector={"on": "here"})
    here = EXISTING | {"metadata": {"name": "here", "labels": {"on": "here"}}}
    told = Told(tmp_path, catalogue, capsys, POOL, pool("other"), here, first, pod("second", "900m"))
    assert "alone it would fit on node here" in told.page("second")


def test_a_narrow_page_is_folded_and_a_whole_one_names_everything(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = CATALOGUE | {"instanceTypes": [sold(f"m.{number:02}", number, number * 0.05) for number in range(10, 22)]}
    Path(catalogue).write_text(json.dumps(many))
    values = [f"m.{number:02}" for number in range(10, 21)]
    asked = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": values}]
    asked.append({"key": "karpenter.k8s.aws/instance-category", "operator": "DoesNotExist"})
    told = Told(tmp_path, catalogue, capsys, pool("p", requirements=asked), *(pod(f"a{one}") for one in range(9)))
    monkeypatch.setenv("COLUMNS", "60")
    page = told.page("a1")
    assert [line for line in page.splitlines() if len(line) > 60] == []
    assert "and 5 more" in page
    whole = told.page("a1", "--all", "--wide")
    assert "more" not in whole
    assert all(f"default/a{one}" in whole for one in range(9))


def test_yaml_and_json_say_the_same(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    import yaml  # noqa: PLC0415 - only here

    told = Told(tmp_path, catalogue, capsys, POOL, pod("a"))
    assert yaml.safe_load(told.page("a", "-o", "yaml")) == told.document("a")
