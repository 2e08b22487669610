"""`joiner replay`: which cycle is meant, what comes out of it, and what is said of both."""

import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from cli.main import main
from cli.replay import FUNCTIONS
from cli.replay_changes import changed
from cli.replay_cycles import asked_for, since_of
from cli.replay_differences import compared
from cli.replay_launches import requests_said
from cli.replay_selectors import Known
from cli.replay_words import said
from cli.replayed import Decision
from shared.errors import Forbidden, Gone
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteLaunchTemplate,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest, LaunchTemplate, LaunchTemplateConfig, Override
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.taints import Taint
from shared.report.journal import Note
from shared.report.snapshots import read_snapshot
from sim.clock import START
from sim.memory import MemoryBucket
from tests.scenario.worlds import deployment, node_class, pool
from tests.unit.journal_plays import MIXED, interrupted, unpacked

Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer a folder with the bucket of a short play: nodes made, one interrupted, one that went empty."""
    world = interrupted()
    world.seconds(150)
    world.scale(0)
    world.seconds(240)
    return unpacked(world.bucket, tmp_path_factory.mktemp("bucket"))


def replayed(folder: Path, *words: str, capsys: Out) -> tuple[int, dict[str, Any]]:
    status = main(["replay", *words, "--journal", str(folder), "-o", "json"])
    return status, json.loads(capsys.readouterr().out)


def listed(folder: Path, capsys: Out, *words: str) -> list[dict[str, Any]]:
    assert main(["replay", "--list", *words, "--journal", str(folder), "-o", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def first_made(folder: Path, capsys: Out) -> str:
    return next(str(one["cycle"]) for one in listed(folder, capsys) if "NodeClaim" in one["decided"])


# What comes out


def test_every_cycle_that_is_listed_comes_out_the_same(played: Path, capsys: Out) -> None:
    some = listed(played, capsys)
    assert {one["function"] for one in some} == {"provision", "disrupt", "interrupt", "lifecycle", "catalog"}
    assert [one["at"] for one in some] == sorted(one["at"] for one in some)
    for one in some:
        status, told = replayed(played, one["cycle"], capsys=capsys)
        assert (status, told["same"], told["differences"]) == (0, True, [])
        assert told["cycle"] == one["cycle"]


def test_another_node_pool_comes_out_otherwise_and_each_difference_is_told(
    played: Path, tmp_path: Path, capsys: Out
) -> None:
    other = tmp_path / "pool.yaml"
    other.write_text(yaml.safe_dump(pool(types=("c5.xlarge",), capacity=("on-demand",))))
    key = first_made(played, capsys)
    status, told = replayed(played, key, "--with", str(other), capsys=capsys)
    assert (status, told["same"]) == (3, False)
    assert told["changed"] == ["NodePool default (changed)"]
    made = [one for one in told["differences"] if one["what"].startswith("NodeClaim")]
    assert [one["how"] for one in made] == ["changed"]
    asked = [one for one in told["differences"] if one["what"].startswith("fleet request")]
    assert [one["how"] for one in asked] == ["then", "now"]
    assert "c5.xlarge" in asked[1]["now"]
    assert any("EC2 would be asked for something else" in one for one in told["limits"])
    assert "m5.xlarge spot" in made[0]["then"]
    assert "c5.xlarge on-demand" in made[0]["now"]
    assert told["then"]["usdPerHour"] < told["now"]["usdPerHour"]
    assert {one["of"] for one in told["differences"]} == {"action", "verdict"}


def test_the_same_manifest_applied_again_changes_nothing(played: Path, tmp_path: Path, capsys: Out) -> None:
    same = tmp_path / "same.yaml"
    manifests = (node_class(), pool(types=MIXED, capacity=("spot", "on-demand")))
    same.write_text(yaml.safe_dump_all(manifests))
    for one in listed(played, capsys):
        status, told = replayed(played, one["cycle"], "--with", str(same), capsys=capsys)
        assert (status, told["differences"]) == (0, []), one["cycle"]
        pools = [] if "/catalog/" in one["cycle"] else ["NodePool default (as it was)"]
        assert told["changed"] == [*pools, "EC2NodeClass default (as it was)"]
        assert bool(pools) is not any("does not look at any" in note for note in told["notes"])


def test_without_its_node_pool_a_pod_has_no_place(played: Path, capsys: Out) -> None:
    status, told = replayed(played, first_made(played, capsys), "--without", "nodepool/default", capsys=capsys)
    assert status == 3
    assert told["changed"] == ["without NodePool default"]
    assert told["now"]["newNodes"] == 0
    assert any("there is no NodePool" in one["now"] for one in told["differences"])


def test_pods_that_were_not_there_are_planned_for(played: Path, tmp_path: Path, capsys: Out) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump(deployment(4, "late", cpu="1500m")))
    status, told = replayed(played, first_made(played, capsys), "--with", str(more), capsys=capsys)
    assert status == 3
    assert sum(one["what"].startswith("Pod default/late") for one in told["differences"]) == 4


def test_a_node_class_that_selects_otherwise_keeps_what_it_had_and_says_so(
    played: Path, tmp_path: Path, capsys: Out
) -> None:
    other = tmp_path / "class.yaml"
    other.write_text(yaml.safe_dump_all([node_class(amiSelectorTerms=[{"id": "ami-1"}]), node_class("new")]))
    _, told = replayed(played, first_made(played, capsys), "--with", str(other), capsys=capsys)
    assert told["notes"][0].startswith(
        "EC2NodeClass default: spec.amiSelectorTerms[0] (ami-1) cannot be resolved: nothing that was kept says what it "
        "selects; assumed: its images stay what they were: ami-"
    )
    assert told["notes"][-1] == "EC2NodeClass new is new; assumed: it is Ready, and sells what the others do"
    assert told["changed"] == ["EC2NodeClass default (changed)", "EC2NodeClass new (new)"]


def test_what_catalog_made_of_a_class_is_made_again_of_another(played: Path, tmp_path: Path, capsys: Out) -> None:
    key = next(one["cycle"] for one in listed(played, capsys) if one["function"] == "catalog")
    entry = json.loads((played / key).read_text())
    found = read_snapshot((played / entry["snapshot"]).read_bytes()).given.resolved
    assert found is not None
    subnet = (found.found[0][1].subnets or ())[0].subnet_id
    other = tmp_path / "class.yaml"
    other.write_text(yaml.safe_dump(node_class(subnetSelectorTerms=[{"id": subnet}])))
    status, told = replayed(played, key, "--with", str(other), capsys=capsys)
    assert status == 3
    assert f"spec.subnetSelectorTerms select {subnet}, as they were found then" in told["notes"][0]
    assert [one["what"] for one in told["differences"]] == ["status of EC2NodeClass default"]
    assert main(["replay", key, "--with", str(other), "--journal", str(played)]) == 3
    assert "1 EC2NodeClass; as seen at" in capsys.readouterr().out


def test_what_cannot_be_read_of_the_last_look_is_not_known(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy(played, tmp_path)
    for one in listed(folder, capsys):
        if one["function"] == "catalog":
            (folder / json.loads((folder / one["cycle"]).read_text())["snapshot"]).unlink()
    other = tmp_path / "class.yaml"
    other.write_text(yaml.safe_dump(node_class(subnetSelectorTerms=[{"tags": {"team": "shop"}}])))
    _, told = replayed(folder, first_made(folder, capsys), "--with", str(other), capsys=capsys)
    assert "(tags team=shop) cannot be resolved" in told["notes"][0]


def fleet(*overrides: Override, why: str = "w", **fields: Any) -> LaunchInstances:
    template = LaunchTemplate(name="t", image_id="ami-1", user_data="")
    request = FleetRequest(
        client_token="t",  # noqa: S106 - EC2's word
        capacity=1,
        capacity_type="spot",
        allocation_strategy="lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name="t", overrides=overrides),),
    )
    templates = fields.pop("templates", (template,))
    group = LaunchGroup(
        name="g", claims=("c",), request=replace(request, **fields), templates=templates, created_at=START
    )
    return LaunchInstances(group=group, why=why)


LARGE = Override(instance_type="m5.large", zone="a", subnet_id="s", image_id="ami-1", priority=0.1)


@pytest.mark.parametrize(
    ("other", "then", "now"),
    [
        (fleet(LARGE), "", ""),
        (fleet(LARGE, capacity_type="on-demand"), "capacity_type spot", "capacity_type on-demand"),
        (fleet(LARGE, why="v"), "w", "v"),
        (fleet(replace(LARGE, zone="b")), "only here 1 offering: m5.large/a/s", "only here 1 offering: m5.large/b/s"),
        (fleet(LARGE, replace(LARGE, zone="b")), "", "only here 1 offering: m5.large/b/s"),
        (fleet(replace(LARGE, priority=0.2)), "priority of m5.large/a/s 0.1", "priority of m5.large/a/s 0.2"),
        (fleet(LARGE, templates=()), "1 launch template", "0 launch templates"),
        (
            fleet(LARGE, templates=(LaunchTemplate(name="u", image_id="ami-2", user_data=""),)),
            'launch template: image_id="ami-1"',
            'launch template: image_id="ami-2"',
        ),
    ],
)
def test_requests_differ_in_words(other: LaunchInstances, then: str, now: str) -> None:
    assert requests_said(fleet(LARGE), other) == (then, now)


def test_another_catalogue_may_be_bought_from(played: Path, tmp_path: Path, capsys: Out) -> None:
    key = first_made(played, capsys)
    sold = json.loads(gzip.decompress(max((played / "catalogue").glob("*.json.gz")).read_bytes()))
    for one in (*sold["instanceTypes"], *(kind for kinds in sold.get("nodeClasses", {}).values() for kind in kinds)):
        for offering in one["offerings"]:
            offering["price"] *= 3
    dear = tmp_path / "dear.json"
    dear.write_text(json.dumps(sold))
    status, told = replayed(played, key, "--instance-types", str(dear), capsys=capsys)
    assert status == 3
    assert told["notes"] == [f"sold is what {dear} says"]


def test_what_is_wrong_with_a_file_is_told_and_the_rest_is_decided(played: Path, tmp_path: Path, capsys: Out) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(pool("broken") | {"spec": {"template": 3}}))
    status = main(["replay", first_made(played, capsys), "--with", str(bad), "--journal", str(played)])
    told = capsys.readouterr()
    assert status == 1
    assert "NodePool broken" in told.err
    assert "DECIDED THEN" in told.out


# Which cycle is meant


@pytest.mark.parametrize(
    "words",
    [
        ["{key}"],
        ["{name}"],
        ["{id}"],
        ["provision", "{at}"],
        ["{at}Z", "--function", "provision"],
        ["provision", "{clock}"],
        ["{date}", "{clock}", "provision"],
        ["provision", "{offset}"],
    ],
)
def test_a_cycle_is_called_by_key_request_or_instant(words: list[str], played: Path, capsys: Out) -> None:
    key = first_made(played, capsys)
    name = key.rpartition("/")[2].removesuffix(".json")
    at = next(datetime.fromisoformat(one["at"]) for one in listed(played, capsys) if one["cycle"] == key)
    elsewhere = at.astimezone(datetime.strptime("+05:30", "%z").tzinfo)
    known = {
        "key": key,
        "name": name,
        "id": name.partition("-")[2],
        "at": f"{at:%Y-%m-%dT%H:%M:%S}",
        "clock": f"{at:%H:%M:%S}",
        "date": f"{at:%Y-%m-%d}",
        "offset": elsewhere.isoformat(timespec="seconds"),
    }
    _, told = replayed(played, *(one.format(**known) for one in words), capsys=capsys)
    assert told["cycle"] == key


def test_the_latest_is_meant_if_nobody_says_otherwise(played: Path, capsys: Out) -> None:
    last = listed(played, capsys)[-1]["cycle"]
    assert replayed(played, capsys=capsys)[1]["cycle"] == last
    assert replayed(played, "latest", capsys=capsys)[1]["cycle"] == last
    last = listed(played, capsys, "--function", "provision")[-1]["cycle"]
    assert replayed(played, "provision", capsys=capsys)[1]["cycle"] == last


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["2026-11-21"], "cycles are called so: "),
        (["03:33"], "no such cycle in"),
        (["2031-01-01T00:00:00+99:00"], "no such cycle in"),
        (["nonsense"], "no such cycle in"),
        (["watch"], "0 cycles, and none can be decided again"),
    ],
)
def test_a_name_that_is_none_or_several_is_told_with_a_remedy(
    words: list[str], says: str, played: Path, capsys: Out
) -> None:
    assert main(["replay", *words, "--journal", str(played)]) == 1
    assert says in capsys.readouterr().err


def test_words_are_a_function_and_the_rest() -> None:
    assert asked_for([], "").text == "latest"
    assert asked_for(["disrupt"], "").function == "disrupt"
    assert asked_for(["2026-11-21", "disrupt", "08:05"], "").text == "2026-11-21 08:05"
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert since_of(asked_for(["2026-11-21T08"], ""), now) == timedelta(days=3, hours=12)
    assert since_of(asked_for(["2026-13-45"], ""), now) is None
    assert since_of(asked_for(["latest"], ""), now) is None


# What is missing


def copy(played: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(played, folder)
    return folder


def test_an_entry_of_an_older_version_is_not_decided_again(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy(played, tmp_path)
    key = first_made(folder, capsys)
    entry = json.loads((folder / key).read_text())
    (folder / key).write_text(
        json.dumps({name: one for name, one in entry.items() if name not in ("snapshot", "code")})
    )
    assert main(["replay", key, "--journal", str(folder)]) == 1
    assert "was written by a version that kept none" in " ".join(capsys.readouterr().err.split())


def test_a_cycle_that_failed_has_decided_nothing(tmp_path: Path, capsys: Out) -> None:
    entry = {
        "function": "provision",
        "trigger": "t",
        "at": "2026-11-21T08:00:00Z",
        "cluster": "",
        "error": "Throttled: x",
    }
    (tmp_path / "080000-one.json").write_text(json.dumps(entry))
    assert main(["replay", "one", "--journal", str(tmp_path)]) == 1
    assert "it failed before anything was decided" in capsys.readouterr().err


def test_the_journal_alone_is_not_enough_and_that_is_said(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = tmp_path / "only"
    shutil.copytree(played / "journal", folder / "journal")
    assert main(["replay", "--journal", str(folder)]) == 1
    assert "only journal/ was copied: copy snapshot/ and catalogue/ too" in capsys.readouterr().err
    shutil.copytree(played / "snapshot", folder / "snapshot")
    assert main(["replay", "--journal", str(folder)]) == 1
    assert "name another with --instance-types, or copy catalogue/ too" in capsys.readouterr().err
    shutil.copytree(played / "catalogue", folder / "catalogue")
    assert main(["replay", "--journal", str(folder)]) == 0
    assert main(["replay", "--journal", str(folder / "journal")]) == 0


def test_torn_and_foreign_files_are_named(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy(played, tmp_path)
    key = first_made(folder, capsys)
    snapshot = folder / json.loads((folder / key).read_text())["snapshot"]
    whole = snapshot.read_bytes()
    for body in (whole[: len(whole) // 2], b"", gzip.compress(b'{"some": "thing"}')):
        snapshot.write_bytes(body)
        assert main(["replay", key, "--journal", str(folder)]) == 1
        assert "no snapshot that this version can read" in capsys.readouterr().err
    snapshot.write_bytes(whole)
    catalogue = folder / read_snapshot(whole).catalogue
    catalogue.write_bytes(b"{}")
    assert main(["replay", key, "--journal", str(folder)]) == 1
    assert "name another with --instance-types" in capsys.readouterr().err
    (folder / "journal" / "foreign.json").write_text('{"kind": "List"}')
    assert main(["replay", "--list", "--journal", str(folder)]) == 1
    told = capsys.readouterr()
    assert "foreign.json: no entry of a journal" in told.err
    assert "provision" in told.out


def test_among_thousands_of_entries_one_is_found(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy(played, tmp_path)
    key = first_made(folder, capsys)
    entry = json.loads((folder / key).read_text())
    for number in range(2000):
        at = START - timedelta(minutes=number + 1)
        path = folder / "journal" / f"{number}-many.json"
        path.write_text(json.dumps(entry | {"at": at.isoformat()}))
    assert replayed(folder, key, capsys=capsys)[0] == 0
    assert len(listed(folder, capsys)) > 2000
    assert main(["replay", "--list", "--journal", str(folder)]) == 0
    assert "earlier cycles (--all shows them)" in capsys.readouterr().out


# What is said of it


def test_the_page_of_the_same_decision_says_so_and_of_another_in_what_they_differ(played: Path, capsys: Out) -> None:
    key = first_made(played, capsys)
    assert main(["replay", key, "--journal", str(played)]) == 0
    told = capsys.readouterr().out
    assert "the same decision, byte for byte" in told
    assert "WOULD BE DECIDED NOW" not in told
    assert main(["replay", key, "--without", "nodepool/default", "--journal", str(played), "--all"]) == 3
    told = capsys.readouterr().out
    for part in (
        "DECIDED THEN",
        "WOULD BE DECIDED NOW",
        "DIFFERENCES",
        "- NodeClaim",
        "+ event FailedScheduling",
        "then: ",
    ):
        assert part in told
    assert "another decision: " in told


def test_a_page_fits_a_narrow_terminal(played: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    main(["replay", first_made(played, capsys), "--without", "nodepool/default", "--journal", str(played)])
    lines = capsys.readouterr().out.splitlines()
    long = [line for line in lines if len(line) > 72 and " " in line.strip()[: 72 - 16]]
    assert not [line for line in long if len(line.split()) > 4]


def test_other_code_and_a_plan_that_time_ended_are_named(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy(played, tmp_path)
    key = first_made(folder, capsys)
    entry = json.loads((folder / key).read_text())
    snapshot = folder / entry["snapshot"]
    document = json.loads(gzip.decompress(snapshot.read_bytes()))
    document["made"]["cut"] = "time was up before all was decided"
    snapshot.write_bytes(gzip.compress(json.dumps(document).encode()))
    (folder / key).write_text(json.dumps(entry | {"code": "other"}))
    assert main(["replay", key, "--without", "nodepool/default", "--journal", str(folder)]) == 3
    told = capsys.readouterr().out
    assert "other then, " in told
    assert "it need not come out the same: time was up before all was decided" in told


def test_yaml_says_what_json_says(played: Path, capsys: Out) -> None:
    told = replayed(played, capsys=capsys)[1]
    assert main(["replay", "--journal", str(played), "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == told
    assert list(told) == [
        *("cycle", "function", "at", "trigger", "snapshot", "catalogue", "code", "changed", "notes", "limits"),
        *("same", "reordered", "cut", "then", "now", "differences"),
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_cycles_of_the_function_that_is_named_are_listed(function: str, played: Path, capsys: Out) -> None:
    assert main(["replay", "--list", "--all", "--function", function, "--journal", str(played), "-o", "json"]) == 0
    assert {one["function"] for one in json.loads(capsys.readouterr().out)} == {function}


def test_without_a_journal_nothing_can_be_found(capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as left:
        main(["replay"])
    assert left.value.code == 2
    assert "where is the journal?" in capsys.readouterr().err
    assert main(["replay", "--journal", str(tmp_path / "none")]) == 1
    assert "no such folder" in capsys.readouterr().err
    assert main(["replay", "--journal", str(tmp_path)]) == 1
    assert "0 cycles, and none can be decided again" in capsys.readouterr().err
    for output, shown in (("table", ""), ("json", "[]\n")):
        assert main(["replay", "--list", "--journal", str(tmp_path), "-o", output]) == 0
        assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("nodepool/none", "there was none; there were default"),
        ("none", "write KIND/NAME"),
        ("csinode/x", "no CSINode at all"),
    ],
)
def test_what_is_not_there_cannot_be_taken_away(wanted: str, says: str, played: Path, capsys: Out) -> None:
    assert main(["replay", "--without", wanted, "--journal", str(played)]) == 1
    assert says in capsys.readouterr().err


def test_of_a_bucket_the_day_that_is_named_is_read(played: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = MemoryBucket()
    for path in played.rglob("*"):
        if path.is_file():
            bucket.put(str(path.relative_to(played)), path.read_bytes())
            bucket.put(f"copied/{path.relative_to(played)}", path.read_bytes())
    monkeypatch.setenv("JOINER_BUCKET_NAME", "b")
    for module in ("explain_journals", "replay_cycles"):
        monkeypatch.setattr(f"cli.{module}.region_here", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: bucket)
    key = first_made(played, capsys)
    name = key.rpartition("/")[2].removesuffix(".json").partition("-")[2]
    at = f"{START:%Y-%m-%d}"
    assert main(["replay", "provision", f"{at}T{key.rpartition('/')[2][:2]}:99"]) == 1
    capsys.readouterr()
    assert main(["replay", name, "--now", "2026-11-21T09:00:00Z"]) == 0
    capsys.readouterr()
    copied = ["--journal", "s3://b/copied/journal", "--now", "2026-11-21T09:00:00Z"]
    assert main(["replay", name, *copied]) == 0

    def gone(_: object, key: str) -> bytes:
        raise Gone(key) if key.startswith("snapshot") else Forbidden(key)

    capsys.readouterr()
    read = MemoryBucket.get
    monkeypatch.setattr(
        MemoryBucket, "get", lambda self, key: gone(self, key) if "snapshot" in key else read(self, key)
    )
    assert main(["replay", name, "--now", "2026-11-21T09:00:00Z"]) == 1
    assert "it became too old" in capsys.readouterr().err
    assert main(["replay", name, *copied]) == 1
    assert "s3://b/copied/journal: Forbidden" in capsys.readouterr().err


# Differences


def claim(name: str, *pods: str) -> CreateNodeClaim:
    return CreateNodeClaim(
        claim=NodeClaim(meta=Meta(name=name), node_class=NodeClassRef(name="default")), pods=pods, why=f"why {name}"
    )


EVENT = PublishEvent(kind="Pod", namespace="shop", name="cart", reason="Nominated", message="on a", at=START)
WAKE = FollowUp(function="provision", after=timedelta(seconds=10), why="soon")


def decision(*actions: Action, notes: tuple[Note, ...] = ()) -> Decision:
    return Decision(actions=actions, notes=notes)


def test_equal_decisions_do_not_differ_and_an_order_is_part_of_one() -> None:
    assert compared(decision(claim("a", "p"), EVENT), decision(claim("a", "p"), EVENT)).is_same
    turned = compared(decision(EVENT, WAKE), decision(WAKE, EVENT))
    assert (turned.actions, turned.is_reordered, turned.is_same) == ((), True, False)
    twice = compared(decision(WAKE), decision(WAKE, WAKE))
    assert [one.how for one in twice.actions] == ["now"]


def test_nodes_are_paired_by_the_pods_that_they_are_for() -> None:
    then = decision(claim("a", "p1", "p2", "p3"), claim("b", "q"))
    now = decision(claim("c", "q"), claim("d", "p1", "p2"), claim("e", "p3"))
    found = compared(then, now).actions
    assert [(one.how, one.then.partition(" for")[0], one.now.partition(" for")[0]) for one in found] == [
        ("changed", "NodeClaim a", "NodeClaim d"),
        ("changed", "NodeClaim b", "NodeClaim c"),
        ("now", "", "why e"),
    ]


def test_what_words_do_not_tell_apart_is_told_by_field() -> None:
    old = PatchMetadata(kind="Node", name="n", annotations=(("a", "1"),), why="same")
    [one] = compared(decision(old), decision(replace(old, annotations=(("a", "2" * 200),)))).actions
    assert one.then == 'annotations=[["a","1"]]'
    assert one.now.endswith("…")


def test_verdicts_are_paired_by_whom_they_are_about() -> None:
    then = (
        Note(kind="Pod", name="p", verdict="node/a", why="fits"),
        Note(kind="Node", name="n", verdict="kept", why=""),
    )
    now = (Note(kind="Pod", name="p", verdict="NoOffering", why="none"),)
    found = compared(decision(notes=then), decision(notes=now)).notes
    assert [(one.how, one.what, one.then, one.now) for one in found] == [
        ("changed", "Pod p", "node/a: fits", "NoOffering: none"),
        ("then", "Node n", "kept", ""),
    ]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (claim("a"), ("NodeClaim a for no pod", "why a")),
        (claim("a", *"pqrst"), ("NodeClaim a for 5 pods (p, q, r and 2 more)", "why a")),
        (DeleteObject(kind="NodeClaim", name="c", why="empty"), ("NodeClaim c deleted", "empty")),
        (EVENT, ("event Nominated on Pod shop/cart", "on a")),
        (replace(EVENT, namespace="", kind="Node"), ("event Nominated on Node cart", "on a")),
        (WAKE, ("provision woken in 10 s", "soon")),
        (
            MarkUnavailable(
                offering=UnavailableOffering(capacity_type="spot", instance_type="m5.large", zone="", until=START)
            ),
            ("spot m5.large marked", ""),
        ),
        (
            TaintNode(name="n", resource_version="", taints=(Taint(key="k", effect="NoSchedule"),), why="w"),
            ("Node n tainted", "k: w"),
        ),
        (PatchStatus(kind="NodePool", name="p", status="{}", why="w"), ("status of NodePool p", "w")),
        (EvictPod(namespace="n", name="p", uid="", node="x", why="w"), ("Pod n/p evicted", "w")),
        (DeletePod(namespace="n", name="p", uid="", node="x", grace_seconds=1, why="w"), ("Pod n/p deleted", "w")),
        (NominatePod(namespace="n", name="p", uid="", node="x", why="w"), ("Pod n/p told of x", "w")),
        (TerminateInstances(instance_ids=("i-1", "i-2"), why="w"), ("i-1, i-2 ended", "w")),
        (TagInstance(instance_id="i-1", tags=(("Name", "n"),), why="w"), ("i-1 tagged", "Name: w")),
        (DeleteLaunchTemplate(name="t", why="w"), ("launch template t deleted", "w")),
        (PatchMetadata(kind="Node", name="n", labels=(("l", "v"),), why="w"), ("Node n annotated", "l: w")),
        (PatchMetadata(kind="NodeClaim", name="c", finalizers=("f",), why="w"), ("NodeClaim c held", "w")),
        (PatchMetadata(kind="NodeClaim", name="c", finalizers=(), why="w"), ("NodeClaim c let go", "w")),
    ],
)
def test_actions_are_said_in_words(action: Action, words: tuple[str, str]) -> None:
    assert said(action) == words


def test_nothing_changed_is_nothing_said() -> None:
    cluster = Cluster(taken_at=START)
    assert changed(cluster, Known(now=START), (), (), lambda _: None).what == ()


def test_help_has_examples_exit_codes_and_the_shape(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    told = capsys.readouterr().out
    for part in ("examples:", "exit codes:", "-o json has cycle", "--with", "--without"):
        assert part in told
