"""Drift that is asked for, and a new image that one node tries before the others."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.disruption.drifts import describe_drift, drifts
from shared.model import labels
from shared.model.action import PatchStatus, PublishEvent
from shared.model.cluster import Cluster
from shared.model.nodeclasses import ResolvedImage
from shared.model.objects import Condition, Meta, pairs
from tests.unit.catalogues import NOW, node_class, pool
from tests.unit.disruption_fleet import STAGES, Machine, fleet, guard, machine, true, web

CLASS = replace(node_class(), resolved_images=(ResolvedImage(image_id="ami-new"),))


def soaking(soak: str = "24h", name: str = "default") -> object:
    return pool(name, meta=Meta(name=name, annotations=((labels.IMAGE_SOAK, soak),)), budgets=())


def with_image(image: str, some: Machine, *, fit_hours: float | None = 1) -> Machine:
    there, claim, pods = some
    fit = () if fit_hours is None else (replace(true("Initialized")[0], since=NOW - timedelta(hours=fit_hours)),)
    others = tuple(one for one in claim.conditions if one.type != "Initialized")
    return there, replace(claim, image_id=image, conditions=(*others, *fit)), pods


def old(name: str, *pods: object, **fields: object) -> Machine:
    return with_image("ami-old", machine(name, *pods, **fields))  # type: ignore[arg-type]


def drifted(cluster: Cluster) -> list[str]:
    return [one.one.claim.name.removeprefix("claim-") for one in drifts(cluster) if one.reason == "AMIDrift"]


def there(*machines: Machine, soak: str = "24h") -> Cluster:
    return fleet(*machines, pools=(soaking(soak),), node_classes=(CLASS,))  # type: ignore[arg-type]


def words(cluster: Cluster) -> list[str]:
    return [one.message for one in describe_drift(cluster) if isinstance(one, PublishEvent)]


@pytest.mark.parametrize("of", ["claim", "node"])
@pytest.mark.parametrize(("text", "reason"), [("drifted", "DriftRequested"), ("other", "")])
def test_a_node_or_claim_may_be_called_drifted(of: str, text: str, reason: str) -> None:
    node, claim, _ = machine("a")
    note = ((labels.VOLUNTARY_DISRUPTION, text),)
    if of == "claim":
        claim = replace(claim, meta=replace(claim.meta, annotations=note))
    else:
        node = replace(node, meta=replace(node.meta, annotations=note))
    [one] = drifts(fleet((node, claim, ())))
    assert (one.reason or "") == reason
    writes = [one for one in describe_drift(fleet((node, claim, ()))) if isinstance(one, PatchStatus)]
    assert [f'"reason":"{reason}"' in one.status for one in writes] == ([True] if reason else [])


def test_without_a_soak_all_drift_at_once() -> None:
    some = fleet(old("a"), old("b"), node_classes=(CLASS,))
    assert drifted(some) == ["a", "b"]
    assert words(some) == []


def test_one_node_tries_a_new_image_first() -> None:
    some = there(old("a"), old("b"), old("c"))
    assert drifted(some) == ["a"]
    [said] = words(some)
    assert said.startswith("claim-a is replaced first, 2 nodes keep their image: one is to try image ami-new ")
    assert said.endswith("(annotation joiner.dev/image-soak)")


def test_the_first_is_one_that_may_be_disrupted() -> None:
    held = guard("web", {"app": "web"}, 0)
    kept = old("a", annotations={labels.DO_NOT_DISRUPT: "true"})
    some = there(kept, old("b", web("1")), old("c"), old("d"))
    assert drifted(replace(some, budgets=(held,))) == ["c"]
    stays = web("1")
    stays = replace(stays, meta=replace(stays.meta, annotations=((labels.DO_NOT_DISRUPT, "true"),)))
    assert drifted(there(kept, old("b", stays))) == ["a"]


def test_who_was_chosen_stays_chosen() -> None:
    node, claim, pods = old("b")
    mark = Condition(type="Drifted", status="True", reason="AMIDrift", since=NOW)
    some = there(old("a"), (node, replace(claim, conditions=(*claim.conditions, mark)), pods))
    assert drifted(some) == ["b"]


@pytest.mark.parametrize(
    ("fit_hours", "all_drift", "said"),
    [
        (None, False, "2 nodes keep their image until one is fit for use with image ami-new"),
        (23.9, False, "2 nodes keep their image until 2026-11-21T12:06:00Z: one tries image ami-new"),
        (24, True, ""),
    ],
)
def test_the_others_follow_when_one_was_fit_for_use_for_so_long(
    fit_hours: float | None, said: str, *, all_drift: bool
) -> None:
    some = there(old("a"), old("b"), with_image("ami-new", machine("new"), fit_hours=fit_hours))
    assert drifted(some) == (["a", "b"] if all_drift else [])
    assert [one.partition(" (annotation")[0] for one in words(some)] == ([said] if said else [])


def test_who_goes_with_the_new_image_proves_nothing() -> None:
    node, claim, _ = with_image("ami-new", machine("new"), fit_hours=48)
    going = (node, replace(claim, meta=replace(claim.meta, deleted_at=NOW)), ())
    assert drifted(there(old("a"), old("b"), going)) == ["a"]


def test_other_drift_does_not_wait_for_the_image() -> None:
    note = pairs({labels.NODEPOOL_HASH: "other", labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION})
    node, claim, _ = old("b")
    found = drifts(there(old("a"), (node, replace(claim, meta=replace(claim.meta, annotations=note)), ())))
    assert [one.reason for one in found] == ["AMIDrift", "NodePoolDrifted"]


def test_each_pool_has_a_canary_of_its_own() -> None:
    pools = (soaking(name="one"), soaking(name="two"))
    some = fleet(
        *(old(f"{own[0]}{number}", own=own) for own in ("one", "two") for number in range(2)),
        pools=pools,  # type: ignore[arg-type]
        node_classes=(CLASS,),
    )
    assert drifted(some) == ["o0", "t0"]


def test_what_is_not_launched_has_not_drifted_and_is_nobodys_canary() -> None:
    new = with_image("", machine("new", conditions=true(*STAGES[:0])), fit_hours=None)
    found = drifts(there(old("a"), old("b"), new))
    assert [one.reason for one in found] == ["AMIDrift", None, ""]
