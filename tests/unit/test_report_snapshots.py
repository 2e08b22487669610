"""Snapshots: what is kept of a decision, what never is, and what becomes of them when the bucket does not answer."""

import gzip
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields, replace

from cli.replayed import cluster_of, decided_again, decided_then
from shared import cycle
from shared.errors import Invalid, Unreachable
from shared.model.action import FollowUp, PublishEvent
from shared.model.cluster import Cluster, Namespace
from shared.model.ec2 import ClusterFacts
from shared.ports import World
from shared.report.code import code_digest
from shared.report.journal import PREFIX, Note, read_entry
from shared.report.snapshots import PREFIX as SNAPSHOTS
from shared.report.snapshots import Snapshot, given_by, is_kept, read_snapshot
from shared.scheduling import pack
from shared.settings import Settings
from shared.snapshot.catalogue import decode_catalogue
from shared.snapshot.digest import bared, is_read, snapshot_digest, stored
from shared.snapshot.documents import cluster_from_documents
from sim.bench import prepared
from sim.clock import START
from sim.faults import Call, tapped_world
from tests.unit.actions_world import Outside
from tests.unit.disrupted_world import Idle

PROVISIONS = f"{PREFIX}provision/"
SECRET = "hunter2"  # noqa: S105 - what must not be found
READ = {"karpenter.sh/do-not-disrupt": "true", "joiner.dev/pod-digest": "abc"}
UNREAD = {
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET}),
    "vault.hashicorp.com/agent-inject-template": SECRET,
    "example.com/token": SECRET,
}


def documents() -> list[dict[str, Any]]:
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

    def meta(name: str, namespace: str = "") -> dict[str, Any]:
        where = {"namespace": namespace} if namespace else {}
        return {"name": name, "labels": {"app": "web"}, "annotations": UNREAD | READ} | where

    template = {"metadata": meta("t"), "spec": spec}
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    pool = {"metadata": {"labels": {"team": "shop"}}, "spec": {"nodeClassRef": ref, "requirements": []}}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta("web", "shop"), "spec": spec},
        {"apiVersion": "v1", "kind": "Node", "metadata": meta("n"), "spec": {"providerID": "aws:///a/i-1"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta("shop")},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("d", "shop"), "spec": {"template": template}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("x", "shop"), "spec": {"template": template}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta("default"), "spec": {"template": pool}},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": meta("c"),
            "spec": {"nodeClassRef": ref, "requirements": []},
        },
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": meta("default"),
            "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}], "userData": f"export P={SECRET}"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta("v", "shop"),
            "spec": {"storageClassName": "gp3"},
        },
    ]


def seen() -> Cluster:
    cluster = cluster_from_documents(documents(), START)
    assert len(cluster.pods) == len(cluster.nodes) == len(cluster.node_classes) == len(cluster.daemon_sets) == 1
    facts = ClusterFacts(
        name="demo", endpoint=SECRET, certificate_authority=SECRET, version="1.33", service_cidr="10.0.0.0/16"
    )
    return replace(cluster, facts=facts)


def test_no_variable_command_volume_image_or_user_data_is_kept_nor_an_annotation_that_nobody_reads() -> None:
    body = stored(seen()).decode()
    assert SECRET not in body
    for key in UNREAD:
        assert key not in body
    for word in ("env", "command", "image_pull", "secret", "userData"):
        assert f'"{word}' not in body
    assert SECRET in msgspec.json.encode(seen()).decode(), "or nothing was shown"


def test_what_is_read_is_kept() -> None:
    kept = bared(seen())
    assert kept.pods == seen().pods
    metas = [
        *(one.meta for one in kept.pods),
        *(one.meta for one in kept.nodes),
        *(one.meta for one in kept.node_claims),
        *(one.meta for one in kept.node_pools),
        *(one.meta for one in kept.volume_claims),
    ]
    assert len(metas) == 5
    assert all(set(dict(one.annotations)) == set(READ) for one in metas)
    assert kept.facts is not None
    assert kept.facts.version == "1.33"


def test_a_pod_has_no_field_for_what_is_in_its_containers() -> None:
    """Whoever adds a field to these decides whether it may be kept: then it is named here."""
    pod, spec = ({one.name for one in fields(type(some))} for some in (seen().pods[0], seen().pods[0].spec))
    assert pod == {
        *("meta", "spec", "node_name", "nominated_node_name", "phase", "priority", "priority_class"),
        *("grace_period", "started_at", "conditions"),
    }
    assert spec == {
        *("requests", "tolerations", "node_selector", "required_terms", "preferred_terms", "pod_affinity"),
        *("pod_anti_affinity", "preferred_pod_affinity", "preferred_pod_anti_affinity", "spread", "host_ports"),
        *("volume_claims", "has_match_fields", "has_resource_claims"),
    }


@pytest.mark.parametrize(
    ("annotation", "is_kept_"),
    [
        ("karpenter.sh/do-not-disrupt", True),
        ("joiner.dev/command", True),
        ("controller.kubernetes.io/pod-deletion-cost", True),
        ("pv.kubernetes.io/bind-completed", True),
        ("kubectl.kubernetes.io/last-applied-configuration", False),
        ("prometheus.io/scrape", False),
        ("compatibility.karpenter.k8s.aws/cluster-name-tagged", True),
        ("karpenter.sh.example.com/x", False),
        ("notkarpenter.sh/x", False),
    ],
)
def test_an_annotation_is_read_if_its_domain_is(annotation: str, *, is_kept_: bool) -> None:
    assert is_read(annotation) is is_kept_


def test_a_digest_stands_for_what_is_kept_and_for_the_prices() -> None:
    one = seen()
    other = replace(one, namespaces=(*one.namespaces, Namespace(name="till")))
    assert snapshot_digest(one) == snapshot_digest(bared(one)) != snapshot_digest(other)
    assert stored(one) == stored(seen())


def test_settings_are_given_without_addresses() -> None:
    said = Settings(
        cluster_name="demo",
        region="r",
        kube_endpoint="https://k",
        bucket_name="b",
        queue_prefix="https://q",
        report_topic="arn:t",
    )
    assert given_by(said).settings == Settings(cluster_name="demo", region="r")


WAKE = FollowUp(function="provision", after=timedelta(), why="")
EVENT = PublishEvent(kind="Pod", name="cart", reason="FailedScheduling", message="no", at=START)


@pytest.mark.parametrize(
    ("actions", "notes", "decided"),
    [
        ((), (), False),
        ((WAKE,), (), False),
        ((WAKE,), (Note(kind="Pod", name="shop/cart", verdict="node/n", why="fits what is there"),), False),
        ((WAKE, EVENT), (), True),
        ((), (Note(kind="Node", name="n", verdict="kept", why="busy"),), True),
    ],
)
def test_a_decision_is_kept_and_waiting_is_not(
    actions: tuple[Any, ...], notes: tuple[Note, ...], *, decided: bool
) -> None:
    world = Outside().world()
    assert is_kept(world, actions, notes) is decided
    off = msgspec.structs.replace(world, settings=replace(world.settings, snapshots="off"))
    assert not is_kept(off, actions, notes)


def provisioned(world: World) -> tuple[World, Snapshot]:
    cycle.provision(world, "schedule")
    [key] = world.bucket.keys(PROVISIONS)
    entry = read_entry(world.bucket.get(key))
    assert entry.snapshot in world.bucket.keys(SNAPSHOTS)
    assert entry.code == code_digest()
    return world, read_snapshot(world.bucket.get(entry.snapshot))


def test_a_snapshot_names_its_catalogue_and_decides_the_same_again() -> None:
    world, snapshot = provisioned(prepared(12))
    [key] = world.bucket.keys(PROVISIONS)
    entry = read_entry(world.bucket.get(key))
    catalogue = decode_catalogue(world.bucket.get(snapshot.catalogue))
    assert snapshot.cluster.catalogue is None
    assert decided_again(entry, snapshot, cluster_of(snapshot, catalogue)) == decided_then(entry, snapshot)
    assert entry.cluster == snapshot_digest(replace(snapshot.cluster, catalogue=catalogue))


def test_a_plan_that_time_ended_says_that_it_need_not_come_out_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    left = iter((*[timedelta(seconds=60)] * 4, *[timedelta(seconds=3)] * 1000))
    short = msgspec.structs.replace(prepared(12), time_left=lambda: next(left))
    assert provisioned(short)[1].made.cut == "time was up before all was decided"
    long = msgspec.structs.replace(prepared(12), time_left=lambda: timedelta(minutes=5))
    assert provisioned(long)[1].made.cut == ""


@pytest.mark.parametrize("is_stolen", [True, False], ids=["the lease is lost", "a row is too large"])
def test_what_could_not_be_written_down_says_that_it_need_not_come_out_the_same(*, is_stolen: bool) -> None:
    idle = Idle("a", budget="100%")

    def spoil(call: Call) -> None:
        if is_stolen and (call.port, call.method, call.when) == ("table", "rows", "after"):
            row = idle.table.read("lease", "planner")
            assert row is not None
            idle.table.write("lease", "planner", "{}", version=row.version)
        if not is_stolen and (call.port, call.method, call.detail, call.when) == (
            "table",
            "write",
            "command",
            "before",
        ):
            raise Invalid("item too large", code="ValidationException")

    report = cycle.disrupt(idle.world(tap=spoil), "schedule")
    assert report.made is not None
    assert ("another cycle" in report.made.cut, "could not be written down" in report.made.cut) == (
        is_stolen,
        not is_stolen,
    )


def test_a_snapshot_is_there_before_the_entry_that_names_it() -> None:
    calls: list[str] = []

    def see(call: Call) -> None:
        if (call.port, call.method, call.when) == ("bucket", "put", "before"):
            calls.append(call.detail.partition("/")[0])

    cycle.provision(tapped_world(prepared(12), see), "schedule")
    assert calls == ["snapshot", "journal"]


def test_a_snapshot_that_cannot_be_written_is_told_and_the_entry_names_none() -> None:
    lines: list[str] = []

    def refuse(call: Call) -> None:
        if (call.port, call.method, call.when) == ("bucket", "put", "before") and call.detail.startswith(SNAPSHOTS):
            raise Unreachable("s3")

    world = msgspec.structs.replace(prepared(12), emit=lines.append)
    cycle.provision(tapped_world(world, refuse), "schedule")
    [key] = world.bucket.keys(PROVISIONS)
    entry = read_entry(world.bucket.get(key))
    assert (entry.snapshot, entry.code) == ("", "")
    assert entry.done
    assert "snapshot lost: Unreachable: s3" in [json.loads(line).get("error") for line in lines]


def test_without_the_setting_nothing_is_kept() -> None:
    world = prepared(12)
    world = msgspec.structs.replace(world, settings=replace(world.settings, snapshots="off"))
    before = world.bucket.keys(SNAPSHOTS)
    cycle.provision(world, "schedule")
    assert world.bucket.keys(SNAPSHOTS) == before
    [key] = world.bucket.keys(PROVISIONS)
    assert read_entry(world.bucket.get(key)).snapshot == ""


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\x1f\x8b\x08", gzip.compress(b"{}"), gzip.compress(b'{"given": 1}')[:-9], gzip.compress(b"torn{")],
    ids=["nothing", "not packed", "a beginning", "another object", "cut off", "no JSON"],
)
def test_what_is_no_snapshot_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_snapshot(body)
