"""`joiner drift`."""

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from cli.differences import difference
from cli.main import main
from shared.disruption.drifting import Drifting, drift_of
from shared.model import labels
from shared.model.ec2 import CapacityReservation, Instance, PlacementGroup, SecurityGroup, Subnet
from shared.model.nodeclasses import ResolvedImage
from shared.model.nodepools import NodePool
from shared.model.objects import Meta, pairs
from tests.unit.catalogues import NOW, needs, node_class
from tests.unit.disruption_fleet import FREE, TYPES, machine
from tests.unit.fleet_files import NODECLASS, POOL, claim, kind
from tests.unit.fleet_files import machine as node

Out = pytest.CaptureFixture[str]
SINCE = "2026-11-21T08:00:00Z"


def launched(name: str, on: str, *, drifted: str = "", image: str = "ami-1", **annotations: str) -> dict[str, Any]:
    one = claim(name, on, 4, annotations=annotations)
    one["status"]["imageID"] = image
    if drifted:
        known = {"type": "Drifted", "status": "True", "reason": drifted, "lastTransitionTime": SINCE}
        one["status"]["conditions"].append(known)
    return one


CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}]},
    "status": {"amis": [{"id": "ami-2", "name": "new", "requirements": []}]},
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    some = [
        POOL,
        CLASS,
        *node("n1.internal", 4),
        *node("n2.internal", 4),
        *node("m1.internal", 4),
        launched("c1", "n1.internal", drifted="AMIDrift"),
        launched("c2", "n2.internal", image="ami-2"),
        launched("c3", "m1.internal"),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": some}))
    (tmp_path / "catalogue.json").write_text(json.dumps({"region": "nowhere", "instanceTypes": [kind(4)]}))
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


def test_a_node_that_has_drifted_says_from_what_to_what_and_since_when(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n1", *files]) == 0
    assert capsys.readouterr() == (f"n1.internal: AMIDrift: ami-1 -> ami-2 (since {SINCE})\n", "")


@pytest.mark.parametrize("name", ["n1", "n1.internal", "c1"])
def test_a_node_has_many_names(name: str, files: list[str], capsys: Out) -> None:
    assert main(["drift", name, *files]) == 0
    assert capsys.readouterr().out.startswith("n1.internal: AMIDrift")


def test_what_the_functions_have_not_noticed_is_told_too(files: list[str], capsys: Out) -> None:
    assert main(["drift", "c3", *files]) == 0
    assert capsys.readouterr().out == "m1.internal: AMIDrift: ami-1 -> ami-2 (the next sweep will notice)\n"


def test_a_node_that_has_not_drifted_says_so(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n2", *files]) == 0
    assert capsys.readouterr().out == "n2.internal has not drifted\n"


def test_without_a_name_all_that_have_drifted_are_told(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files]) == 0
    *some, total = capsys.readouterr().out.splitlines()
    assert [one.partition(":")[0] for one in some] == ["n1.internal", "m1.internal"]
    assert total == "2 of 3 nodes have drifted: 2 AMIDrift"


def test_many_that_have_drifted_are_counted_by_what_and_the_first_are_told(tmp_path: Path, capsys: Out) -> None:
    some = [POOL, CLASS]
    for number in range(20):
        some += [*node(f"n{number:02}.internal", 4), launched(f"c{number:02}", f"n{number:02}.internal")]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": some}))
    (tmp_path / "catalogue.json").write_text(json.dumps({"region": "nowhere", "instanceTypes": [kind(4)]}))
    files = ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]
    assert main(["drift", *files]) == 0
    *first, rest, total = capsys.readouterr().out.splitlines()
    assert [one.partition(".")[0] for one in first] == [f"n{number:02}" for number in range(15)]
    assert (rest, total) == ("… and 5 more nodes (--all shows them)", "20 of 20 nodes have drifted: 20 AMIDrift")
    assert main(["drift", *files, "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_without_a_catalogue_the_condition_counts(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files[:2]]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"n1.internal: AMIDrift: ami-1 -> ami-2 (since {SINCE})",
        "1 of 3 nodes have drifted",
    ]


def test_json_has_every_part(files: list[str], capsys: Out) -> None:
    assert main(["drift", *files, "-o", "json"]) == 0
    first, second, _ = json.loads(capsys.readouterr().out)
    assert first == {
        "node": "n1.internal",
        "nodeClaim": "c1",
        "nodePool": "default",
        "drifted": True,
        "reason": "AMIDrift",
        "was": "ami-1",
        "wanted": "ami-2",
        "since": SINCE,
        "known": True,
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
def test_how_a_node_is_marked_is_printed_and_nothing_is_done(
    flag: str, lines: list[str], files: list[str], capsys: Out
) -> None:
    assert main(["drift", "n2", *files, flag]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_a_marked_node_has_drifted(tmp_path: Path, capsys: Out) -> None:
    marked = launched("c1", "n1", **{labels.VOLUNTARY_DISRUPTION: "drifted"})
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [POOL, marked]}))
    assert main(["drift", "c1", "-f", str(tmp_path / "c.json")]) == 0
    assert "n1: DriftRequested: as it is -> another one, as its annotation asks" in capsys.readouterr().out


def test_a_node_that_is_not_there_is_named_with_those_that_are(files: list[str], capsys: Out) -> None:
    assert main(["drift", "n9", *files]) == 1
    assert capsys.readouterr().err == (
        "joiner drift: n9: no node of a NodePool of ours, or it is going; known are m1.internal, n1.internal, "
        "n2.internal\n"
    )


def test_a_short_name_that_two_have_is_not_guessed_at(tmp_path: Path, capsys: Out) -> None:
    some = [POOL, launched("c1", "n1.east"), launched("c2", "n1.west")]
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": some}))
    assert main(["drift", "n1", "-f", str(tmp_path / "c.json")]) == 1
    assert capsys.readouterr().err == "joiner drift: n1: there are several: n1.east, n1.west\n"


def test_where_there_are_none_that_is_said(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "c.json").write_text(json.dumps(POOL))
    assert main(["drift", "n9", "-f", str(tmp_path / "c.json")]) == 1
    assert "there are none" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: Out) -> None:
    assert main(["drift", "-f", "/nonexistent.json"]) == 1
    assert "/nonexistent.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-f", "x", "--mark"], "which NODE is to be marked?"),
        (["n", "-f", "x", "--mark", "--unmark"], "not allowed with argument"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], words: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["drift", *arguments])
    assert words in capsys.readouterr().err


RESOLVED = replace(
    node_class(),
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


def compared(pool: NodePool = FREE, own: dict[str, str] | None = None) -> Drifting:
    _, mine, _ = machine("a")
    notes = {labels.NODEPOOL_HASH: "old", labels.NODECLASS_HASH: "older"}
    meta = replace(mine.meta, labels=pairs(dict(mine.meta.labels) | (own or {})), annotations=pairs(notes))
    return Drifting(
        claim=replace(mine, meta=meta, image_id="ami-1"),
        pool=pool,
        node_class=RESOLVED,
        instance=INSTANCE,
        types=MappingProxyType({one.name: one for one in TYPES}),
        now=NOW,
    )


def asks(*some: Any) -> NodePool:
    return replace(FREE, meta=Meta(name="default"), requirements=needs(*some))


RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1"}


@pytest.mark.parametrize(
    ("one", "reason", "was", "wanted"),
    [
        (compared(asks((labels.ZONE, "In", ("b", "c")))), "RequirementsDrifted", f"{labels.ZONE}=a", "In b, c"),
        (compared(asks(("team", "Exists", ()))), "RequirementsDrifted", "no label team", "team Exists"),
        (compared(), "NodePoolDrifted", "template old", "template "),
        (compared(), "NodeClassDrift", "node class older", "node class "),
        (compared(), "AMIDrift", "ami-1", "ami-2"),
        (compared(), "SecurityGroupDrift", "sg-1, sg-9", "sg-1, sg-2"),
        (compared(), "SubnetDrift", "subnet-9", "subnet-1"),
        (compared(own=RESERVED), "CapacityReservationDrift", "cr-1", "cr-2"),
        (compared(), "PlacementGroupDrift", "no placement group", "pg-1"),
        (compared(), "InstanceTypeNotFound", "m.04 as on-demand in a", "what is sold"),
        (compared(), "Unknown", "", ""),
    ],
)
def test_in_what_a_machine_differs(one: Drifting, reason: str, was: str, wanted: str) -> None:
    found = difference(one, reason)
    assert found[0] == was
    assert wanted in found[1]


@pytest.mark.parametrize("blind", [lambda one: replace(one, node_class=None, instance=None)])
def test_what_cannot_be_seen_is_no_words_of_its_own(blind: Callable[[Drifting], Drifting]) -> None:
    one = blind(compared())
    for reason in ("AMIDrift", "SecurityGroupDrift", "SubnetDrift", "CapacityReservationDrift", "PlacementGroupDrift"):
        assert difference(one, reason)[1] in ("", "none", "no reservation")
    assert difference(one, "NodeClassDrift")[1] == "node class none"
    assert difference(one, "RequirementsDrifted") == ("labels", "requirements")


def test_every_reason_of_drift_has_words() -> None:
    assert drift_of(replace(compared(), is_asked=True)) == "DriftRequested"
    assert difference(compared(), "DriftRequested")[0] == "as it is"
    assert NODECLASS["name"] == "default"
