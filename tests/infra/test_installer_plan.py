"""The installer's plans: what is done given what exists, without a cluster."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from functions.installer.compare import is_within, merge_patch
from functions.installer.manifests import (
    COLLECTIONS,
    DEFINITION,
    DIGEST,
    HELM,
    MANAGED_BY,
    Manifest,
    marked,
    name_of,
    parse_manifests,
    path_of,
)
from functions.installer.plan import Create, Delete, Patch, Standing, empty, install, remove
from infra.installer import manifests
from shared.kube.compatibility import lacking, unusable
from sim.cluster.api_merge import merge_patch as merged
from tests.infra.installations import shipped, wanted

POOLS = "nodepools.karpenter.sh"


def live(manifest: Manifest, **metadata: object) -> Manifest:
    """Answer *manifest* as a server has it."""
    own = {**manifest["metadata"], "uid": f"uid-{name_of(manifest)}", "resourceVersion": "7", **metadata}
    return {**manifest, "metadata": own, "status": {"conditions": []}}


def all_live(**metadata: object) -> dict[str, Manifest]:
    return {path_of(one): live(one, **metadata) for one in wanted()}


def definition(name: str = POOLS) -> Any:
    [found] = [one for one in wanted() if name_of(one) == name]
    return msgspec.json.decode(msgspec.json.encode(found))


def test_what_is_shipped_is_what_the_repository_has() -> None:
    names = [(one["kind"], name_of(one)) for one in wanted()]
    assert names == [
        (DEFINITION, "capacitybuffers.autoscaling.x-k8s.io"),
        (DEFINITION, "ec2nodeclasses.karpenter.k8s.aws"),
        (DEFINITION, "nodeclaims.karpenter.sh"),
        (DEFINITION, "nodeoverlays.karpenter.sh"),
        (DEFINITION, "nodepools.karpenter.sh"),
        ("PriorityLevelConfiguration", "joiner-functions"),
        ("FlowSchema", "joiner-functions"),
        ("ClusterRole", "joiner-functions"),
        ("ClusterRoleBinding", "joiner-functions"),
    ]


def test_only_known_kinds_are_installed() -> None:
    with pytest.raises(KeyError, match="Secret"):
        parse_manifests(b'[{"kind": "Secret", "metadata": {"name": "a"}}]')


def test_a_new_cluster_gets_everything_in_order_and_marked() -> None:
    plan = install(wanted(), Standing(live={}))
    assert [step.path for step in plan.steps] == [COLLECTIONS[one["kind"]] for one in wanted()]
    for step in plan.steps:
        assert isinstance(step, Create)
        assert step.body["metadata"]["labels"][MANAGED_BY] == "joiner"
        assert len(step.body["metadata"]["annotations"][DIGEST]) == 16
    assert len(plan.told) == len(plan.steps)


def test_what_is_installed_is_not_touched_again() -> None:
    assert install(wanted(), Standing(live=all_live())) == install((), Standing(live={}))


def test_another_release_patches_what_it_changes_and_nothing_else() -> None:
    def change(found: list[dict[str, Any]]) -> None:
        [role] = [one for one in found if one["kind"] == "ClusterRole"]
        del role["rules"][0]

    plan = install(parse_manifests(shipped(change)), Standing(live=all_live()))
    [step] = plan.steps
    assert isinstance(step, Patch)
    assert step.path == f"{COLLECTIONS['ClusterRole']}/joiner-functions"
    assert plan.told == ("ClusterRole joiner-functions brought up to date",)


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_what_somebody_changed_is_put_right(kind: str) -> None:
    [one, *_] = [each for each in wanted() if each["kind"] == kind]
    key = next(key for key in ("spec", "rules", "subjects") if key in one)
    changed = {**all_live(), path_of(one): {**live(one), key: {} if isinstance(one[key], dict) else []}}
    if kind == DEFINITION:
        changed[path_of(one)] = {**live(one), "spec": {**one["spec"], "scope": "Other"}}
    [step] = install(wanted(), Standing(live=changed)).steps
    assert isinstance(step, Patch)
    assert merged(dict(changed[path_of(one)]), dict(step.body))[key] == one[key]


def test_a_binding_to_another_role_is_made_anew() -> None:
    [binding] = [one for one in wanted() if one["kind"] == "ClusterRoleBinding"]
    other = {**live(binding), "roleRef": {**binding["roleRef"], "name": "cluster-admin"}}
    plan = install(wanted(), Standing(live={**all_live(), path_of(binding): other}))
    assert [type(step) for step in plan.steps] == [Delete, Create]


def test_rights_that_were_applied_by_hand_become_ours() -> None:
    [role] = [one for one in wanted() if one["kind"] == "ClusterRole"]
    bare = {**live(role), "metadata": {"name": name_of(role), "uid": "1", "labels": {"team": "a"}}}
    [step] = install(wanted(), Standing(live={**all_live(), path_of(role): bare})).steps
    assert isinstance(step, Patch)
    labels = merged(bare, dict(step.body))["metadata"]["labels"]
    assert labels == {"team": "a", MANAGED_BY: "joiner"}


FOREIGN = [{}, {MANAGED_BY: "Helm"}, {MANAGED_BY: "joiner"}]


@pytest.mark.parametrize("labels", FOREIGN)
def test_somebody_elses_definition_is_never_written(labels: dict[str, str]) -> None:
    release = {HELM: "karpenter-crd"} if labels.get(MANAGED_BY) == "joiner" else {}
    theirs = live(definition(), labels=labels, annotations=release)
    plan = install(wanted(), Standing(live={**all_live(), path_of(theirs): theirs}))
    assert plan.steps == ()
    assert plan.told == (f"{POOLS} is somebody else's and left alone",)
    gone = remove(wanted(), Standing(live={path_of(theirs): theirs}), purge=True)
    assert gone.steps == ()
    assert gone.told == (f"{DEFINITION} {POOLS} is somebody else's and stays",)


def _unserved(spec: dict[str, Any]) -> None:
    spec["versions"][0]["served"] = False


def _older(spec: dict[str, Any]) -> None:
    spec["versions"][0]["name"] = "v1beta1"


def _without_status(spec: dict[str, Any]) -> None:
    spec["versions"][0]["subresources"] = {}


def _namespaced(spec: dict[str, Any]) -> None:
    spec["scope"] = "Namespaced"


def _renamed(spec: dict[str, Any]) -> None:
    spec["names"]["kind"] = "Pool"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_unserved, "it does not serve v1: upgrade it"),
        (_older, "it does not serve v1: upgrade it"),
        (_without_status, "its v1 has no status of its own: upgrade it"),
        (_namespaced, "its scope is Namespaced: want Cluster"),
        (_renamed, "its kind is Pool: want NodePool"),
    ],
)
def test_a_definition_that_cannot_be_used_stops_everything(change: Callable[[dict[str, Any]], None], why: str) -> None:
    theirs = live(definition(), labels={})
    change(theirs["spec"])
    plan = install(wanted(), Standing(live={path_of(theirs): theirs}))
    assert plan.steps == ()
    assert plan.refused == (f"{DEFINITION} {POOLS} is somebody else's, and {why}",)
    assert unusable(definition(), theirs) == (why,)


def test_a_definition_of_a_feature_stops_nothing() -> None:
    theirs = live(definition("capacitybuffers.autoscaling.x-k8s.io"), labels={})
    theirs["spec"]["versions"][0]["name"] = "v1alpha1"
    plan = install(wanted(), Standing(live={**all_live(), path_of(theirs): theirs}))
    assert (plan.steps, plan.refused) == ((), ())
    [told] = plan.told
    assert told.endswith(
        "capacitybuffers.autoscaling.x-k8s.io is somebody else's, and it does not serve v1beta1: upgrade it"
    )


def test_a_definition_without_some_fields_is_used_and_told_of() -> None:
    theirs = live(definition(), labels={})
    spec = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["replicas"]
    del spec["properties"]["disruption"]["properties"]["budgets"]["items"]["properties"]["reasons"]
    missing = ("spec.disruption.budgets[].reasons", "spec.replicas")
    assert lacking(definition(), theirs) == missing
    plan = install(wanted(), Standing(live={**all_live(), path_of(theirs): theirs}))
    assert (plan.steps, plan.refused) == ((), ())
    assert plan.told == (f"{POOLS} is somebody else's and left alone; it does not know {', '.join(missing)}",)


def test_a_version_that_is_not_served_is_not_compared() -> None:
    theirs = live(definition(), labels={})
    _unserved(theirs["spec"])
    assert lacking(definition(), theirs) == ()


def test_a_definition_that_keeps_what_it_does_not_know_lacks_nothing() -> None:
    theirs = live(definition(), labels={})
    schema = theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert lacking(definition(), theirs) == ()


def test_removing_goes_backwards_and_takes_everything_that_is_ours() -> None:
    plan = remove(wanted(), Standing(live=all_live()), purge=False)
    assert [step.path for step in plan.steps] == [path_of(one) for one in reversed(wanted())]
    assert all(isinstance(step, Delete) and step.uid for step in plan.steps)


def test_a_definition_with_objects_stays_unless_asked() -> None:
    standing = Standing(live=all_live(), counts={POOLS: 2})
    kept = remove(wanted(), standing, purge=False)
    assert len(kept.steps) == len(wanted()) - 1
    assert f"{DEFINITION} {POOLS} stays: it has 2 objects (/apis/karpenter.sh/v1/nodepools)" in kept.told
    assert len(remove(wanted(), standing, purge=True).steps) == len(wanted())


def test_what_is_gone_or_going_is_not_removed_again() -> None:
    assert remove(wanted(), Standing(live={}), purge=True).steps == ()
    going = all_live(deletionTimestamp="2026-11-21T08:00:00Z")
    assert remove(wanted(), Standing(live=going), purge=True).steps == ()


@pytest.mark.parametrize(
    ("finalizers", "left"),
    [
        (["karpenter.sh/termination"], None),
        (["karpenter.k8s.aws/termination", "a/b"], ["a/b"]),
    ],
)
def test_our_finalizers_come_off_first_and_others_stay(finalizers: list[str], left: list[str] | None) -> None:
    held = {"metadata": {"name": "a", "finalizers": finalizers, "resourceVersion": "9"}}
    plan = remove(wanted(), Standing(live=all_live(), held=(("/a", held),)), purge=False)
    assert plan.steps[0] == Patch(path="/a", body={"metadata": {"finalizers": left, "resourceVersion": "9"}})


@pytest.mark.parametrize("finalizers", [None, [], ["a/b"]])
def test_what_we_do_not_hold_is_not_touched(finalizers: list[str] | None) -> None:
    held = {"metadata": {"name": "a", "finalizers": finalizers, "resourceVersion": "9"}}
    assert remove((), Standing(live={}, held=(("/a", held),)), purge=True).steps == ()


def test_what_may_go_on_running_is_told() -> None:
    metadata = {"name": "a", "finalizers": ["karpenter.sh/termination"], "resourceVersion": "9"}
    some = {"metadata": metadata, "status": {"providerID": "aws:///us-east-1a/i-1"}}
    gone = {**some, "metadata": {**metadata, "deletionTimestamp": "2026-11-21T08:00:00Z"}}
    assert remove((), Standing(live={}, held=(("/a", some),)), purge=False).told == ()
    told = remove((), Standing(live={}, held=(("/a", gone),)), purge=False).told
    assert told == ("NodeClaim a was going, its instance may still run: aws:///us-east-1a/i-1",)


def test_emptying_begins_with_the_pools_and_leaves_alone_what_is_going() -> None:
    def one(name: str, **metadata: str) -> tuple[str, Manifest]:
        return f"/{name}", {"metadata": {"name": name, "uid": name, **metadata}}

    claims = (one("c", deletionTimestamp="2026-11-21T08:00:00Z"), one("d"))
    assert empty((one("a"), one("b")), claims).steps == tuple(Delete(path=f"/{name}", uid=name) for name in "abd")


@pytest.mark.parametrize(
    ("wish", "there", "answer"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {}, False),
        ({"a": {"b": 1}}, {"a": 1}, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [], False),
        ([1], 1, False),
        (1, 1, True),
        ("a", "b", False),
    ],
)
def test_what_is_wanted_is_within_what_is_there(wish: object, there: object, answer: bool) -> None:  # noqa: FBT001
    assert is_within(wish, there) is answer


def test_a_patch_takes_out_what_is_not_wanted_but_no_labels() -> None:
    before = {"metadata": {"labels": {"a": "b"}}, "spec": {"old": 1, "kept": {"x": 1, "y": 2}}}
    after = marked({"kind": "FlowSchema", "metadata": {"name": "a"}, "spec": {"kept": {"x": 1}, "new": [1]}})
    found = merged(before, merge_patch(before, after))
    assert found["spec"] == after["spec"]
    assert found["metadata"]["labels"] == {"a": "b", MANAGED_BY: "joiner"}


def test_the_digest_is_of_the_content_alone() -> None:
    [one, other] = parse_manifests(manifests())[:2]
    assert marked({"metadata": {"name": "a"}, "b": 1, "c": 2}) == marked({"c": 2, "b": 1, "metadata": {"name": "a"}})
    assert one["metadata"]["annotations"] != other["metadata"]["annotations"]
