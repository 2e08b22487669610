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


def test_what_is_right_is_passed_over(lint: Any) -> None:
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
        (make_node_pool(spec={"limits": {"cpu": "10%"}}), "error", "spec.limits.cpu", "should match"),
        (
            make_node_pool(requirements=[make_requirement("karpenter.k8s.aws/instance-cpu", "In", 4)]),
            "error",
            "spec.template.spec.requirements[0].values[0]",
            "write it in quotes",
        ),
        (make_node_pool(expireAfter="5m"), "warning", "spec.template.spec.expireAfter", "after 5 minutes"),
        (make_node_pool(spec={"limits": {"cpu": "500m"}}), "error", "spec.limits.cpu", "nothing can be launched"),
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
        (make_node_pool(requirements={}), "error", "spec.template.spec.requirements", "each item on its own line"),
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
            "smallest type has 16",
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
            make_pod({"annotations": {"karpenter.sh/do-not-evict": "true"}}),
            "warning",
            "metadata.annotations.karpenter.sh/do-not-evict",
            "the old name of karpenter.sh/do-not-disrupt",
        ),
    ],
)
def test_what_is_wrong_with_one_object_is_told_with_its_field(
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


def test_an_older_api_is_told_to_be_converted_and_what_that_would_refuse(lint: Any) -> None:
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


def test_limits_are_compared_with_what_is_sold(lint: Any, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    limited = make_node_pool(
        spec={"limits": {"cpu": "1"}}, requirements=[make_requirement("node.kubernetes.io/instance-type", "In", "m.02")]
    )
    _, findings = lint(limited, flags=("--instance-types", str(catalogue)))
    [(_, field, message)] = findings
    assert (field, "the smallest type has 2" in message) == ("spec.limits.cpu", True)


def test_a_catalogue_that_is_none_is_told(lint: Any, tmp_path: Path) -> None:
    code, findings = lint(make_node_pool(), flags=("--instance-types", str(tmp_path / "none.json")))
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
def test_a_pool_that_another_leaves_nothing_to_is_told(
    tmp_path: Path, capsys: Out, first: Object, second: Object, unused: list[str]
) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(yaml.safe_dump_all([first, second]))
    assert main(["lint", "-f", str(file), "-o", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in findings if "comes first" in finding["message"]] == unused


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 1),
        ([{"key": "gpu", "operator": "Exists"}], 0),
        ([{"key": "gpu", "value": "x"}], 1),
        (["no object"], 1),
    ],
)
def test_a_taint_that_no_pod_tolerates_is_told(lint: Any, tolerations: list[Object], count: int) -> None:
    _, findings = lint(make_node_pool(taints=[GPU]), make_pod(tolerations=tolerations))
    assert len(findings) == count


def test_without_pods_nobody_knows_who_tolerates_what(lint: Any) -> None:
    assert lint(make_node_pool(taints=[GPU])) == (0, [])


def test_lines_say_where_and_the_last_one_how_many(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "some.yaml"
    file.write_text('a:\n- "x", "y"\n---\n' + yaml.safe_dump(make_node_pool(expireAfter="5m")))
    assert main(["lint", "-f", str(file)]) == 1
    out, stderr = capsys.readouterr()
    broken, short = out.splitlines()
    assert broken.startswith(f"{file}:2: not YAML")
    assert ": warning: NodePool a: spec.template.spec.expireAfter: " in short
    assert stderr == "joiner lint: 1 error, 1 warning\n"


def test_nothing_to_look_at_is_wrong_usage(capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["lint"])
    assert raised.value.code == 2
    assert "name a file with -f" in capsys.readouterr().err


@pytest.mark.parametrize("lasts", ["true", "30m", "1h30m"])
def test_a_pod_that_is_protected_for_a_time_is_passed_over(lint: Any, lasts: str) -> None:
    assert lint(make_pod(make_annotations(DO_NOT, lasts))) == (0, [])


def test_what_is_older_than_what_is_converted_is_told_once(lint: Any) -> None:
    older = {"apiVersion": "provisioning.karpenter.sh/v1alpha3", "kind": "Provisioner", "metadata": {"name": "a"}}
    _, [(level, field, message)] = lint(older)
    assert (level, field, "write it as karpenter.sh/v1alpha5" in message) == ("error", "kind", True)
