"""Decision records: what is stored of a decision, what never is, and what happens when the bucket fails."""

import gzip
import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields, replace

import shared
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.cycles.disrupt import run_disrupt
from shared.cycles.provision import run_provision
from shared.decide.scheduling.packing import new_node_placement
from shared.errors import Invalid, Unreachable
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import FollowUp, PublishEvent
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.kubernetes.workloads import Namespace
from shared.ports.world import World
from shared.report.journal.decision_record import SNAPSHOT_PREFIX as SNAPSHOTS
from shared.report.journal.decision_record import (
    DecisionInputs,
    DecisionRecord,
    build_inputs,
    decode_record,
    should_store_record,
)
from shared.report.journal.journal import JOURNAL_PREFIX, DecisionNote, decode_entry
from shared.report.journal.snapshot_digest import (
    encode_snapshot,
    is_annotation_read,
    strip_unread_data,
)
from shared.settings import Settings
from shared.store.catalog_format import decode_catalog
from shared.store.shared_cache.code_digest import compute_code_digest
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.benchmarks.decision_time import build_benchmark_world
from sim.fault_tap import PortCall, tap_world
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside
from tests.support.disrupted_world import Idle
from tests.support.snapshot_world import compute_snapshot_digest

PROVISIONS = f"{JOURNAL_PREFIX}provision/"
SECRET = "hunter2"  # noqa: S105 - what must not be found
READ = {"karpenter.sh/do-not-disrupt": "true", "joiner.dev/pod-digest": "abc"}
UNREAD = {
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET}),
    "vault.hashicorp.com/agent-inject-template": SECRET,
    "example.com/token": SECRET,
}


def build_documents() -> list[dict[str, Any]]:
    container = {
        "name": "app",
        "image": f"registry/{SECRET}",
        "command": ["sh", "-c", SECRET],
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": SECRET}}}],
        "envFrom": [{"secretRef": {"name": SECRET}}],
        "volumeMounts": [{"name": "s", "mountPath": f"/{SECRET}"}],
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
        "livenessProbe": {"exec": {"command": [SECRET]}},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    spec = {
        "containers": [container],
        "initContainers": [container],
        "imagePullSecrets": [{"name": SECRET}],
        "serviceAccountName": SECRET,
        "volumes": [{"name": "s", "secret": {"secretName": SECRET}}, {"name": "c", "configMap": {"name": SECRET}}],
    }

    def make_metadata(name: str, namespace: str = "") -> dict[str, Any]:
        namespace_field = {"namespace": namespace} if namespace else {}
        return {"name": name, "labels": {"app": "web"}, "annotations": UNREAD | READ} | namespace_field

    template = {"metadata": make_metadata("t"), "spec": spec}
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    pool = {"metadata": {"labels": {"team": "shop"}}, "spec": {"nodeClassRef": ref, "requirements": []}}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": make_metadata("web", "shop"), "spec": spec},
        {"apiVersion": "v1", "kind": "Node", "metadata": make_metadata("n"), "spec": {"providerID": "aws:///a/i-1"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": make_metadata("shop")},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": make_metadata("d", "shop"),
            "spec": {"template": template},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": make_metadata("x", "shop"),
            "spec": {"template": template},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": make_metadata("default"),
            "spec": {"template": pool},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": make_metadata("c"),
            "spec": {"nodeClassRef": ref, "requirements": []},
        },
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": make_metadata("default"),
            "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}], "userData": f"export P={SECRET}"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": make_metadata("v", "shop"),
            "spec": {"storageClassName": "gp3"},
        },
    ]


def build_document_snapshot() -> ClusterSnapshot:
    cluster = build_snapshot_from_documents(build_documents(), DEFAULT_START_TIME)
    assert len(cluster.pods) == len(cluster.nodes) == len(cluster.node_classes) == len(cluster.daemon_sets) == 1
    facts = ControlPlaneFacts(
        name="demo", endpoint=SECRET, certificate_authority=SECRET, version="1.33", service_cidr="10.0.0.0/16"
    )
    return replace(cluster, facts=facts)


def test_snapshot_contains_no_pod_secrets_user_data_or_unread_annotations() -> None:
    body = encode_snapshot(build_document_snapshot()).decode()
    assert SECRET not in body
    for key in UNREAD:
        assert key not in body
    for word in ("env", "command", "image_pull", "secret", "userData"):
        assert f'"{word}' not in body
    assert SECRET in msgspec.json.encode(build_document_snapshot()).decode(), "or nothing was shown"


def test_snapshot_keeps_pods_and_the_annotations_joiner_reads() -> None:
    stripped = strip_unread_data(build_document_snapshot())
    assert stripped.pods == build_document_snapshot().pods
    metas = [
        *(pod.meta for pod in stripped.pods),
        *(node.meta for node in stripped.nodes),
        *(node_claim.meta for node_claim in stripped.node_claims),
        *(node_pool.meta for node_pool in stripped.node_pools),
        *(volume_claim.meta for volume_claim in stripped.volume_claims),
    ]
    assert len(metas) == 5
    assert all(set(dict(meta.annotations)) == set(READ) for meta in metas)
    assert stripped.facts is not None
    assert stripped.facts.version == "1.33"


def test_pod_snapshot_has_no_fields_for_container_contents() -> None:
    """These lists contain every field: if you add a field, decide whether it may be stored."""
    pod, spec = (
        {field.name for field in fields(type(value))}
        for value in (build_document_snapshot().pods[0], build_document_snapshot().pods[0].spec)
    )
    assert pod == {
        *("meta", "spec", "node_name", "nominated_node_name", "phase", "restarts", "priority", "priority_class"),
        *("grace_period", "started_at", "conditions", "restart_policy", "active_deadline", "claim_names"),
    }
    assert spec == {
        *("requests", "tolerations", "node_selector", "required_terms", "preferred_terms", "pod_affinity"),
        *("pod_anti_affinity", "preferred_pod_affinity", "preferred_pod_anti_affinity", "spread", "host_ports"),
        *("volume_claims", "has_match_fields", "has_resource_claims", "resource_claims"),
    }


@pytest.mark.parametrize(
    ("annotation", "is_kept_"),
    [
        ("karpenter.sh/do-not-disrupt", True),
        ("joiner.dev/command", True),
        ("controller.kubernetes.io/pod-deletion-cost", True),
        ("pv.kubernetes.io/bind-completed", True),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", True),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", True),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", False),
        ("kubectl.kubernetes.io/last-applied-configuration", False),
        ("prometheus.io/scrape", False),
        ("compatibility.karpenter.k8s.aws/cluster-name-tagged", True),
        ("karpenter.sh.example.com/x", False),
        ("notkarpenter.sh/x", False),
    ],
)
def test_annotation_is_kept_if_joiner_reads_its_domain(annotation: str, *, is_kept_: bool) -> None:
    assert is_annotation_read(annotation) is is_kept_


def test_snapshot_digest_depends_only_on_stored_data() -> None:
    snapshot = build_document_snapshot()
    changed_snapshot = replace(snapshot, namespaces=(*snapshot.namespaces, Namespace(name="till")))
    assert (
        compute_snapshot_digest(snapshot)
        == compute_snapshot_digest(strip_unread_data(snapshot))
        != compute_snapshot_digest(changed_snapshot)
    )
    assert encode_snapshot(snapshot) == encode_snapshot(build_document_snapshot())


def test_recorded_settings_contain_no_addresses() -> None:
    settings = Settings(
        cluster_name="demo",
        region="r",
        kube_endpoint="https://k",
        bucket_name="b",
        queue_prefix="https://q",
        report_topic="arn:t",
        commitments_role="arn:r",
        commitments_external_id="id",
    )
    assert build_inputs(settings).decode_settings() == Settings(cluster_name="demo", region="r")


def test_settings_are_stored_as_text_and_older_records_use_defaults() -> None:
    settings = Settings(cluster_name="demo", region="r", launch_usd_per_hour=7, disable_dry_run=True, mode="plan")
    stored = msgspec.json.decode(msgspec.json.encode(build_inputs(settings)))
    assert {*map(type, stored["settings"].values())} == {str}
    older = {name: stored["settings"][name] for name in ("cluster_name", "region", "launch_usd_per_hour", "mode")}
    inputs = msgspec.convert({"settings": older | {"forgotten": "x"}}, DecisionInputs)
    assert (inputs.decode_settings().launch_usd_per_hour, inputs.decode_settings().mode) == (7, "plan")
    assert inputs.decode_settings() == replace(settings, disable_dry_run=False)


@pytest.mark.parametrize(
    ("old_text", "setting_name", "text"),
    [
        ({"hints": "Withheld"}, "pod_nominations", "Disabled"),
        ({"hints": "Given"}, "pod_nominations", "Enabled"),
        ({"price_service": "asked"}, "price_service", "reachable"),
    ],
)
def test_record_with_an_old_setting_name_is_decoded(old_text: dict[str, str], setting_name: str, text: str) -> None:
    inputs = DecisionInputs(setting_texts={"cluster_name": "prod", "region": "us-east-1"} | old_text)
    assert getattr(inputs.decode_settings(), setting_name) == text


WAKE = FollowUp(function="provision", after=timedelta(), message="")
EVENT = PublishEvent(kind="Pod", name="cart", reason="FailedScheduling", message="no", at=DEFAULT_START_TIME)


@pytest.mark.parametrize(
    ("actions", "notes", "decided"),
    [
        ((), (), False),
        ((WAKE,), (), False),
        (
            (WAKE,),
            (DecisionNote(kind="Pod", name="shop/cart", verdict="node/n", reason="fits an existing node"),),
            False,
        ),
        ((WAKE, EVENT), (), True),
        ((), (DecisionNote(kind="Node", name="n", verdict="kept", reason="busy"),), True),
    ],
)
def test_decision_record_is_stored_only_if_something_was_decided(
    actions: tuple[Any, ...], notes: tuple[DecisionNote, ...], *, decided: bool
) -> None:
    world = Outside().build_world()
    assert should_store_record(world, actions, notes) is decided
    off = msgspec.structs.replace(world, settings=replace(world.settings, snapshots="off"))
    assert not should_store_record(off, actions, notes)


def provision_and_read_record(world: World) -> tuple[World, DecisionRecord]:
    run_provision(world, "schedule")
    [key] = world.bucket.list_keys(PROVISIONS)
    entry = decode_entry(world.bucket.get(key))
    assert entry.snapshot in world.bucket.list_keys(SNAPSHOTS)
    assert entry.code == compute_code_digest()
    return world, decode_record(world.bucket.get(entry.snapshot))


def test_decision_record_names_its_catalog_and_replays_to_the_same_decision() -> None:
    world, snapshot = provision_and_read_record(build_benchmark_world(12))
    [key] = world.bucket.list_keys(PROVISIONS)
    entry = decode_entry(world.bucket.get(key))
    catalogue = decode_catalog(world.bucket.get(snapshot.catalog_key))
    assert snapshot.cluster.catalog is None
    assert replay_decision(entry, snapshot, build_cluster(snapshot, catalogue)) == build_recorded_decision(
        entry, snapshot
    )
    assert entry.cluster == compute_snapshot_digest(replace(snapshot.cluster, catalog=catalogue))


def test_code_digest_covers_exactly_the_package_sources() -> None:
    package = Path(shared.__file__).parent
    sources = sorted((str(path.relative_to(package)), path.read_bytes()) for path in package.rglob("*.py"))
    parts = (b"%b:%d:%b" % (name.encode(), len(body), body) for name, body in sources)
    assert compute_code_digest() == sha256(b"".join(parts)).hexdigest()[:12]


def test_record_of_a_plan_cut_by_the_time_limit_is_marked_as_not_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    remaining_times = iter((*[timedelta(seconds=60)] * 4, *[timedelta(seconds=3)] * 1000))
    short = msgspec.structs.replace(build_benchmark_world(12), time_left=lambda: next(remaining_times))
    assert provision_and_read_record(short)[1].summary.cut == (
        "the time limit was reached before the decision was complete"
    )
    long = msgspec.structs.replace(build_benchmark_world(12), time_left=lambda: timedelta(minutes=5))
    assert provision_and_read_record(long)[1].summary.cut == ""


@pytest.mark.parametrize("is_stolen", [True, False], ids=["the lease is lost", "a row is too large"])
def test_record_of_unwritten_commands_is_marked_as_not_reproducible(*, is_stolen: bool) -> None:
    idle = Idle("a", budget="100%")

    def break_write(call: PortCall) -> None:
        if is_stolen and (call.port, call.method, call.phase) == ("table", "list_rows", "after"):
            row = idle.table.read("lease", "planner")
            assert row is not None
            idle.table.write("lease", "planner", "{}", version=row.version)
        if not is_stolen and (call.port, call.method, call.detail, call.phase) == (
            "table",
            "write",
            "command",
            "before",
        ):
            raise Invalid("item too large", code="ValidationException")

    report = run_disrupt(idle.build_world(tap=break_write), "schedule")
    assert report.summary is not None
    assert ("another run" in report.summary.cut, "could not be recorded" in report.summary.cut) == (
        is_stolen,
        not is_stolen,
    )


def test_snapshot_is_stored_before_the_journal_entry_that_references_it() -> None:
    calls: list[str] = []

    def record_put(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("bucket", "put", "before"):
            calls.append(call.detail.partition("/")[0])

    run_provision(tap_world(build_benchmark_world(12), record_put), "schedule")
    assert calls == ["snapshot", "journal"]


def test_failed_snapshot_write_is_logged_and_the_entry_references_no_snapshot() -> None:
    lines: list[str] = []

    def refuse_put(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("bucket", "put", "before") and call.detail.startswith(SNAPSHOTS):
            raise Unreachable("s3")

    world = msgspec.structs.replace(build_benchmark_world(12), emit=lines.append)
    run_provision(tap_world(world, refuse_put), "schedule")
    [key] = world.bucket.list_keys(PROVISIONS)
    entry = decode_entry(world.bucket.get(key))
    assert (entry.snapshot, entry.code) == ("", "")
    assert entry.results
    assert "snapshot lost: Unreachable: s3" in [json.loads(line).get("error") for line in lines]


def test_no_snapshot_is_stored_if_snapshots_are_off() -> None:
    world = build_benchmark_world(12)
    world = msgspec.structs.replace(world, settings=replace(world.settings, snapshots="off"))
    before = world.bucket.list_keys(SNAPSHOTS)
    run_provision(world, "schedule")
    assert world.bucket.list_keys(SNAPSHOTS) == before
    [key] = world.bucket.list_keys(PROVISIONS)
    assert decode_entry(world.bucket.get(key)).snapshot == ""


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\x1f\x8b\x08", gzip.compress(b"{}"), gzip.compress(b'{"given": 1}')[:-9], gzip.compress(b"torn{")],
    ids=["empty", "not compressed", "only the gzip header", "other JSON object", "truncated", "not JSON"],
)
def test_invalid_snapshot_body_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_record(body)
