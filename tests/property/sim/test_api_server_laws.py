"""Laws of the API server in memory."""

from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.crds.validation_rules import Json
from shared.errors import Fault
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.api_server.rules.label_and_field_selectors import parse_label_selector
from sim.cluster.api_server.rules.merge_patch import merge_patch, without_nulls
from sim.time.virtual_clock import Clock

NAMES = st.text("abc", min_size=1, max_size=2)
WORDS = st.text("abxyz", max_size=3)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | WORDS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "label", "status", "finalize", "release", "bind", "delete", "end", "evict"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["", "x", "y"]),
    ),
    max_size=25,
)

Change = tuple[str, dict[str, Any] | None, dict[str, Any] | None]


def make_pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}}


def apply_step(api: ApiServer, step: tuple[str, str, str]) -> None:
    """Apply a step; refusals of the API server are ignored."""
    verb, name, word = step
    finalizers = {"metadata": {"finalizers": [f"example.com/{word}"] if word else []}}
    try:
        match verb:
            case "create":
                api.create("pods", make_pod(name), "default")
            case "label":
                api.patch("pods", name, {"metadata": {"labels": {"l": word or None}}}, "default")
            case "status":
                api.patch("pods", name, {"status": {"phase": word or "Running"}}, "default", "status")
            case "finalize":
                api.patch("pods", name, finalizers, "default")
            case "release":
                api.patch("pods", name, {"metadata": {"finalizers": None}}, "default")
            case "bind":
                api.bind("default", name, f"node-{word}")
            case "delete":
                api.delete("pods", name, "default")
            case "end":
                api.delete("pods", name, "default", grace_period_seconds=0)
            case _:
                api.evict("default", name)
    except Fault:
        return


def get_version(obj: dict[str, Any] | None) -> int:
    return int(obj["metadata"]["resourceVersion"]) if obj else 0


@given(STEPS)
def test_resource_versions_increase_and_changes_are_published_in_order(steps: list[tuple[str, str, str]]) -> None:
    api, changes = ApiServer(Clock(), definitions=()), list[Change]()
    api.subscribe("pods", lambda *change: changes.append(change))
    objects_by_name: dict[str, dict[str, Any]] = {}
    for step in steps:
        before, already = api.revision, len(changes)
        apply_step(api, step)
        assert api.revision - before == len(changes) - already
    newest = 0
    for event, old, new in changes:
        name = (new or old or {})["metadata"]["name"]
        assert objects_by_name.get(name) is old
        assert (event == "ADDED", event == "DELETED") == (old is None, new is None)
        if new is None:
            del objects_by_name[name]
        else:
            assert get_version(new) > newest
            newest = get_version(new)
            objects_by_name[name] = new
    assert [objects_by_name[name] for name in sorted(objects_by_name)] == api.list("pods")


@given(STEPS)
def test_published_objects_are_never_modified_afterwards(steps: list[tuple[str, str, str]]) -> None:
    api, encoded_changes = ApiServer(Clock(), definitions=()), list[tuple[dict[str, Any], bytes]]()
    api.subscribe("pods", lambda _, __, new: encoded_changes.append((new, msgspec.json.encode(new))) if new else None)
    for step in steps:
        apply_step(api, step)
    assert all(msgspec.json.encode(obj) == then for obj, then in encoded_changes)


@given(STEPS)
def test_pod_index_by_node_equals_the_filtered_list(steps: list[tuple[str, str, str]]) -> None:
    api = ApiServer(Clock(), definitions=())
    for step in steps:
        apply_step(api, step)
    for node in ("node-", "node-x", "node-y"):
        assert api.list_pods_on_node(node) == api.list("pods", field_selector=f"spec.nodeName={node}")


@given(STEPS, st.integers(0, 3))
def test_same_seed_produces_identical_objects(steps: list[tuple[str, str, str]], seed: int) -> None:
    worlds = []
    for _ in range(2):
        clock = Clock()
        api = ApiServer(clock, seed, definitions=())
        for step in steps:
            apply_step(api, step)
            clock.advance(timedelta(seconds=1))
        worlds.append(msgspec.json.encode(api.list("pods")))
    assert worlds[0] == worlds[1]


@given(st.sets(st.text("abc", min_size=1, max_size=3), max_size=12), st.integers(1, 5), STEPS)
def test_paginated_list_equals_the_full_list(pods: set[str], limit: int, meanwhile: list[tuple[str, str, str]]) -> None:
    api = ApiServer(Clock(), definitions=())
    kube = InMemoryKube(api)
    for name in pods:
        api.create("pods", make_pod(name), "default" if len(name) > 1 else "kube-system")
    all_pods = msgspec.json.decode(kube.list("/api/v1/pods", limit=0))["items"]
    paged, token = [], ""
    while True:
        page = msgspec.json.decode(kube.list("/api/v1/pods", limit=limit, continue_token=token))
        paged += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        assert len(page["items"]) == limit
        assert page["metadata"]["remainingItemCount"] == len(all_pods) - len(paged)
        for step in meanwhile:
            apply_step(api, step)
    assert paged == all_pods


@given(JSON, OBJECTS)
def test_merge_patch_is_idempotent(target: Json, patch: dict[str, Any]) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(OBJECTS)
def test_empty_merge_patch_changes_nothing(target: dict[str, Any]) -> None:
    assert merge_patch(target, {}) == target


@given(JSON, JSON.filter(lambda patch: not isinstance(patch, dict)))
def test_merge_patch_that_is_not_an_object_replaces_the_target(target: Json, patch: Json) -> None:
    assert merge_patch(target, patch) == patch


@given(OBJECTS, OBJECTS)
def test_merge_patch_sets_or_removes_exactly_its_keys(target: dict[str, Any], patch: dict[str, Any]) -> None:
    result = merge_patch(target, patch)
    assert {key for key in patch if patch[key] is None}.isdisjoint(result)
    assert {key: target[key] for key in target if key not in patch} == {
        key: result[key] for key in result if key not in patch
    }
    assert all(result[key] == merge_patch(target.get(key), patch[key]) for key in patch if patch[key] is not None)


@given(JSON, OBJECTS)
def test_merge_patch_does_not_modify_its_arguments(target: Json, patch: dict[str, Any]) -> None:
    before = msgspec.json.encode((target, patch))
    merge_patch(target, patch)
    assert msgspec.json.encode((target, patch)) == before


@given(JSON)
def test_removing_nulls_leaves_no_null_in_any_object(value: Json) -> None:
    def has_nulls(value: Json) -> bool:
        if isinstance(value, dict):
            return any(item is None or has_nulls(item) for item in value.values())
        return isinstance(value, list) and any(has_nulls(item) for item in value)

    cleaned = without_nulls(value)
    assert not has_nulls(cleaned)
    assert (cleaned is value) is not has_nulls(value)


@given(st.dictionaries(st.sampled_from(["a", "b/c"]), WORDS), st.sampled_from(["a", "b/c"]), WORDS)
def test_opposite_label_selectors_partition_all_labels(labels: dict[str, str], key: str, value: str) -> None:
    for positive, negative in (
        (f"{key}={value}", f"{key}!={value}"),
        (f"{key} in ({value},q)", f"{key} notin ({value}, q)"),
        (key, f"!{key}"),
    ):
        is_selected, is_excluded = parse_label_selector(positive), parse_label_selector(negative)
        assert is_selected is not None
        assert is_excluded is not None
        assert is_selected(labels) != is_excluded(labels)
