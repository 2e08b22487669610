"""`joiner drift`."""

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from cli.drift.differences import describe_difference
from cli.main import main
from shared.decide.disruption.drift.drift import DriftInputs, find_drift_reason
from shared.model.core import labels
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SecurityGroup, Subnet
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_class import ResolvedImage
from shared.model.karpenter.node_pool import NodePool
from tests.support.catalogues import NOW, make_node_class, make_requirements
from tests.support.cli.fleet_files import NODECLASS, POOL, make_claim, make_instance_type
from tests.support.cli.fleet_files import make_node_manifests as node
from tests.support.disruption_fleet import FREE, TYPES, make_node_with_pods

Out = pytest.CaptureFixture[str]
SINCE = "2026-11-21T08:00:00Z"


def make_launched_claim(
    name: str, on: str, *, drifted: str = "", image: str = "ami-1", **annotations: str
) -> dict[str, Any]:
    node_claim = make_claim(name, on, 4, annotations=annotations)
    node_claim["status"]["imageID"] = image
    if drifted:
        condition = {"type": "Drifted", "status": "True", "reason": drifted, "lastTransitionTime": SINCE}
        node_claim["status"]["conditions"].append(condition)
    return node_claim


CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}]},
    "status": {"amis": [{"id": "ami-2", "name": "new", "requirements": []}]},
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    objects = [
        POOL,
        CLASS,
        *node("n1.internal", 4),
        *node("n2.internal", 4),
        *node("m1.internal", 4),
        make_launched_claim("c1", "n1.internal", drifted="AMIDrift"),
        make_launched_claim("c2", "n2.internal", image="ami-2"),
        make_launched_claim("c3", "m1.internal"),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(
        json.dumps({"region": "nowhere", "instanceTypes": [make_instance_type(4)]})
    )
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


def test_drifted_node_is_reported_with_old_and_new_value_and_time(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n1", *files]) == 0
    assert capsys.readouterr() == (f"n1.internal: AMIDrift: ami-1 -> ami-2 (since {SINCE})\n", "")


@pytest.mark.parametrize("name", ["n1", "n1.internal", "c1"])
def test_node_is_found_by_node_name_short_name_or_nodeclaim(name: str, files: list[str], capsys: Out) -> None:
    assert main(["drift", name, *files]) == 0
    assert capsys.readouterr().out.startswith("n1.internal: AMIDrift")


def test_drift_not_yet_recorded_in_status_is_reported(files: list[str], capsys: Out) -> None:
    assert main(["drift", "c3", *files]) == 0
    assert capsys.readouterr().out == "m1.internal: AMIDrift: ami-1 -> ami-2 (not recorded in status.conditions yet)\n"


def test_undrifted_node_is_reported_as_such(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n2", *files]) == 0
    assert capsys.readouterr().out == "n2.internal has not drifted\n"


def test_all_drifted_nodes_are_listed_without_a_name(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["n1.internal", "m1.internal"]
    assert total == "2 of 3 nodes have drifted: 2 AMIDrift"


def test_long_drift_lists_are_truncated_and_counted_by_reason(tmp_path: Path, capsys: Out) -> None:
    objects = [POOL, CLASS]
    for number in range(20):
        objects += [*node(f"n{number:02}.internal", 4), make_launched_claim(f"c{number:02}", f"n{number:02}.internal")]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(
        json.dumps({"region": "nowhere", "instanceTypes": [make_instance_type(4)]})
    )
    files = ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]
    assert main(["drift", *files]) == 0
    *first, ellipsis_line, total = capsys.readouterr().out.splitlines()
    assert [line.partition(".")[0] for line in first] == [f"n{number:02}" for number in range(15)]
    assert (ellipsis_line, total) == (
        "… and 5 more nodes (--all shows them)",
        "20 of 20 nodes have drifted: 20 AMIDrift",
    )
    assert main(["drift", *files, "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_drift_condition_is_used_without_a_catalog(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files[:2]]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"n1.internal: AMIDrift: ami-1 -> ami-2 (since {SINCE})",
        "1 of 3 nodes have drifted",
    ]


def test_json_output_has_all_drift_fields(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files, "-o", "json"]) == 0
    first, second, _ = json.loads(capsys.readouterr().out)
    assert first == {
        "apiVersion": "joiner/v1",
        "node": "n1.internal",
        "nodeClaim": "c1",
        "nodePool": "default",
        "drifted": True,
        "reason": "AMIDrift",
        "actual": "ami-1",
        "required": "ami-2",
        "since": SINCE,
        "conditionSet": True,
    }
    assert (second["drifted"], second["reason"], second["since"]) == (False, "", None)


@pytest.mark.parametrize(
    ("flag", "lines"),
    [
        ("--mark", ["kubectl annotate --overwrite nodeclaim c2 karpenter.sh/voluntary-disruption=drifted"]),
        (
            "--unmark",
            [
                "kubectl annotate --overwrite nodeclaim c2 karpenter.sh/voluntary-disruption-",
                "kubectl annotate --overwrite node n2.internal karpenter.sh/voluntary-disruption-",
            ],
        ),
    ],
)
def test_mark_flag_only_prints_the_kubectl_command(flag: str, lines: list[str], files: list[str], capsys: Out) -> None:
    assert main(["drift", "n2", *files, flag]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_node_marked_for_replacement_is_reported_as_drifted(tmp_path: Path, capsys: Out) -> None:
    marked = make_launched_claim("c1", "n1", **{labels.VOLUNTARY_DISRUPTION: "drifted"})
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [POOL, marked]}))
    assert main(["drift", "c1", "-f", str(tmp_path / "c.json")]) == 0
    assert "n1: DriftRequested: not drifted -> a replacement, requested by its annotation" in capsys.readouterr().out


def test_unknown_node_is_reported_with_existing_names(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n9", *files]) == 1
    assert capsys.readouterr().err == (
        "joiner drift: n9 not found; the cluster has m1.internal, n1.internal, n2.internal\n"
    )


def test_ambiguous_short_node_name_is_rejected(tmp_path: Path, capsys: Out) -> None:
    objects = [POOL, make_launched_claim("c1", "n1.east"), make_launched_claim("c2", "n1.west")]
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    assert main(["drift", "n1", "-f", str(tmp_path / "c.json")]) == 1
    assert capsys.readouterr().err == "joiner drift: n1 is ambiguous: n1.east, n1.west\n"


def test_cluster_without_nodepool_nodes_is_reported(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "c.json").write_text(json.dumps(POOL))
    assert main(["drift", "n9", "-f", str(tmp_path / "c.json")]) == 1
    assert "no NodePool has nodes" in capsys.readouterr().err


def test_missing_file_is_reported(capsys: Out) -> None:
    assert main(["drift", "-f", "/nonexistent.json"]) == 1
    assert "/nonexistent.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-f", "x", "--mark"], "--mark and --unmark require NODE"),
        (["n", "-f", "x", "--mark", "--unmark"], "not allowed with argument"),
    ],
)
def test_invalid_options_are_rejected(arguments: list[str], words: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["drift", *arguments])
    assert words in capsys.readouterr().err


RESOLVED = replace(
    make_node_class(),
    resolved_images=(ResolvedImage(image_id="ami-2"),),
    resolved_security_groups=(SecurityGroup(group_id="sg-1", name="a"), SecurityGroup(group_id="sg-2", name="b")),
    resolved_subnets=(Subnet(subnet_id="subnet-1", zone="a", zone_id="az1", available_ip_count=9),),
    resolved_capacity_reservations=(CapacityReservation(reservation_id="cr-2", instance_type="m.04", zone="a"),),
    resolved_placement_group=PlacementGroup(group_id="pg-1", name="g"),
)
INSTANCE = Instance(
    instance_id="a",
    instance_type="m.04",
    zone="a",
    subnet_id="subnet-9",
    image_id="ami-1",
    state="running",
    launched_at=NOW,
    capacity_type="on-demand",
    security_group_ids=("sg-9", "sg-1"),
)


def make_drift_inputs(pool: NodePool = FREE, claim_labels: dict[str, str] | None = None) -> DriftInputs:
    _, node_claim, _ = make_node_with_pods("a")
    notes = {labels.NODEPOOL_HASH: "old", labels.NODECLASS_HASH: "older"}
    meta = replace(
        node_claim.meta,
        labels=build_pairs(dict(node_claim.meta.labels) | (claim_labels or {})),
        annotations=build_pairs(notes),
    )
    return DriftInputs(
        claim=replace(node_claim, meta=meta, image_id="ami-1"),
        pool=pool,
        node_class=RESOLVED,
        instance=INSTANCE,
        instance_types=MappingProxyType({instance_type.name: instance_type for instance_type in TYPES}),
        now=NOW,
    )


def make_pool_requiring(*requirement_items: Any) -> NodePool:
    return replace(FREE, meta=ObjectMeta(name="default"), requirements=make_requirements(*requirement_items))


RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1"}


@pytest.mark.parametrize(
    ("inputs", "reason", "was", "expected_target"),
    [
        (
            make_drift_inputs(make_pool_requiring((labels.ZONE, "In", ("b", "c")))),
            "RequirementsDrifted",
            f"{labels.ZONE}=a",
            "In b, c",
        ),
        (
            make_drift_inputs(make_pool_requiring(("team", "Exists", ()))),
            "RequirementsDrifted",
            "no label team",
            "team Exists",
        ),
        (make_drift_inputs(), "NodePoolDrifted", "template old", "template "),
        (make_drift_inputs(), "NodeClassDrift", "node class older", "node class "),
        (make_drift_inputs(), "AMIDrift", "ami-1", "ami-2"),
        (make_drift_inputs(), "SecurityGroupDrift", "sg-1, sg-9", "sg-1, sg-2"),
        (make_drift_inputs(), "SubnetDrift", "subnet-9", "subnet-1"),
        (make_drift_inputs(claim_labels=RESERVED), "CapacityReservationDrift", "cr-1", "cr-2"),
        (make_drift_inputs(), "PlacementGroupDrift", "no placement group", "pg-1"),
        (make_drift_inputs(), "InstanceTypeNotFound", "m.04, on-demand, in a", "an offering in the catalog"),
        (make_drift_inputs(), "Unknown", "", ""),
    ],
)
def test_drift_difference_is_described_for_each_reason(
    inputs: DriftInputs, reason: str, was: str, expected_target: str
) -> None:
    difference = describe_difference(inputs, reason)
    assert difference[0] == was
    assert expected_target in difference[1]


@pytest.mark.parametrize("blind", [lambda one: replace(one, node_class=None, instance=None)])
def test_drift_difference_without_node_class_and_instance_is_empty(blind: Callable[[DriftInputs], DriftInputs]) -> None:
    inputs = blind(make_drift_inputs())
    for reason in ("AMIDrift", "SecurityGroupDrift", "SubnetDrift", "CapacityReservationDrift", "PlacementGroupDrift"):
        assert describe_difference(inputs, reason)[1] in ("", "none", "no reservation")
    assert describe_difference(inputs, "NodeClassDrift")[1] == "node class none"
    assert describe_difference(inputs, "RequirementsDrifted") == ("labels", "requirements")


def test_requested_drift_has_a_description() -> None:
    assert find_drift_reason(replace(make_drift_inputs(), is_drift_requested=True)) == "DriftRequested"
    assert describe_difference(make_drift_inputs(), "DriftRequested")[0] == "not drifted"
    assert NODECLASS["name"] == "default"
