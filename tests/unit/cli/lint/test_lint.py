"""`joiner lint`: likely mistakes in manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.support.cli.cli_objects import CATALOGUE

Object = dict[str, Any]
Out = pytest.CaptureFixture[str]
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
GPU = {"key": "gpu", "effect": "NoSchedule"}


def make_node_pool(
    name: str = "a", /, meta: Object | None = None, spec: Object | None = None, **inner: object
) -> Object:
    template = {"spec": {"nodeClassRef": REF, "requirements": []} | inner}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name} | (meta or {}),
        "spec": {"template": template} | (spec or {}),
    }


def make_node_class(**spec: object) -> Object:
    terms = {"subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]} | terms | spec,
    }


def make_pod(meta: Object | None = None, **spec: object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"} | (meta or {}), "spec": spec}


def make_requirement(key: str, operator: str, *values: object) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def make_disruption_pool(**spec: object) -> Object:
    return make_node_pool(spec={"disruption": {"consolidateAfter": "1m"} | spec})


def make_annotations(key: str, value: object) -> Object:
    return {"annotations": {key: value}}


REQUIREMENT = "spec.template.spec.requirements[0]"
ANNOTATIONS = "metadata.annotations."
DO_NOT = "karpenter.sh/do-not-disrupt"
EVICTION_PRICE = "joiner.dev/eviction-price-usd"
LIMIT_USD = "joiner.dev/limit-usd-per-hour"
REBALANCE_POLICY = "joiner.dev/rebalance-policy"
SPOT_SHARE = "joiner.dev/spot-share-percent"
ON_DEMAND_BASE = "joiner.dev/on-demand-base"
SPOT_SHARE_UNIT = "joiner.dev/spot-share-unit"
ZONE_BALANCE = "joiner.dev/zone-balance-percent"
BUDGET = {"nodes": "0", "schedule": "0 9 * * mon-frid", "duration": "8h"}
CPUS = make_requirement("karpenter.k8s.aws/instance-cpu", "In", "4")


@pytest.fixture
def lint(tmp_path: Path, capsys: Out) -> Any:
    """Return a function that lints objects: the exit code, and the level, field and message of each finding."""

    def run(*values: object, flags: tuple[str, ...] = ()) -> tuple[int, list[tuple[str, str, str]]]:
        file = tmp_path / "some.yaml"
        file.write_text(yaml.safe_dump_all(values, sort_keys=False))
        code = main(["lint", "-f", str(file), "-o", "json", *flags])
        findings = json.loads(capsys.readouterr().out)
        return code, [(finding["level"], finding["field"], finding["message"]) for finding in findings]

    return run


def test_valid_manifests_have_no_findings(lint: Any) -> None:
    assert lint(
        make_node_pool(), make_node_class(), make_pod({"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    ) == (0, [])


@pytest.mark.parametrize(
    ("value", "level", "field", "remedy"),
    [
        (make_node_pool(spec={"weigth": 3}), "error", "spec.weigth", "did you mean weight?"),
        (make_node_pool(spec={"zzz": 3}), "error", "spec.zzz", "correct or remove it"),
        (make_node_pool(taint=[]), "error", "spec.template.spec.taint", "did you mean taints?"),
        (make_node_pool(spec={"weight": 200}), "error", "spec.weight", "maximum is 100"),
        (make_node_pool(spec={"limits": {"cpu": "10%"}}), "error", "spec.limits.cpu", "not a Kubernetes quantity"),
        (
            make_node_pool(requirements=[make_requirement("karpenter.k8s.aws/instance-cpu", "In", 4)]),
            "error",
            "spec.template.spec.requirements[0].values[0]",
            "write it in quotes",
        ),
        (make_node_pool(expireAfter="5m"), "warning", "spec.template.spec.expireAfter", "expire after 5m"),
        (make_node_pool(spec={"limits": {"cpu": "500m"}}), "error", "spec.limits.cpu", "no node can be launched"),
        (
            make_node_pool(meta={"annotations": {"arpenter.sh/do-not-consolidate": "true"}}),
            "warning",
            "metadata.annotations.arpenter.sh/do-not-consolidate",
            "did you mean karpenter.sh/do-not-consolidate?",
        ),
        (
            make_node_class(amiSelectorTerms=[{"name": "ami-123"}], amiFamily="AL2"),
            "error",
            "spec.amiSelectorTerms[0].name",
            "write `id: ami-123`",
        ),
        (
            make_node_pool(requirements=[make_requirement("kubernetes.io/architecture", "In", "a")]),
            "error",
            REQUIREMENT + ".key",
            "o/arch?",
        ),
        (
            make_node_pool(requirements=[make_requirement("zone", "In", "a, b")]),
            "error",
            REQUIREMENT + ".values[0]",
            '["a", "b"]',
        ),
        (
            make_node_pool(requirements=[make_requirement("zone", "In", "a b")]),
            "error",
            REQUIREMENT + ".values[0]",
            '["a", "b"]',
        ),
        (
            make_node_pool(requirements=[{"a": "b"}]),
            "error",
            REQUIREMENT,
            'write {key: a, operator: In, values: ["b"]}',
        ),
        (make_node_pool(spec={"weight": "50"}), "error", "spec.weight", "write 50, without quotes"),
        (make_node_pool(spec={"weight": "high"}), "error", "spec.weight", "write a whole number"),
        (make_node_pool(requirements={}), "error", "spec.template.spec.requirements", "one item per line"),
        (make_node_pool(requirements=["a"]), "error", REQUIREMENT, "write fields"),
        (make_node_pool(expireAfter="30d"), "error", "spec.template.spec.expireAfter", "write 720h"),
        (make_node_pool(expireAfter="never"), "error", "spec.template.spec.expireAfter", "write Never"),
        (make_node_pool(expireAfter="soon"), "error", "spec.template.spec.expireAfter", "write 720h, 30s or Never"),
        (make_node_pool(expireAfter=30), "error", "spec.template.spec.expireAfter", "write 30s"),
        (
            make_disruption_pool(consolidationPolicy="whenEmpty"),
            "error",
            "spec.disruption.consolidationPolicy",
            "WhenEmpty?",
        ),
        (
            make_disruption_pool(consolidationPolicy="x"),
            "error",
            "spec.disruption.consolidationPolicy",
            "write one of WhenEmpty,",
        ),
        (make_disruption_pool(budgets=[BUDGET]), "error", "spec.disruption.budgets[0].schedule", "write five fields"),
        (make_node_pool(taints=[GPU, GPU]), "error", "spec.template.spec.taints[1]", "remove one"),
        (
            make_node_pool(
                requirements=[make_requirement("karpenter.k8s.aws/instance-cpu", "Gt", "15")],
                spec={"limits": {"cpu": 8}},
            ),
            "error",
            "spec.limits.cpu",
            "smallest instance (16)",
        ),
        (make_node_class(role="arn:aws:iam::1:role/a/nodes"), "error", "spec.role", "write nodes"),
        (
            make_node_class(detailedMonitoring="yes"),
            "error",
            "spec.detailedMonitoring",
            "true or false, without quotes",
        ),
        (make_node_class(subnetSelectorTerms=[{"id": "a"}]), "error", "spec.subnetSelectorTerms[0].id", "like subnet-"),
        (
            make_node_class(amiSelectorTerms=[{"tags": {"Name": "ami-123"}}], amiFamily="AL2"),
            "warning",
            "spec.amiSelectorTerms[0].tags.Name",
            "write `id: ami-123`",
        ),
        (
            make_pod(make_annotations("do-not-disrupt", "true")),
            "warning",
            ANNOTATIONS + "do-not-disrupt",
            "did you mean",
        ),
        (
            make_pod(make_annotations("karpenter.sh/doNotEvict", "true")),
            "warning",
            f"{ANNOTATIONS}karpenter.sh/doNotEvict",
            "o-not",
        ),
        (make_pod(make_annotations(DO_NOT, "True")), "warning", ANNOTATIONS + DO_NOT, 'write "true"'),
        (make_pod(make_annotations(DO_NOT, "false")), "warning", ANNOTATIONS + DO_NOT, "remove it"),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(EVICTION_PRICE, "cheap")},
            "error",
            ANNOTATIONS + EVICTION_PRICE,
            "'cheap' is not an amount in USD per eviction: write a number like 0.05",
        ),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(LIMIT_USD, "cheap")},
            "error",
            ANNOTATIONS + LIMIT_USD,
            "'cheap' is not an amount in USD per hour: write a number like 12.50",
        ),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(ZONE_BALANCE, "10%")},
            "error",
            ANNOTATIONS + ZONE_BALANCE,
            "'10%' is not a percentage: write a whole number from 0 to 1000, like 10",
        ),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(SPOT_SHARE, "half")},
            "error",
            ANNOTATIONS + SPOT_SHARE,
            "'half' is not a whole number from 0 to 100: write a number like 50; until it is fixed, no nodes",
        ),
        (
            make_node_pool("a", spec={"replicas": 2}) | {"metadata": {"name": "a"} | make_annotations(SPOT_SHARE, "5")},
            "warning",
            ANNOTATIONS + SPOT_SHARE,
            "has no effect on a static NodePool: remove it",
        ),
        (
            make_node_pool(
                meta=make_annotations(ON_DEMAND_BASE, "5"),
                requirements=[make_requirement("karpenter.sh/capacity-type", "In", "spot")],
            ),
            "warning",
            ANNOTATIONS + ON_DEMAND_BASE,
            "has no effect: the NodePool must allow spot and on-demand: allow both, or remove it",
        ),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(SPOT_SHARE, "100")},
            "warning",
            ANNOTATIONS + SPOT_SHARE,
            "has no effect: 100 % may be Spot and the base is 0",
        ),
        (
            make_pod(make_annotations(SPOT_SHARE_UNIT, "vcpu")),
            "error",
            ANNOTATIONS + SPOT_SHARE_UNIT,
            "'vcpu' is not a unit: write pods; until it is fixed, the pods get no nodes",
        ),
        (
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "d"} | make_annotations(SPOT_SHARE, "50"),
                "spec": {"template": make_pod()},
            },
            "warning",
            ANNOTATIONS + SPOT_SHARE,
            "has no effect on a Deployment, only on its pods: move it to spec.template.metadata.annotations",
        ),
        (
            make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(REBALANCE_POLICY, "Drain")},
            "error",
            ANNOTATIONS + REBALANCE_POLICY,
            "rebalance recommendations are ignored: write one of ignore, cordon, replace, drain",
        ),
        (
            make_node_pool("a", spec={"replicas": 2}) | {"metadata": {"name": "a"} | make_annotations(LIMIT_USD, "5")},
            "error",
            ANNOTATIONS + LIMIT_USD,
            "has no effect on a static NodePool: use spec.limits.nodes",
        ),
        (make_pod({"labels": {"a": 1}}), "error", "metadata.labels.a", 'in quotes: "1"'),
        (make_pod(nodeSelector={"a": True}), "error", "spec.nodeSelector.a", 'in quotes: "true"'),
        (make_pod(tolerations=[{"key": "a", "value": 1}]), "error", "spec.tolerations[0].value", 'in quotes: "1"'),
        (
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n"} | make_annotations("karpenter.sh/do-not-evict", "true"),
            },
            "warning",
            ANNOTATIONS + "karpenter.sh/do-not-evict",
            "write karpenter.sh/do-not-disrupt",
        ),
        (
            make_pod({"annotations": {"karpenter.sh/do-not-disrupt": True}}),
            "error",
            "metadata.annotations.karpenter.sh/do-not-disrupt",
            'in quotes: "true"',
        ),
        (
            make_pod({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}),
            "warning",
            "metadata.annotations.cluster-autoscaler.kubernetes.io/safe-to-evict",
            "unless its setting honor-cluster-autoscaler-annotations is on: write karpenter.sh/do-not-disrupt",
        ),
        (
            make_pod({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "data"}}),
            "warning",
            "metadata.annotations.cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
            "local volumes never keep a node",
        ),
        (
            make_node_pool(meta=make_annotations("joiner.dev/graceful-expiration", "24h"), expireAfter="Never"),
            "warning",
            "metadata.annotations.joiner.dev/graceful-expiration",
            "has no effect: nodes with expireAfter Never do not expire",
        ),
        (
            make_pod({"annotations": {"karpenter.sh/do-not-evict": "true"}}),
            "warning",
            "metadata.annotations.karpenter.sh/do-not-evict",
            "old name of karpenter.sh/do-not-disrupt",
        ),
    ],
)
def test_mistake_in_an_object_is_reported_with_its_field(
    lint: Any, value: Object, level: str, field: str, remedy: str
) -> None:
    code, findings = lint(value)
    [message] = [
        finding_message
        for finding_level, where, finding_message in findings
        if (finding_level, where) == (level, field)
    ]
    assert remedy in message
    assert code == (level == "error")


def test_older_api_version_suggests_convert_and_reports_its_errors(lint: Any) -> None:
    old = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "a"},
        "spec": {"wight": 1},
    }
    code, findings = lint(old)
    fields = {field: message for level, field, message in findings if level == "error"}
    assert code == 1
    assert "joiner convert" in fields["apiVersion"]
    assert "did you mean weight?" in fields["spec.wight"]


def test_nodepool_limits_are_compared_with_the_catalog(lint: Any, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    limited = make_node_pool(
        spec={"limits": {"cpu": "1"}}, requirements=[make_requirement("node.kubernetes.io/instance-type", "In", "m.02")]
    )
    _, findings = lint(limited, make_node_class(), flags=("--instance-types", str(catalogue)))
    [(_, field, message)] = findings
    assert (field, "smallest instance (2)" in message) == ("spec.limits.cpu", True)


def test_limit_in_usd_is_compared_with_the_catalog(lint: Any, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    limited = make_node_pool("a") | {"metadata": {"name": "a"} | make_annotations(LIMIT_USD, "0.0001")}
    _, findings = lint(limited, make_node_class(), flags=("--instance-types", str(catalogue)))
    [(_, field, message)] = findings
    assert (field, "is below the cheapest instance" in message) == (ANNOTATIONS + LIMIT_USD, True)


def test_missing_catalog_is_reported(lint: Any, tmp_path: Path) -> None:
    code, findings = lint(make_node_class(), flags=("--instance-types", str(tmp_path / "none.json")))
    assert (code, len(findings)) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second", "unused"),
    [
        (make_node_pool("a"), make_node_pool("b", requirements=[CPUS]), ["b"]),
        (make_node_pool("a", spec={"limits": {"cpu": "100"}}), make_node_pool("b"), []),
        (make_node_pool("a"), make_node_pool("b", spec={"weight": 1}), ["a"]),
        (make_node_pool("a", requirements=[CPUS]), make_node_pool("b"), []),
        (make_node_pool("a", requirements=[CPUS]), make_node_pool("b", requirements=[CPUS]), ["b"]),
        (
            make_node_pool("a", requirements=[CPUS]),
            make_node_pool("b", requirements=[make_requirement(CPUS["key"], "In", "4", "8")]),
            [],
        ),
        (make_node_pool("a", taints=[GPU]), make_node_pool("b"), []),
        (make_node_pool("a", taints=[GPU]), make_node_pool("b", taints=[GPU]), ["b"]),
        (make_node_pool("a"), make_node_pool("b", requirements=[make_requirement("team", "In", "x")]), []),
    ],
)
def test_nodepool_shadowed_by_another_is_reported(
    tmp_path: Path, capsys: Out, first: Object, second: Object, unused: list[str]
) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(yaml.safe_dump_all([first, second]))
    assert main(["lint", "-f", str(file), "-o", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in findings if "has precedence" in finding["message"]] == unused


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 1),
        ([{"key": "gpu", "operator": "Exists"}], 0),
        ([{"key": "gpu", "value": "x"}], 1),
        (["no object"], 1),
    ],
)
def test_taint_that_no_pod_tolerates_is_reported(lint: Any, tolerations: list[Object], count: int) -> None:
    _, findings = lint(make_node_pool(taints=[GPU]), make_node_class(), make_pod(tolerations=tolerations))
    assert len(findings) == count


def test_taints_are_not_checked_without_pods(lint: Any) -> None:
    assert lint(make_node_pool(taints=[GPU]), make_node_class()) == (0, [])


def test_findings_have_line_numbers_and_a_summary_count(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "some.yaml"
    file.write_text('a:\n- "x", "y"\n---\n' + yaml.safe_dump_all([make_node_pool(expireAfter="5m"), make_node_class()]))
    assert main(["lint", "-f", str(file)]) == 1
    out, stderr = capsys.readouterr()
    broken, short = out.splitlines()
    assert broken.startswith(f"{file}:2: not YAML")
    assert ": warning: NodePool a: spec.template.spec.expireAfter: " in short
    assert stderr == "joiner lint: 1 error, 1 warning\n"


def test_lint_without_input_is_rejected(capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["lint"])
    assert raised.value.code == 2
    assert "no input: add -f FILE" in capsys.readouterr().err


@pytest.mark.parametrize("lasts", ["true", "30m", "1h30m"])
def test_do_not_disrupt_annotation_with_a_duration_is_valid(lint: Any, lasts: str) -> None:
    assert lint(make_pod(make_annotations(DO_NOT, lasts))) == (0, [])


def test_api_version_too_old_to_convert_is_reported_once(lint: Any) -> None:
    older = {"apiVersion": "provisioning.karpenter.sh/v1alpha3", "kind": "Provisioner", "metadata": {"name": "a"}}
    _, [(level, field, message)] = lint(older)
    assert (level, field, "write it as karpenter.sh/v1alpha5" in message) == ("error", "kind", True)


def make_pool_with(key: str, *values: str, operator: str = "In") -> Object:
    return make_node_pool(requirements=[make_requirement(key, operator, *values)])


@pytest.mark.parametrize(
    ("key", "value", "suggestion"),
    [
        ("node.kubernetes.io/instance-type", "m5.lrge", "did you mean m5.large"),
        ("node.kubernetes.io/instance-type", "m5.enormous", "m5.12xlarge, m5.16xlarge, m5.24xlarge and 6 more?"),
        ("node.kubernetes.io/instance-type", "pizza", "correct or remove it (checked against botocore"),
        ("karpenter.k8s.aws/instance-family", "m55", "did you mean m5"),
        ("topology.kubernetes.io/zone", "us-esat-1b", "did you mean us-east-1b?"),
        ("topology.kubernetes.io/zone", "us-east-1z", "did you mean us-east-1a?"),
        ("topology.kubernetes.io/zone", "us-east-1", "this is a region: write its zones, such as us-east-1a"),
        ("topology.kubernetes.io/zone", "use1-az1", "use the key topology.k8s.aws/zone-id"),
        ("topology.kubernetes.io/zone", "everywhere", "write a zone, such as us-east-1a"),
        ("kubernetes.io/arch", "x86_64", "did you mean amd64?"),
        ("kubernetes.io/arch", "sparc", "write one of amd64, arm64"),
        ("karpenter.sh/capacity-type", "Spot", "did you mean spot?"),
        ("karpenter.sh/capacity-type", "on_demand", "did you mean on-demand?"),
    ],
)
def test_unknown_label_value_is_an_error_in_nodepools_and_pods(
    lint: Any, key: str, value: str, suggestion: str
) -> None:
    _, [(level, field, message)] = lint(make_pool_with(key, value), make_node_class())
    assert (level, field) == ("error", f"{REQUIREMENT}.values[0]")
    assert suggestion in message
    affinity = {
        "nodeAffinity": {"a": {"nodeSelectorTerms": [{"matchExpressions": [make_requirement(key, "In", value)]}]}}
    }
    _, findings = lint(make_pod(nodeSelector={key: value}, affinity=affinity))
    assert [level for level, _, _ in findings] == ["error", "error"]
    assert {message for _, _, message in findings} == {message}


@pytest.mark.parametrize("zone", ["us-east-1a", "us-west-2-lax-1b", "us-east-1-wl1-bos-wlz-1", "us-gov-west-1c"])
def test_zones_local_zones_and_wavelength_zones_are_valid(lint: Any, zone: str) -> None:
    assert lint(make_pool_with("topology.kubernetes.io/zone", zone), make_node_class()) == (0, [])


def test_zones_of_two_regions_get_a_warning(lint: Any) -> None:
    pool = make_pool_with("topology.kubernetes.io/zone", "us-east-1a", "eu-west-1a", "us-east-1b")
    code, [(level, field, message)] = lint(pool, make_node_class())
    assert (code, level, field) == (0, "warning", f"{REQUIREMENT}.values[1]")
    assert "eu-west-1a is in eu-west-1, but other zones in the input are in us-east-1" in message


def test_unknown_excluded_label_value_gets_a_warning(lint: Any) -> None:
    pool = make_pool_with("node.kubernetes.io/instance-type", "m5.lrge", operator="NotIn")
    _, [(level, _, message)] = lint(pool, make_node_class())
    assert (level, "m5.large" in message) == ("warning", True)


def test_instance_types_and_zones_are_compared_with_the_catalog(lint: Any, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    pools = (
        make_pool_with("node.kubernetes.io/instance-type", "m.02", "m5.large", "m.99"),
        make_node_pool("b", requirements=[make_requirement("topology.kubernetes.io/zone", "In", "us-east-1e")]),
    )
    _, findings = lint(*pools, make_node_class(), flags=("--instance-types", str(catalogue)))
    levels_by_field = [(level, field, message.partition(":")[0]) for level, field, message in findings]
    assert levels_by_field == [
        (
            "warning",
            f"{REQUIREMENT}.values[1]",
            f"instance type m5.large is not in the catalog of {CATALOGUE['region']}",
        ),
        ("error", f"{REQUIREMENT}.values[2]", "unknown instance type m.99"),
        ("error", f"{REQUIREMENT}.values[0]", "the catalog has no zone us-east-1e"),
    ]


def test_unchecked_instance_type_is_reported_without_an_instance_type_list(
    lint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.lint.label_values.load_instance_type_names", frozenset)
    _, [(level, _, message)] = lint(make_pool_with("node.kubernetes.io/instance-type", "m5.lrge"), make_node_class())
    assert (level, message) == ("warning", "instance type m5.lrge is not checked: add --instance-types FILE")


@pytest.mark.parametrize(
    ("node_classes", "level", "message"),
    [
        ([], "warning", "EC2NodeClass default is not in the input, so it is not checked: add its file with -f"),
        ([make_node_class() | {"metadata": {"name": "defaults"}}], "error", "did you mean defaults?"),
        ([make_node_class() | {"metadata": {"name": "gpu"}}], "error", "write one of gpu, or add its file"),
    ],
)
def test_node_class_missing_from_the_input_is_reported(
    lint: Any, node_classes: list[Object], level: str, message: str
) -> None:
    _, [finding] = lint(make_node_pool(), *node_classes)
    assert finding[:2] == (level, "spec.template.spec.nodeClassRef.name")
    assert message in finding[2]


@pytest.mark.parametrize(
    ("resource", "amount", "fix"),
    [
        ("cpu", "two", "write 2"),
        ("cpu", "2 cores", "write 2"),
        ("memory", "1Gb", "write 1Gi"),
        ("memory", "1.5 GB", "write 1.5Gi"),
        ("memory", "512MB", "write 512Mi"),
        ("memory", "much", "write a quantity, such as 1000 or 400Gi"),
        ("cpu", "10%", "write a quantity, such as 4 or 500m"),
    ],
)
def test_invalid_resource_quantity_is_an_error(lint: Any, resource: str, amount: str, fix: str) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"resources": {"requests": {resource: amount}}}]}}},
    }
    code, [(level, field, message)] = lint(deployment)
    assert (code, level) == (1, "error")
    assert field == f"spec.template.spec.containers[0].resources.requests.{resource}"
    assert message == f"{amount!r} is not a quantity: {fix}"
    _, [(_, field, message)] = lint(make_node_pool(spec={"limits": {resource: amount}}), make_node_class())
    assert (field, "is not a Kubernetes quantity" in message) == (f"spec.limits.{resource}", True)
