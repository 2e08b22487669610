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

from cli.journal.action_text import describe_action
from cli.journal.fleet_request_text import describe_request_differences
from cli.main import main
from cli.replay.changes import apply_changes
from cli.replay.command import DECIDING_FUNCTIONS
from cli.replay.cycle_lookup import compute_lookback, parse_cycle_query
from cli.replay.differences import compare_decisions
from cli.replay.rerun import Decision
from cli.replay.selectors import RecordedSelections
from shared.errors import Forbidden, NotFound
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.core.taints import Taint
from shared.model.decisions.action import (
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
from shared.model.decisions.decision_answers import AccountAnswersRecord, find_answer
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.report.journal.decision_record import decode_record
from shared.report.journal.journal import DecisionNote
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.memory_ports import MemoryBucket
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool
from tests.support.cli.journal_plays import MIXED, build_interrupted_world, unpack_bucket

Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the bucket of a short play: nodes launched, one interrupted, one emptied."""
    world = build_interrupted_world()
    world.advance_seconds(150)
    world.scale(0)
    world.advance_seconds(240)
    return unpack_bucket(world.bucket, tmp_path_factory.mktemp("bucket"))


def run_replay(folder: Path, *words: str, capsys: Out) -> tuple[int, dict[str, Any]]:
    status = main(["replay", *words, "--journal", str(folder), "-o", "json"])
    return status, json.loads(capsys.readouterr().out)


def list_cycles(folder: Path, capsys: Out, *words: str) -> list[dict[str, Any]]:
    assert main(["replay", "--list", *words, "--journal", str(folder), "-o", "json"]) == 0
    cycles: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return cycles


def find_first_launch_cycle(folder: Path, capsys: Out) -> str:
    return next(str(cycle["cycle"]) for cycle in list_cycles(folder, capsys) if "NodeClaim" in cycle["summary"])


# What comes out


def test_replay_of_every_listed_cycle_gives_the_same_decision(played: Path, capsys: Out) -> None:
    cycles = list_cycles(played, capsys)
    assert {entry["function"] for entry in cycles} == {"provision", "disrupt", "interrupt", "lifecycle", "catalog"}
    assert [entry["at"] for entry in cycles] == sorted(entry["at"] for entry in cycles)
    for cycle in cycles:
        status, document = run_replay(played, cycle["cycle"], capsys=capsys)
        assert (status, document["same"], document["differences"]) == (0, True, [])
        assert document["cycle"] == cycle["cycle"]


def test_replay_with_a_changed_nodepool_reports_each_difference(played: Path, tmp_path: Path, capsys: Out) -> None:
    pool_file = tmp_path / "pool.yaml"
    pool_file.write_text(yaml.safe_dump(make_node_pool(types=("c5.xlarge",), capacity=("on-demand",))))
    key = find_first_launch_cycle(played, capsys)
    status, document = run_replay(played, key, "--with", str(pool_file), capsys=capsys)
    assert (status, document["same"]) == (3, False)
    assert document["changed"] == ["NodePool default (changed)"]
    claim_differences = [
        difference for difference in document["differences"] if difference["subject"].startswith("NodeClaim")
    ]
    assert [difference["change"] for difference in claim_differences] == ["changed"]
    fleet_differences = [
        difference for difference in document["differences"] if difference["subject"].startswith("CreateFleet")
    ]
    assert [difference["change"] for difference in fleet_differences] == ["recorded", "replayed"]
    assert "c5.xlarge" in fleet_differences[1]["replayed"]
    assert any("sends different requests to EC2" in limit for limit in document["limits"])
    assert "m5.xlarge spot" in claim_differences[0]["recorded"]
    assert "c5.xlarge on-demand" in claim_differences[0]["replayed"]
    assert document["recorded"]["usdPerHour"] < document["replayed"]["usdPerHour"]
    assert {difference["kind"] for difference in document["differences"]} == {"action", "note"}


def test_replay_with_an_unchanged_manifest_gives_the_same_decision(played: Path, tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "same.yaml"
    manifests = (make_node_class(), make_node_pool(types=MIXED, capacity=("spot", "on-demand")))
    path.write_text(yaml.safe_dump_all(manifests))
    for cycle in list_cycles(played, capsys):
        status, document = run_replay(played, cycle["cycle"], "--with", str(path), capsys=capsys)
        assert (status, document["differences"]) == (0, []), cycle["cycle"]
        pools = [] if "/catalog/" in cycle["cycle"] else ["NodePool default (unchanged)"]
        assert document["changed"] == [*pools, "EC2NodeClass default (unchanged)"]
        assert bool(pools) is not any("does not read this kind" in note for note in document["notes"])


def test_replay_without_a_nodepool_leaves_its_pods_unschedulable(played: Path, capsys: Out) -> None:
    status, document = run_replay(
        played, find_first_launch_cycle(played, capsys), "--without", "nodepool/default", capsys=capsys
    )
    assert status == 3
    assert document["changed"] == ["without NodePool default"]
    assert document["replayed"]["newNodes"] == 0
    assert any("no NodePool exists" in difference["replayed"] for difference in document["differences"])


def test_replay_plans_additional_pods_from_a_file(played: Path, tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(yaml.safe_dump(make_deployment(4, "late", cpu="1500m")))
    status, document = run_replay(played, find_first_launch_cycle(played, capsys), "--with", str(path), capsys=capsys)
    assert status == 3
    assert sum(difference["subject"].startswith("Pod default/late") for difference in document["differences"]) == 4


def test_replay_with_unresolvable_node_class_selectors_keeps_recorded_results_and_notes_it(
    played: Path, tmp_path: Path, capsys: Out
) -> None:
    class_file = tmp_path / "class.yaml"
    class_file.write_text(
        yaml.safe_dump_all([make_node_class(amiSelectorTerms=[{"id": "ami-1"}]), make_node_class("new")])
    )
    _, document = run_replay(played, find_first_launch_cycle(played, capsys), "--with", str(class_file), capsys=capsys)
    assert document["notes"][0].startswith(
        "EC2NodeClass default: spec.amiSelectorTerms[0] (ami-1) cannot be resolved from the records; "
        "assumed: images unchanged (ami-"
    )
    assert document["notes"][-1] == (
        "EC2NodeClass new is new; assumed: Ready, with the same offerings as the other classes"
    )
    assert document["changed"] == ["EC2NodeClass default (changed)", "EC2NodeClass new (new)"]


def test_replay_of_catalog_resolves_a_changed_node_class(played: Path, tmp_path: Path, capsys: Out) -> None:
    key = next(cycle["cycle"] for cycle in list_cycles(played, capsys) if cycle["function"] == "catalog")
    entry = json.loads((played / key).read_text())
    answers = decode_record((played / entry["snapshot"]).read_bytes()).inputs.answers
    account = find_answer(answers, AccountAnswersRecord)
    assert account is not None
    subnet = (account.answers[0][1].subnets or ())[0].subnet_id
    class_file = tmp_path / "class.yaml"
    class_file.write_text(yaml.safe_dump(make_node_class(subnetSelectorTerms=[{"id": subnet}])))
    status, document = run_replay(played, key, "--with", str(class_file), capsys=capsys)
    assert status == 3
    assert f"spec.subnetSelectorTerms resolve to {subnet}, as recorded" in document["notes"][0]
    assert [difference["subject"] for difference in document["differences"]] == ["EC2NodeClass default status updated"]
    assert main(["replay", key, "--with", str(class_file), "--journal", str(played)]) == 3
    assert "1 EC2NodeClass; snapshot of" in capsys.readouterr().out


def test_replay_without_the_catalog_record_cannot_resolve_selectors(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy_journal(played, tmp_path)
    for cycle in list_cycles(folder, capsys):
        if cycle["function"] == "catalog":
            (folder / json.loads((folder / cycle["cycle"]).read_text())["snapshot"]).unlink()
    class_file = tmp_path / "class.yaml"
    class_file.write_text(yaml.safe_dump(make_node_class(subnetSelectorTerms=[{"tags": {"team": "shop"}}])))
    _, document = run_replay(folder, find_first_launch_cycle(folder, capsys), "--with", str(class_file), capsys=capsys)
    assert "(tags team=shop) cannot be resolved" in document["notes"][0]


def make_launch(*overrides: Override, message: str = "w", **fields: Any) -> LaunchInstances:
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
        name="g", claims=("c",), request=replace(request, **fields), templates=templates, created_at=DEFAULT_START_TIME
    )
    return LaunchInstances(group=group, message=message)


LARGE = Override(instance_type="m5.large", zone="a", subnet_id="s", image_id="ami-1", priority=0.1)


@pytest.mark.parametrize(
    ("changed_launch", "recorded_words", "now"),
    [
        (make_launch(LARGE), "", ""),
        (make_launch(LARGE, capacity_type="on-demand"), "capacity_type spot", "capacity_type on-demand"),
        (make_launch(LARGE, message="v"), "w", "v"),
        (
            make_launch(replace(LARGE, zone="b")),
            "1 offering only here: m5.large/a/s",
            "1 offering only here: m5.large/b/s",
        ),
        (make_launch(LARGE, replace(LARGE, zone="b")), "", "1 offering only here: m5.large/b/s"),
        (make_launch(replace(LARGE, priority=0.2)), "priority of m5.large/a/s 0.1", "priority of m5.large/a/s 0.2"),
        (make_launch(LARGE, templates=()), "1 launch template", "0 launch templates"),
        (
            make_launch(LARGE, templates=(LaunchTemplate(name="u", image_id="ami-2", user_data=""),)),
            'launch template: image_id="ami-1"',
            'launch template: image_id="ami-2"',
        ),
    ],
)
def test_launch_request_differences_are_described(
    changed_launch: LaunchInstances, recorded_words: str, now: str
) -> None:
    assert describe_request_differences(make_launch(LARGE), changed_launch) == (recorded_words, now)


def test_replay_with_another_catalog_uses_its_prices(played: Path, tmp_path: Path, capsys: Out) -> None:
    key = find_first_launch_cycle(played, capsys)
    sold = json.loads(gzip.decompress(max((played / "catalogue").glob("*.json.gz")).read_bytes()))
    for instance_type in (
        *sold["instanceTypes"],
        *(kind for kinds in sold.get("nodeClasses", {}).values() for kind in kinds),
    ):
        for offering in instance_type["offerings"]:
            offering["price"] *= 3
    dear = tmp_path / "dear.json"
    dear.write_text(json.dumps(sold))
    status, document = run_replay(played, key, "--instance-types", str(dear), capsys=capsys)
    assert status == 3
    assert document["notes"] == [f"the catalog is {dear}"]


def test_invalid_manifest_is_reported_and_the_cycle_is_still_replayed(
    played: Path, tmp_path: Path, capsys: Out
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(make_node_pool("broken") | {"spec": {"template": 3}}))
    status = main(["replay", find_first_launch_cycle(played, capsys), "--with", str(bad), "--journal", str(played)])
    captured = capsys.readouterr()
    assert status == 1
    assert "NodePool broken" in captured.err
    assert "RECORDED DECISION" in captured.out


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
def test_cycle_is_selected_by_key_request_id_or_time(words: list[str], played: Path, capsys: Out) -> None:
    key = find_first_launch_cycle(played, capsys)
    name = key.rpartition("/")[2].removesuffix(".json")
    at = next(datetime.fromisoformat(cycle["at"]) for cycle in list_cycles(played, capsys) if cycle["cycle"] == key)
    elsewhere = at.astimezone(datetime.strptime("+05:30", "%z").tzinfo)
    spellings = {
        "key": key,
        "name": name,
        "id": name.partition("-")[2],
        "at": f"{at:%Y-%m-%dT%H:%M:%S}",
        "clock": f"{at:%H:%M:%S}",
        "date": f"{at:%Y-%m-%d}",
        "offset": elsewhere.isoformat(timespec="seconds"),
    }
    _, document = run_replay(played, *(word.format(**spellings) for word in words), capsys=capsys)
    assert document["cycle"] == key


def test_latest_cycle_is_replayed_by_default(played: Path, capsys: Out) -> None:
    last = list_cycles(played, capsys)[-1]["cycle"]
    assert run_replay(played, capsys=capsys)[1]["cycle"] == last
    assert run_replay(played, "latest", capsys=capsys)[1]["cycle"] == last
    last = list_cycles(played, capsys, "--function", "provision")[-1]["cycle"]
    assert run_replay(played, "provision", capsys=capsys)[1]["cycle"] == last


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["2026-11-21"], "2026-11-21 matches "),
        (["03:33"], "not found in"),
        (["2031-01-01T00:00:00+99:00"], "not found in"),
        (["nonsense"], "not found in"),
        (["watch"], "(function watch) cannot be replayed"),
    ],
)
def test_unknown_or_ambiguous_cycle_is_reported_with_a_fix(
    words: list[str], says: str, played: Path, capsys: Out
) -> None:
    assert main(["replay", *words, "--journal", str(played)]) == 1
    assert says in capsys.readouterr().err


def test_cycle_query_is_parsed_into_function_and_time() -> None:
    assert parse_cycle_query([], "").text == "latest"
    assert parse_cycle_query(["disrupt"], "").function == "disrupt"
    assert parse_cycle_query(["2026-11-21", "disrupt", "08:05"], "").text == "2026-11-21 08:05"
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert compute_lookback(parse_cycle_query(["2026-11-21T08"], ""), now) == timedelta(days=3, hours=12)
    assert compute_lookback(parse_cycle_query(["2026-13-45"], ""), now) is None
    assert compute_lookback(parse_cycle_query(["latest"], ""), now) is None


# What is missing


def copy_journal(played: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(played, folder)
    return folder


def test_journal_entry_without_decision_record_cannot_be_replayed(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy_journal(played, tmp_path)
    key = find_first_launch_cycle(folder, capsys)
    entry = json.loads((folder / key).read_text())
    (folder / key).write_text(
        json.dumps({name: value for name, value in entry.items() if name not in ("snapshot", "code")})
    )
    assert main(["replay", key, "--journal", str(folder)]) == 1
    assert "from a version without decision records" in " ".join(capsys.readouterr().err.split())


def test_failed_cycle_cannot_be_replayed(tmp_path: Path, capsys: Out) -> None:
    entry = {
        "function": "provision",
        "trigger": "t",
        "at": "2026-11-21T08:00:00Z",
        "cluster": "",
        "error": "Throttled: x",
    }
    (tmp_path / "080000-one.json").write_text(json.dumps(entry))
    assert main(["replay", "one", "--journal", str(tmp_path)]) == 1
    assert "failed before it decided anything" in capsys.readouterr().err


def test_missing_snapshot_or_catalog_folders_are_reported(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = tmp_path / "only"
    shutil.copytree(played / "journal", folder / "journal")
    assert main(["replay", "--journal", str(folder)]) == 1
    assert "only journal/ was copied: copy snapshot/ and catalogue/ too" in capsys.readouterr().err
    shutil.copytree(played / "snapshot", folder / "snapshot")
    assert main(["replay", "--journal", str(folder)]) == 1
    assert "add --instance-types FILE, or copy catalogue/ too" in capsys.readouterr().err
    shutil.copytree(played / "catalogue", folder / "catalogue")
    assert main(["replay", "--journal", str(folder)]) == 0
    assert main(["replay", "--journal", str(folder / "journal")]) == 0


def test_corrupt_decision_record_is_reported(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy_journal(played, tmp_path)
    key = find_first_launch_cycle(folder, capsys)
    snapshot = folder / json.loads((folder / key).read_text())["snapshot"]
    snapshot_bytes = snapshot.read_bytes()
    for body in (snapshot_bytes[: len(snapshot_bytes) // 2], b"", gzip.compress(b'{"some": "thing"}')):
        snapshot.write_bytes(body)
        assert main(["replay", key, "--journal", str(folder)]) == 1
        assert "not a decision record that this version can read" in capsys.readouterr().err
    snapshot.write_bytes(snapshot_bytes)
    catalogue = folder / decode_record(snapshot_bytes).catalog_key
    catalogue.write_bytes(b"{}")
    assert main(["replay", key, "--journal", str(folder)]) == 1
    assert "add --instance-types FILE" in capsys.readouterr().err
    (folder / "journal" / "foreign.json").write_text('{"kind": "List"}')
    assert main(["replay", "--list", "--journal", str(folder)]) == 1
    captured = capsys.readouterr()
    assert "foreign.json: not a journal entry" in captured.err
    assert "provision" in captured.out


def test_cycle_is_found_among_thousands_of_entries(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy_journal(played, tmp_path)
    key = find_first_launch_cycle(folder, capsys)
    entry = json.loads((folder / key).read_text())
    for number in range(2000):
        at = DEFAULT_START_TIME - timedelta(minutes=number + 1)
        path = folder / "journal" / f"{number}-many.json"
        path.write_text(json.dumps(entry | {"at": at.isoformat()}))
    assert run_replay(folder, key, capsys=capsys)[0] == 0
    assert len(list_cycles(folder, capsys)) > 2000
    assert main(["replay", "--list", "--journal", str(folder)]) == 0
    assert "earlier cycles (--all shows them)" in capsys.readouterr().out


# What is said of it


def test_replay_page_shows_an_identical_decision_or_its_differences(played: Path, capsys: Out) -> None:
    key = find_first_launch_cycle(played, capsys)
    assert main(["replay", key, "--journal", str(played)]) == 0
    output = capsys.readouterr().out
    assert "same decision: " in output
    assert "identical, byte for byte" in output
    assert "REPLAYED DECISION" not in output
    assert main(["replay", key, "--without", "nodepool/default", "--journal", str(played), "--all"]) == 3
    output = capsys.readouterr().out
    for part in (
        "RECORDED DECISION",
        "REPLAYED DECISION",
        "DIFFERENCES",
        "- NodeClaim",
        "+ event FailedScheduling",
        "recorded: ",
    ):
        assert part in output
    assert "different decision: " in output


def test_replay_page_fits_a_narrow_terminal(played: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    main(["replay", find_first_launch_cycle(played, capsys), "--without", "nodepool/default", "--journal", str(played)])
    lines = capsys.readouterr().out.splitlines()
    long = [line for line in lines if len(line) > 72 and " " in line.strip()[: 72 - 16]]
    assert not [line for line in long if len(line.split()) > 4]


def test_different_code_version_and_time_limited_plan_are_reported(played: Path, tmp_path: Path, capsys: Out) -> None:
    folder = copy_journal(played, tmp_path)
    key = find_first_launch_cycle(folder, capsys)
    entry = json.loads((folder / key).read_text())
    snapshot = folder / entry["snapshot"]
    document = json.loads(gzip.decompress(snapshot.read_bytes()))
    document["made"]["cut"] = "the time limit was reached before the decision was complete"
    snapshot.write_bytes(gzip.compress(json.dumps(document).encode()))
    (folder / key).write_text(json.dumps(entry | {"code": "other"}))
    assert main(["replay", key, "--without", "nodepool/default", "--journal", str(folder)]) == 3
    output = capsys.readouterr().out
    assert "recorded with other, " in output
    assert "differences are expected: the time limit was reached before the decision was complete" in output


def test_yaml_output_equals_json_output(played: Path, capsys: Out) -> None:
    document = run_replay(played, capsys=capsys)[1]
    assert main(["replay", "--journal", str(played), "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == document
    assert list(document) == [
        "apiVersion",
        *("cycle", "function", "at", "trigger", "snapshot", "catalog", "code", "changed", "notes", "limits"),
        *("same", "reordered", "incomplete", "recorded", "replayed", "differences"),
    ]


@pytest.mark.parametrize("function", DECIDING_FUNCTIONS)
def test_list_is_limited_to_cycles_of_the_given_function(function: str, played: Path, capsys: Out) -> None:
    assert main(["replay", "--list", "--all", "--function", function, "--journal", str(played), "-o", "json"]) == 0
    assert {cycle["function"] for cycle in json.loads(capsys.readouterr().out)} == {function}


def test_missing_or_empty_journal_is_reported(capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as raised:
        main(["replay"])
    assert raised.value.code == 2
    assert "no journal: add --journal" in capsys.readouterr().err
    assert main(["replay", "--journal", str(tmp_path / "none")]) == 1
    assert "folder not found" in capsys.readouterr().err
    assert main(["replay", "--journal", str(tmp_path)]) == 1
    assert "joiner replay: 0 cycles in " in capsys.readouterr().err
    for output, expected in (("table", ""), ("json", "[]\n")):
        assert main(["replay", "--list", "--journal", str(tmp_path), "-o", output]) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nodepool/none", "not found; existing: default"),
        ("none", "write KIND/NAME"),
        ("csinode/x", "the cluster had no CSINode"),
    ],
)
def test_without_option_rejects_unknown_objects(target: str, says: str, played: Path, capsys: Out) -> None:
    assert main(["replay", "--without", target, "--journal", str(played)]) == 1
    assert says in capsys.readouterr().err


def test_bucket_journal_is_read_for_the_given_day(played: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = MemoryBucket()
    for path in played.rglob("*"):
        if path.is_file():
            bucket.put(str(path.relative_to(played)), path.read_bytes())
            bucket.put(f"copied/{path.relative_to(played)}", path.read_bytes())
    monkeypatch.setenv("JOINER_BUCKET_NAME", "b")
    monkeypatch.setattr("cli.journal.journal.get_default_region", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: bucket)
    key = find_first_launch_cycle(played, capsys)
    name = key.rpartition("/")[2].removesuffix(".json").partition("-")[2]
    at = f"{DEFAULT_START_TIME:%Y-%m-%d}"
    assert main(["replay", "provision", f"{at}T{key.rpartition('/')[2][:2]}:99"]) == 1
    capsys.readouterr()
    assert main(["replay", name, "--now", "2026-11-21T09:00:00Z"]) == 0
    capsys.readouterr()
    copied = ["--journal", "s3://b/copied/journal", "--now", "2026-11-21T09:00:00Z"]
    assert main(["replay", name, *copied]) == 0

    def raise_read_error(_: object, key: str) -> bytes:
        raise NotFound(key) if key.startswith("snapshot") else Forbidden(key)

    capsys.readouterr()
    read = MemoryBucket.get
    monkeypatch.setattr(
        MemoryBucket, "get", lambda self, key: raise_read_error(self, key) if "snapshot" in key else read(self, key)
    )
    assert main(["replay", name, "--now", "2026-11-21T09:00:00Z"]) == 1
    assert "it expired" in capsys.readouterr().err
    assert main(["replay", name, *copied]) == 1
    assert "s3://b/copied/journal: Forbidden" in capsys.readouterr().err


# Differences


def make_claim_action(name: str, *pods: str) -> CreateNodeClaim:
    return CreateNodeClaim(
        claim=NodeClaim(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default")),
        pods=pods,
        message=f"why {name}",
    )


EVENT = PublishEvent(
    kind="Pod", namespace="shop", name="cart", reason="Nominated", message="on a", at=DEFAULT_START_TIME
)
WAKE = FollowUp(function="provision", after=timedelta(seconds=10), message="soon")


def make_decision(*actions: Action, notes: tuple[DecisionNote, ...] = ()) -> Decision:
    return Decision(actions=actions, notes=notes)


def test_equal_decisions_are_the_same_and_action_order_matters() -> None:
    assert compare_decisions(
        make_decision(make_claim_action("a", "p"), EVENT), make_decision(make_claim_action("a", "p"), EVENT)
    ).is_same
    turned = compare_decisions(make_decision(EVENT, WAKE), make_decision(WAKE, EVENT))
    assert (turned.actions, turned.is_reordered, turned.is_same) == ((), True, False)
    twice = compare_decisions(make_decision(WAKE), make_decision(WAKE, WAKE))
    assert [difference.kind for difference in twice.actions] == ["replayed"]


def test_nodeclaims_of_two_decisions_are_paired_by_their_pods() -> None:
    recorded_decision = make_decision(make_claim_action("a", "p1", "p2", "p3"), make_claim_action("b", "q"))
    now = make_decision(make_claim_action("c", "q"), make_claim_action("d", "p1", "p2"), make_claim_action("e", "p3"))
    differences = compare_decisions(recorded_decision, now).actions
    assert [
        (difference.kind, difference.old_text.partition(" created")[0], difference.new_text.partition(" created")[0])
        for difference in differences
    ] == [
        ("changed", "NodeClaim a", "NodeClaim d"),
        ("changed", "NodeClaim b", "NodeClaim c"),
        ("replayed", "", "why e"),
    ]


def test_actions_with_the_same_text_are_compared_by_field() -> None:
    old = PatchMetadata(kind="Node", name="n", annotations=(("a", "1"),), message="same")
    [difference] = compare_decisions(
        make_decision(old), make_decision(replace(old, annotations=(("a", "2" * 200),)))
    ).actions
    assert difference.old_text == 'annotations=[["a","1"]]'
    assert difference.new_text.endswith("…")


def test_decision_notes_are_paired_by_their_subject() -> None:
    recorded_notes = (
        DecisionNote(kind="Pod", name="p", verdict="node/a", reason="fits"),
        DecisionNote(kind="Node", name="n", verdict="kept", reason=""),
    )
    now = (DecisionNote(kind="Pod", name="p", verdict="NoOffering", reason="none"),)
    differences = compare_decisions(make_decision(notes=recorded_notes), make_decision(notes=now)).notes
    assert [
        (difference.kind, difference.subject, difference.old_text, difference.new_text) for difference in differences
    ] == [
        ("changed", "Pod p", "node/a: fits", "NoOffering: none"),
        ("recorded", "Node n", "kept", ""),
    ]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (make_claim_action("a"), ("NodeClaim a created for 0 pods", "why a")),
        (make_claim_action("a", *"pqrst"), ("NodeClaim a created for 5 pods (p, q, r and 2 more)", "why a")),
        (DeleteObject(kind="NodeClaim", name="c", message="empty"), ("NodeClaim c deleted", "empty")),
        (EVENT, ("event Nominated on Pod shop/cart", "on a")),
        (replace(EVENT, namespace="", kind="Node"), ("event Nominated on Node cart", "on a")),
        (WAKE, ("provision invoked in 10s", "soon")),
        (
            MarkUnavailable(
                offering=UnavailableOffering(
                    capacity_type="spot", instance_type="m5.large", zone="", until=DEFAULT_START_TIME
                )
            ),
            ("spot m5.large marked unavailable", ""),
        ),
        (
            TaintNode(name="n", resource_version="", taints=(Taint(key="k", effect="NoSchedule"),), message="w"),
            ("Node n tainted: k", "w"),
        ),
        (PatchStatus(kind="NodePool", name="p", status="{}", message="w"), ("NodePool p status updated", "w")),
        (EvictPod(namespace="n", name="p", uid="", node="x", message="w"), ("Pod n/p evicted from x", "w")),
        (
            DeletePod(namespace="n", name="p", uid="", node="x", grace_seconds=1, message="w"),
            ("Pod n/p deleted on x", "w; grace period 1s"),
        ),
        (NominatePod(namespace="n", name="p", uid="", node="x", message="w"), ("Pod n/p nominated for x", "w")),
        (TerminateInstances(instance_ids=("i-1", "i-2"), message="w"), ("i-1, i-2 terminated", "w")),
        (TagInstance(instance_id="i-1", tags=(("Name", "n"),), message="w"), ("i-1 tagged", "Name: w")),
        (DeleteLaunchTemplate(name="t", message="w"), ("launch template t deleted", "w")),
        (PatchMetadata(kind="Node", name="n", labels=(("l", "v"),), message="w"), ("Node n metadata updated", "l: w")),
        (
            PatchMetadata(kind="NodeClaim", name="c", finalizers=("f",), message="w"),
            ("NodeClaim c finalizers set", "w"),
        ),
        (
            PatchMetadata(kind="NodeClaim", name="c", finalizers=(), message="w"),
            ("NodeClaim c finalizers removed", "w"),
        ),
    ],
)
def test_every_action_has_a_description(action: Action, words: tuple[str, str]) -> None:
    assert describe_action(action) == words


def test_replay_without_changes_reports_no_changes() -> None:
    cluster = ClusterSnapshot(taken_at=DEFAULT_START_TIME)
    assert apply_changes(cluster, RecordedSelections(now=DEFAULT_START_TIME), (), (), lambda _: None).changes == ()


def test_help_has_examples_exit_codes_and_the_shape(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    output = capsys.readouterr().out
    for part in ("examples:", "exit codes:", "docs/reference/output.md", "--with", "--without"):
        assert part in output
