"""Kinds that are read only where a feature wants them."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from shared.actions.kube_writes import path_of
from shared.errors import Gone
from shared.model.cluster import Cluster
from shared.model.objects import Meta, Problem
from shared.model.overlays import NodeOverlay
from shared.model.selectors import selector
from shared.model.workloads import CapacityBuffer, ScalableRef, Workload
from shared.ports import Kube
from shared.settings import gates_from
from shared.snapshot.features import featured, glance, survey, with_overlays
from shared.snapshot.optional import OPTIONAL
from shared.snapshot.take import Wanted
from shared.snapshot.watching import Watching
from tests.unit.snapshot_world import NOW, Lists, world

BY_FIELD = {listing.field: listing for listing in OPTIONAL}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
}


def read(field: str, **body: Any) -> Any:
    [found], problems = BY_FIELD[field].objects([{"metadata": {"name": "web", "namespace": "shop"}} | body])
    assert problems == []
    return found


@pytest.mark.parametrize("field", ["deployments", "replica_sets", "stateful_sets"])
def test_a_workload_has_replicas_a_selector_and_pods(field: str) -> None:
    chosen = {"matchLabels": {"app": "web"}}
    one = read(field, spec={"replicas": 3, "selector": chosen, "template": TEMPLATE})
    assert isinstance(one, Workload)
    assert (one.replicas, one.labels, one.spec.requests["cpu"]) == (3, (("app", "web"),), 2000)
    assert one.selector == selector({"app": "web"})
    assert read(field, spec={"template": TEMPLATE}).replicas == 1


def test_other_templates_and_selectors() -> None:
    template = read("pod_templates", template=TEMPLATE)
    assert (template.kind, template.spec.requests["cpu"]) == ("PodTemplate", 2000)
    assert read("replication_controllers", spec={"selector": {"a": "b"}}).selector == selector({"a": "b"})
    assert read("replication_controllers", spec={}).selector is None
    assert read("services", spec={"selector": {"a": "b"}}).selector == (("a", "b"),)
    assert read("services", spec={}).selector == ()


def test_a_bad_template_is_named_by_its_field() -> None:
    bad = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}}
    _, [problem] = BY_FIELD["deployments"].objects([{"metadata": {"name": "web"}, "spec": {"template": bad}}])
    assert problem.message.startswith("spec.template.spec.containers[c].resources.requests: cpu: not a quantity")


def test_a_buffer_is_read_whole() -> None:
    one = read(
        "capacity_buffers",
        spec={"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 20, "limits": {"cpu": "4"}},
        status={
            "replicas": 2,
            "podTemplateRef": {"name": "t"},
            "podTemplateGeneration": 5,
            "provisioningStrategy": "s",
        },
    )
    assert isinstance(one, CapacityBuffer)
    assert (one.scalable, one.percentage, one.limits["cpu"]) == (ScalableRef(kind="Deployment", name="web"), 20, 4000)
    told = (one.told_replicas, one.told_template, one.told_generation, one.told_strategy)
    assert told == (2, "t", 5, "s")
    assert one.strategy == "buffer.x-k8s.io/active-capacity"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": 1}, "podTemplateRef or scalableRef"),
        ({"podTemplateRef": {"name": "t"}, "scalableRef": {"kind": "Deployment", "name": "d"}}, "one of them"),
        ({"podTemplateRef": {"name": "t"}}, "needs replicas or limits"),
        ({"podTemplateRef": {"name": "t"}, "replicas": -1}, "replicas: -1 is below zero"),
        ({"scalableRef": {"kind": "Deployment", "name": "d"}, "percentage": -1}, "percentage: -1 is below zero"),
    ],
)
def test_a_buffer_that_cannot_be_meant_is_named(spec: dict[str, Any], words: str) -> None:
    _, [problem] = BY_FIELD["capacity_buffers"].objects([{"metadata": {"name": "b"}, "spec": spec}])
    assert words in problem.message


def test_gates_are_karpenters() -> None:
    assert gates_from("").reserved_capacity
    assert gates_from("NodeOverlay=true, Unheard=true,,StaticCapacity=false").node_overlay
    with pytest.raises(ValueError, match="NodeOverlay=yes"):
        gates_from("NodeOverlay=yes")


def test_what_is_not_there_is_none_without_a_word() -> None:
    kube = Lists({})
    kube.faults["NodeOverlay"] = Gone("nodeoverlays")
    problems: list[Problem] = []
    found = Watching(cast("Kube", kube), None, NOW).lists([BY_FIELD["node_overlays"]], problems)
    assert (found, problems) == ({"node_overlays": ()}, [])


def test_an_object_in_a_namespace_has_it_in_its_path() -> None:
    assert (
        path_of("CapacityBuffer", "b", "shop") == "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/b"
    )
    assert path_of("NodeOverlay", "o") == "/apis/karpenter.sh/v1alpha1/nodeoverlays/o"


NOTHING = Wanted(lists=())


def asked(gates: str, config: str = "", **objects: Any) -> set[str]:
    """Answer the optional kinds that a survey and a glance ask for."""
    kube = Lists(objects)
    plain = world(kube)
    some = replace(plain, settings=replace(plain.settings, feature_gates=gates, scheduler_config=config))
    survey(some, NOTHING)
    glance(some)
    with_overlays(some, Cluster(taken_at=NOW))
    return {one.kind for one in OPTIONAL} & set(kube.asked)


@pytest.mark.parametrize(
    ("gates", "config", "kinds"),
    [
        ("", "", set()),
        ("StaticCapacity=true", "", set()),
        ("NodeOverlay=true", "", {"NodeOverlay"}),
        ("CapacityBuffer=true", "", {"CapacityBuffer"}),
        ("", "{}", {"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}),
    ],
)
def test_only_what_features_want_is_asked_for(gates: str, config: str, kinds: set[str]) -> None:
    assert asked(gates, config) == kinds


def test_what_buffers_are_for_is_asked_for_where_there_are_any() -> None:
    some = {"metadata": {"name": "b"}, "spec": {"scalableRef": {"kind": "Deployment", "name": "d"}}}
    wanted = {"CapacityBuffer", "PodTemplate", "Deployment", "ReplicaSet", "StatefulSet"}
    assert asked("CapacityBuffer=true", CapacityBuffer=[some]) == wanted
    assert asked("CapacityBuffer=true", "{}", CapacityBuffer=[some]) == wanted | {"Service", "ReplicationController"}


def test_what_is_off_counts_as_not_there() -> None:
    buffer = CapacityBuffer(meta=Meta(name="b"))
    cluster = Cluster(taken_at=NOW, node_overlays=(NodeOverlay(meta=Meta(name="o")),), capacity_buffers=(buffer,))
    off = featured(cluster, "", "")
    assert (off.node_overlays, off.capacity_buffers) == ((), ())
    on = featured(cluster, "NodeOverlay=true,CapacityBuffer=true", "")
    assert (on.node_overlays, on.capacity_buffers) == (cluster.node_overlays, cluster.capacity_buffers)


def test_the_catalogue_is_read_for_overlays_only_where_there_are_any() -> None:
    overlay = {"metadata": {"name": "o"}, "spec": {}}
    some = world(Lists({"NodeOverlay": [overlay]}))
    on = replace(some, settings=replace(some.settings, feature_gates="NodeOverlay=true"))
    seen = with_overlays(on, Cluster(taken_at=NOW))
    assert ([one.name for one in seen.node_overlays], [one.kind for one in seen.problems]) == (["o"], ["Catalogue"])
