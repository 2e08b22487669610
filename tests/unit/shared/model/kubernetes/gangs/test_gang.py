"""Gangs of pods: the labels and annotations of each tool."""

import pytest
from msgspec.structs import replace

from shared.model.core.metadata import build_pairs
from shared.model.kubernetes.gangs.gang import GangMembership, find_gang_membership, parse_count
from shared.model.kubernetes.pod import Pod
from shared.wire.decode.pods import parse_pod
from shared.wire.schema.core import ObjectMetaJson
from shared.wire.schema.pods import PodJson, PodSpecJson
from tests.support.catalogues import make_pod

LWS = "leaderworkerset.sigs.k8s.io"


def make_member(labels: dict[str, str], annotations: dict[str, str]) -> Pod:
    pod = make_pod("x", labels=labels)
    return replace(pod, meta=replace(pod.meta, annotations=build_pairs(annotations)))


@pytest.mark.parametrize(
    ("labels", "annotations", "name", "size"),
    [
        ({}, {"joiner.dev/gang": "train", "joiner.dev/gang-size": "4"}, "shop/train", 4),
        (
            {"kueue.x-k8s.io/pod-group-name": "train"},
            {"kueue.x-k8s.io/pod-group-total-count": "4"},
            "shop/train",
            4,
        ),
        ({f"{LWS}/name": "llm", f"{LWS}/group-index": "2"}, {f"{LWS}/size": "5"}, "shop/llm-2", 5),
        (
            {"scheduling.x-k8s.io/pod-group": "train"},
            {"joiner.dev/gang-size": "6"},
            "shop/train",
            6,
        ),
    ],
    ids=["annotations", "Kueue", "LeaderWorkerSet", "PodGroup"],
)
def test_each_tool_tells_the_gang_and_its_size(
    labels: dict[str, str], annotations: dict[str, str], name: str, size: int
) -> None:
    assert find_gang_membership(make_member(labels, annotations)) == GangMembership(name=name, size=size)


def test_job_set_tells_only_the_number_of_its_jobs() -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/global-replicas": "3"}
    membership = GangMembership(name="shop/train", size=3, is_exact=False)
    assert find_gang_membership(make_member(labels, {})) == membership
    exact = find_gang_membership(make_member(labels, {"joiner.dev/gang-size": "8"}))
    assert exact == GangMembership(name="shop/train", size=8)
    restarted = find_gang_membership(make_member(labels | {"jobset.sigs.k8s.io/restart-attempt": "1"}, {}))
    assert restarted == replace(membership, name="shop/train-1")


@pytest.mark.parametrize("annotations", [{}, {"joiner.dev/gang": "train", "joiner.dev/gang-size": "1"}])
def test_other_pods_are_in_no_gang(annotations: dict[str, str]) -> None:
    assert find_gang_membership(make_member({"app": "web"}, annotations)) is None


def test_size_of_an_own_gang_must_be_written() -> None:
    membership = find_gang_membership(make_member({}, {"joiner.dev/gang": "train"}))
    assert membership is not None
    assert membership.problem == "joiner.dev/gang-size: is missing: write the number of pods"


def test_annotations_of_other_tools_are_read() -> None:
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "4", f"{LWS}/size": "5", "other.tool/x": "y"}
    pod = parse_pod(PodJson(metadata=ObjectMetaJson(name="x", annotations=annotations), spec=PodSpecJson()))
    assert dict(pod.meta.annotations) == {key: value for key, value in annotations.items() if key != "other.tool/x"}


@pytest.mark.parametrize("size", ["9" * 5000, "99999999999999999999"])
def test_size_with_many_digits_is_an_error_of_the_gang_and_not_of_the_plan(size: str) -> None:
    membership = find_gang_membership(make_member({}, {"joiner.dev/gang": "train", "joiner.dev/gang-size": size}))
    assert membership is not None
    start = f"joiner.dev/gang-size: '{'9' * 20}' is not a number from 1 to 10,000"
    assert membership.problem == f"{start}: write the number of pods"


@pytest.mark.parametrize(
    ("text", "count"), [("", None), ("x", None), ("-1", None), ("0", 0), ("007", 7), ("10", 10), ("11", 11), ("99", 11)]
)
def test_count_is_parsed_up_to_its_maximum(text: str, count: int | None) -> None:
    assert parse_count(text, 10) == count
