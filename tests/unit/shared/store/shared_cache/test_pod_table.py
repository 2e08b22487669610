"""Tests of the stored form of pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference
from shared.model.core.resources import Resources
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.store.shared_cache.pod_table import PodColumns, build_pod_columns, build_pods

AT = datetime(2026, 11, 27, 12, 0, 1, 250_000, tzinfo=UTC)
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="cart-1", uid="u", controller=True)
SPEC = PodSpec(requests=Resources(amounts=(("cpu", 250), ("memory", 2**30))), volume_claims=("data",))
META = ObjectMeta(
    name="cart-1",
    namespace="shop",
    uid="5b0f5b0e-0000-4000-8000-000000000001",
    resource_version="12",
    generation=3,
    created_at=AT,
    deleted_at=AT + timedelta(seconds=30),
    labels=(("app", "cart"),),
    annotations=(("karpenter.sh/do-not-disrupt", "true"),),
    finalizers=("example.com/f",),
    owners=(OWNER,),
)
CONDITIONS = (
    Condition(type="PodScheduled", status="True", since=AT, observed_generation=2),
    Condition(type="Ready", status="False", reason="R", message="M", since=None),
)
FULL = Pod(
    meta=META,
    spec=SPEC,
    node_name="n-1",
    nominated_node_name="n-2",
    phase="Running",
    priority=-5,
    priority_class="low",
    grace_period=timedelta(seconds=45),
    started_at=AT,
    conditions=CONDITIONS,
    restarts=7,
    restart_policy="OnFailure",
    active_deadline=timedelta(hours=1),
    claim_names=(("gpu", "cart-gpu"),),
)
PLAIN = Pod(meta=ObjectMeta(name="plain", namespace="shop"), spec=PodSpec())


def store_and_load(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    return build_pods(msgspec.msgpack.decode(msgspec.msgpack.encode(build_pod_columns(pods)), type=PodColumns))


def list_variants() -> list[Pod]:
    """Return pods that differ from FULL in one field each: in a default, if FULL has another value."""
    pod_fields: dict[str, Any] = {
        field.name: field.default for field in msgspec.structs.fields(Pod) if not field.required
    }
    meta_fields: dict[str, Any] = {
        field.name: field.default for field in msgspec.structs.fields(ObjectMeta) if not field.required
    }
    return [
        *(replace(FULL, **{name: default}) for name, default in pod_fields.items()),
        *(replace(FULL, meta=replace(META, **{name: default})) for name, default in meta_fields.items()),
        replace(FULL, spec=PodSpec()),
        replace(FULL, meta=replace(META, name="other")),
    ]


def test_every_field_of_a_pod_is_stored() -> None:
    pods = (PLAIN, FULL, *list_variants(), PLAIN)
    assert len(set(map(msgspec.json.encode, pods))) == len(pods) - 1, "the variants differ"
    assert store_and_load(pods) == pods
    assert store_and_load(()) == ()


def test_pods_that_shared_a_spec_share_it_again() -> None:
    equal_spec = msgspec.json.decode(msgspec.json.encode(SPEC), type=PodSpec)
    first, second, third = store_and_load((FULL, replace(FULL, restarts=1), replace(FULL, spec=equal_spec)))
    assert first.spec is second.spec
    assert third.spec == first.spec


@pytest.mark.parametrize(
    "change",
    [
        {"names": ["a"]},
        {"restarts": {}, "generations": [1, 2, 3]},
        {"condition_times": []},
        {"condition_times": [None] * 9},
        {"node_indexes": [0, 9]},
        {"shared_indexes": [9, 9]},
        {"condition_indexes": [0, 9]},
        {"specs": []},
    ],
)
def test_columns_that_do_not_match_are_refused(change: dict[str, Any]) -> None:
    columns = build_pod_columns((PLAIN, FULL))
    with pytest.raises((ValueError, IndexError)):
        build_pods(replace(columns, **change))
