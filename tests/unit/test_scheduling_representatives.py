"""What DaemonSets take is what their newest pods take."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from shared.model.labels import ZONE
from shared.model.objects import Meta, Owner
from shared.model.pods import DaemonSet, Pod, PodSpec
from shared.scheduling.representatives import with_representatives
from shared.scheduling.solve import solve
from tests.unit.catalogues import NOW, asks, daemon, needs, node, placed, pod, world

AGENT = replace(daemon("agent"), meta=Meta(name="agent", namespace="kube-system", uid="uid-agent"))
OWNER = Owner(api_version="apps/v1", kind="DaemonSet", name="agent", uid="uid-agent", controller=True)


def living(name: str, cpu: str, age: int = 0, **more: Any) -> Pod:
    return pod(name, cpu, namespace="kube-system", owners=(OWNER,), on="here", age=age, **more)


def represented(*pods: Pod, of: DaemonSet = AGENT) -> PodSpec:
    return with_representatives(world(*pods, daemon_sets=(of,))).daemon_sets[0].spec


def test_the_newest_living_pod_speaks_for_its_daemonset() -> None:
    over = replace(living("agent-3", "9"), phase="Failed")
    going = living("agent-4", "8")
    going = replace(going, meta=replace(going.meta, deleted_at=NOW + timedelta(seconds=30)))
    assert (
        represented(living("agent-1", "1", age=60), living("agent-2", "2", age=5), over, going).requests["cpu"] == 2000
    )


def test_without_a_living_pod_the_template_speaks() -> None:
    other = replace(OWNER, uid="uid-other")
    stranger = pod("agent-9", "7", namespace="kube-system", owners=(other,), on="here")
    elsewhere = pod("agent-1", "7", namespace="shop", owners=(OWNER,), on="here")
    assert represented(stranger) == AGENT.spec
    assert represented(elsewhere) == AGENT.spec
    nameless = replace(AGENT, meta=Meta(name="agent", namespace="kube-system"))
    assert represented(living("agent-1", "7"), of=nameless) == AGENT.spec


def test_the_template_says_where_its_pods_may_be() -> None:
    pinned = needs(("kubernetes.io/hostname", "In", ["here"]))
    zonal = replace(AGENT, spec=replace(AGENT.spec, required_terms=(needs((ZONE, "In", ["a"])),)))
    assert (
        represented(living("agent-1", "1", required_terms=(pinned,)), of=zonal).required_terms
        == zonal.spec.required_terms
    )
    assert represented(living("agent-1", "1", required_terms=(pinned,))).required_terms == (pinned,)


def test_what_defaults_and_resizes_made_of_a_daemon_is_kept_free_for_it() -> None:
    wants = pod("x", "3")
    room = (node("here", "8"), node("next", "4"))
    grown = living("agent-1", "2")
    assert placed(solve(world(wants, pod("busy", "6", on="here"), nodes=room, daemon_sets=(AGENT,))))["x"] == "next"
    found = placed(solve(world(wants, pod("busy", "6", on="here"), grown, nodes=room, daemon_sets=(AGENT,))))
    assert found["x"] == "default"


def test_no_daemons_no_change() -> None:
    cluster = world(pod("x"), daemon_sets=(AGENT,))
    assert with_representatives(cluster) is cluster
    assert represented(living("agent-1", "1")).requests == asks("1")
