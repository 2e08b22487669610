"""The installer's plans: the steps for a given state of the cluster, without a cluster."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from infra.functions.installer import build_manifests
from shared.crds.compatibility import find_incompatibilities, find_missing_fields
from shared.installer.diff import build_merge_patch, is_within
from shared.installer.manifests import (
    DIGEST_ANNOTATION,
    HELM_RELEASE_ANNOTATION,
    MANAGED_BY_LABEL,
    MANIFEST_PATHS,
    Manifest,
    build_manifest_path,
    get_manifest_name,
    mark_as_managed,
    parse_manifests,
)
from shared.installer.plan import (
    CreateManifest,
    DeleteManifest,
    InstalledState,
    PatchManifest,
    plan_deletion,
    plan_install,
    plan_removal,
)
from shared.wire.paths import CRD_KIND
from sim.cluster.api_server.rules.merge_patch import merge_patch as merged
from tests.infra.installations import build_release_manifests, parse_release_manifests

NODE_POOLS_CRD = "nodepools.karpenter.sh"


def make_live_manifest(manifest: Manifest, **metadata: object) -> Manifest:
    """Return *manifest* as an API server returns it."""
    live_metadata = {
        **manifest["metadata"],
        "uid": f"uid-{get_manifest_name(manifest)}",
        "resourceVersion": "7",
        **metadata,
    }
    return {**manifest, "metadata": live_metadata, "status": {"conditions": []}}


def build_live_manifests(**metadata: object) -> dict[str, Manifest]:
    return {
        build_manifest_path(manifest): make_live_manifest(manifest, **metadata)
        for manifest in parse_release_manifests()
    }


def copy_definition(name: str = NODE_POOLS_CRD) -> Any:
    [definition] = [manifest for manifest in parse_release_manifests() if get_manifest_name(manifest) == name]
    return msgspec.json.decode(msgspec.json.encode(definition))


def test_release_manifests_are_the_expected_objects_in_order() -> None:
    names = [(manifest["kind"], get_manifest_name(manifest)) for manifest in parse_release_manifests()]
    assert names == [
        (CRD_KIND, "capacitybuffers.autoscaling.x-k8s.io"),
        (CRD_KIND, "ec2nodeclasses.karpenter.k8s.aws"),
        (CRD_KIND, "nodeclaims.karpenter.sh"),
        (CRD_KIND, "nodeoverlays.karpenter.sh"),
        (CRD_KIND, "nodepools.karpenter.sh"),
        ("PriorityLevelConfiguration", "joiner-functions"),
        ("FlowSchema", "joiner-functions"),
        ("ClusterRole", "joiner-functions"),
        ("ClusterRoleBinding", "joiner-functions"),
    ]


def test_manifest_of_unknown_kind_is_rejected() -> None:
    with pytest.raises(KeyError, match="Secret"):
        parse_manifests(b'[{"kind": "Secret", "metadata": {"name": "a"}}]')


def test_new_cluster_gets_all_manifests_in_order_with_managed_by_label() -> None:
    plan = plan_install(parse_release_manifests(), InstalledState(live={}))
    assert [step.path for step in plan.steps] == [
        MANIFEST_PATHS[manifest["kind"]] for manifest in parse_release_manifests()
    ]
    for step in plan.steps:
        assert isinstance(step, CreateManifest)
        assert step.body["metadata"]["labels"][MANAGED_BY_LABEL] == "joiner"
        assert len(step.body["metadata"]["annotations"][DIGEST_ANNOTATION]) == 16
    assert len(plan.messages) == len(plan.steps)


def test_unchanged_installed_manifests_need_no_steps() -> None:
    assert plan_install(parse_release_manifests(), InstalledState(live=build_live_manifests())) == plan_install(
        (), InstalledState(live={})
    )


def test_upgrade_patches_only_changed_manifests() -> None:
    def drop_first_rule(documents: list[dict[str, Any]]) -> None:
        [role] = [document for document in documents if document["kind"] == "ClusterRole"]
        del role["rules"][0]

    plan = plan_install(
        parse_manifests(build_release_manifests(drop_first_rule)), InstalledState(live=build_live_manifests())
    )
    [step] = plan.steps
    assert isinstance(step, PatchManifest)
    assert step.path == f"{MANIFEST_PATHS['ClusterRole']}/joiner-functions"
    assert plan.messages == ("ClusterRole joiner-functions updated",)


@pytest.mark.parametrize("kind", MANIFEST_PATHS)
def test_manual_change_to_a_managed_manifest_is_reverted(kind: str) -> None:
    [manifest, *_] = [candidate for candidate in parse_release_manifests() if candidate["kind"] == kind]
    key = next(key for key in ("spec", "rules", "subjects") if key in manifest)
    changed = {
        **build_live_manifests(),
        build_manifest_path(manifest): {
            **make_live_manifest(manifest),
            key: {} if isinstance(manifest[key], dict) else [],
        },
    }
    if kind == CRD_KIND:
        changed[build_manifest_path(manifest)] = {
            **make_live_manifest(manifest),
            "spec": {**manifest["spec"], "scope": "Other"},
        }
    [step] = plan_install(parse_release_manifests(), InstalledState(live=changed)).steps
    assert isinstance(step, PatchManifest)
    assert merged(dict(changed[build_manifest_path(manifest)]), dict(step.body))[key] == manifest[key]


def test_cluster_role_binding_with_another_role_is_recreated() -> None:
    [binding] = [manifest for manifest in parse_release_manifests() if manifest["kind"] == "ClusterRoleBinding"]
    changed_binding = {**make_live_manifest(binding), "roleRef": {**binding["roleRef"], "name": "cluster-admin"}}
    plan = plan_install(
        parse_release_manifests(),
        InstalledState(live={**build_live_manifests(), build_manifest_path(binding): changed_binding}),
    )
    assert [type(step) for step in plan.steps] == [DeleteManifest, CreateManifest]


def test_manually_applied_cluster_role_is_adopted() -> None:
    [role] = [manifest for manifest in parse_release_manifests() if manifest["kind"] == "ClusterRole"]
    bare = {
        **make_live_manifest(role),
        "metadata": {"name": get_manifest_name(role), "uid": "1", "labels": {"team": "a"}},
    }
    [step] = plan_install(
        parse_release_manifests(), InstalledState(live={**build_live_manifests(), build_manifest_path(role): bare})
    ).steps
    assert isinstance(step, PatchManifest)
    labels = merged(bare, dict(step.body))["metadata"]["labels"]
    assert labels == {"team": "a", MANAGED_BY_LABEL: "joiner"}


FOREIGN_LABELS = [{}, {MANAGED_BY_LABEL: "Helm"}, {MANAGED_BY_LABEL: "joiner"}]


@pytest.mark.parametrize("labels", FOREIGN_LABELS)
def test_foreign_crd_is_never_changed(labels: dict[str, str]) -> None:
    release = {HELM_RELEASE_ANNOTATION: "karpenter-crd"} if labels.get(MANAGED_BY_LABEL) == "joiner" else {}
    crd = make_live_manifest(copy_definition(), labels=labels, annotations=release)
    plan = plan_install(
        parse_release_manifests(), InstalledState(live={**build_live_manifests(), build_manifest_path(crd): crd})
    )
    assert plan.steps == ()
    assert plan.messages == (f"{NODE_POOLS_CRD} was not created by Joiner and was not changed",)
    removal_plan = plan_removal(
        parse_release_manifests(), InstalledState(live={build_manifest_path(crd): crd}), purge=True
    )
    assert removal_plan.steps == ()
    assert removal_plan.messages == (f"{CRD_KIND} {NODE_POOLS_CRD} was not created by Joiner and is kept",)


def _stop_serving(spec: dict[str, Any]) -> None:
    spec["versions"][0]["served"] = False


def _downgrade_version(spec: dict[str, Any]) -> None:
    spec["versions"][0]["name"] = "v1beta1"


def _drop_status(spec: dict[str, Any]) -> None:
    spec["versions"][0]["subresources"] = {}


def _make_namespaced(spec: dict[str, Any]) -> None:
    spec["scope"] = "Namespaced"


def _rename_kind(spec: dict[str, Any]) -> None:
    spec["names"]["kind"] = "Pool"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_stop_serving, "it does not serve v1: upgrade it"),
        (_downgrade_version, "it does not serve v1: upgrade it"),
        (_drop_status, "its v1 has no status subresource: upgrade it"),
        (_make_namespaced, "its scope is Namespaced: must be Cluster"),
        (_rename_kind, "its kind is Pool: must be NodePool"),
    ],
)
def test_incompatible_foreign_crd_stops_the_installation(
    change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    crd = make_live_manifest(copy_definition(), labels={})
    change(crd["spec"])
    plan = plan_install(parse_release_manifests(), InstalledState(live={build_manifest_path(crd): crd}))
    assert plan.steps == ()
    assert plan.refusals == (f"{CRD_KIND} {NODE_POOLS_CRD} was not created by Joiner, and {problem}",)
    assert find_incompatibilities(copy_definition(), crd) == (problem,)


def test_incompatible_optional_feature_crd_does_not_stop_the_installation() -> None:
    crd = make_live_manifest(copy_definition("capacitybuffers.autoscaling.x-k8s.io"), labels={})
    crd["spec"]["versions"][0]["name"] = "v1alpha1"
    plan = plan_install(
        parse_release_manifests(), InstalledState(live={**build_live_manifests(), build_manifest_path(crd): crd})
    )
    assert (plan.steps, plan.refusals) == ((), ())
    [message] = plan.messages
    assert message.endswith(
        "capacitybuffers.autoscaling.x-k8s.io was not created by Joiner, and it does not serve v1beta1: upgrade it"
    )


def test_foreign_crd_with_missing_fields_is_used_and_reported() -> None:
    crd = make_live_manifest(copy_definition(), labels={})
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["replicas"]
    del spec["properties"]["disruption"]["properties"]["budgets"]["items"]["properties"]["reasons"]
    missing = ("spec.disruption.budgets[].reasons", "spec.replicas")
    assert find_missing_fields(copy_definition(), crd) == missing
    plan = plan_install(
        parse_release_manifests(), InstalledState(live={**build_live_manifests(), build_manifest_path(crd): crd})
    )
    assert (plan.steps, plan.refusals) == ((), ())
    assert plan.messages == (
        f"{NODE_POOLS_CRD} was not created by Joiner and was not changed; it lacks the fields {', '.join(missing)}",
    )


def test_unserved_crd_version_is_not_compared() -> None:
    crd = make_live_manifest(copy_definition(), labels={})
    _stop_serving(crd["spec"])
    assert find_missing_fields(copy_definition(), crd) == ()


def test_crd_that_preserves_unknown_fields_has_no_missing_fields() -> None:
    crd = make_live_manifest(copy_definition(), labels={})
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert find_missing_fields(copy_definition(), crd) == ()


def test_removal_deletes_all_managed_manifests_in_reverse_order() -> None:
    plan = plan_removal(parse_release_manifests(), InstalledState(live=build_live_manifests()), purge=False)
    assert [step.path for step in plan.steps] == [
        build_manifest_path(manifest) for manifest in reversed(parse_release_manifests())
    ]
    assert all(isinstance(step, DeleteManifest) and step.uid for step in plan.steps)


def test_crd_with_objects_is_kept_unless_purged() -> None:
    standing = InstalledState(live=build_live_manifests(), object_counts={NODE_POOLS_CRD: 2})
    removal_plan = plan_removal(parse_release_manifests(), standing, purge=False)
    assert len(removal_plan.steps) == len(parse_release_manifests()) - 1
    assert (
        f"{CRD_KIND} {NODE_POOLS_CRD} kept: it has 2 objects (/apis/karpenter.sh/v1/nodepools)" in removal_plan.messages
    )
    assert len(plan_removal(parse_release_manifests(), standing, purge=True).steps) == len(parse_release_manifests())


def test_removal_skips_missing_and_terminating_manifests() -> None:
    assert plan_removal(parse_release_manifests(), InstalledState(live={}), purge=True).steps == ()
    going = build_live_manifests(deletionTimestamp="2026-11-21T08:00:00Z")
    assert plan_removal(parse_release_manifests(), InstalledState(live=going), purge=True).steps == ()


@pytest.mark.parametrize(
    ("finalizers", "remaining"),
    [
        (["karpenter.sh/termination"], None),
        (["karpenter.k8s.aws/termination", "a/b"], ["a/b"]),
    ],
)
def test_joiner_finalizers_are_removed_first_and_foreign_finalizers_kept(
    finalizers: list[str], remaining: list[str] | None
) -> None:
    finalized_object = {"metadata": {"name": "a", "finalizers": finalizers, "resourceVersion": "9"}}
    plan = plan_removal(
        parse_release_manifests(),
        InstalledState(live=build_live_manifests(), finalized_objects=(("/a", finalized_object),)),
        purge=False,
    )
    assert plan.steps[0] == PatchManifest(
        path="/a", body={"metadata": {"finalizers": remaining, "resourceVersion": "9"}}
    )


@pytest.mark.parametrize("finalizers", [None, [], ["a/b"]])
def test_object_without_joiner_finalizers_is_not_patched(finalizers: list[str] | None) -> None:
    finalized_object = {"metadata": {"name": "a", "finalizers": finalizers, "resourceVersion": "9"}}
    assert (
        plan_removal((), InstalledState(live={}, finalized_objects=(("/a", finalized_object),)), purge=True).steps == ()
    )


def test_instance_that_may_still_run_is_reported() -> None:
    metadata = {"name": "a", "finalizers": ["karpenter.sh/termination"], "resourceVersion": "9"}
    live_claim = {"metadata": metadata, "status": {"providerID": "aws:///us-east-1a/i-1"}}
    deleted_claim = {**live_claim, "metadata": {**metadata, "deletionTimestamp": "2026-11-21T08:00:00Z"}}
    assert (
        plan_removal((), InstalledState(live={}, finalized_objects=(("/a", live_claim),)), purge=False).messages == ()
    )
    messages = plan_removal(
        (), InstalledState(live={}, finalized_objects=(("/a", deleted_claim),)), purge=False
    ).messages
    assert messages == ("NodeClaim a was being deleted, its instance may still run: aws:///us-east-1a/i-1",)


def test_emptying_deletes_nodepools_first_and_skips_terminating_objects() -> None:
    def make_object(name: str, **metadata: str) -> tuple[str, Manifest]:
        return f"/{name}", {"metadata": {"name": name, "uid": name, **metadata}}

    claims = (make_object("c", deletionTimestamp="2026-11-21T08:00:00Z"), make_object("d"))
    assert plan_deletion((make_object("a"), make_object("b")), claims).steps == tuple(
        DeleteManifest(path=f"/{name}", uid=name) for name in "abd"
    )


@pytest.mark.parametrize(
    ("wish", "actual", "answer"),
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
def test_desired_manifest_is_compared_as_subset_of_live_object(wish: object, actual: object, answer: bool) -> None:  # noqa: FBT001
    assert is_within(wish, actual) is answer


def test_merge_patch_removes_unwanted_fields_but_keeps_labels() -> None:
    before = {"metadata": {"labels": {"a": "b"}}, "spec": {"old": 1, "kept": {"x": 1, "y": 2}}}
    after = mark_as_managed({"kind": "FlowSchema", "metadata": {"name": "a"}, "spec": {"kept": {"x": 1}, "new": [1]}})
    patched = merged(before, build_merge_patch(before, after))
    assert patched["spec"] == after["spec"]
    assert patched["metadata"]["labels"] == {"a": "b", MANAGED_BY_LABEL: "joiner"}


def test_manifest_digest_depends_only_on_content() -> None:
    [first_manifest, second_manifest] = parse_manifests(build_manifests())[:2]
    assert mark_as_managed({"metadata": {"name": "a"}, "b": 1, "c": 2}) == mark_as_managed(
        {"c": 2, "b": 1, "metadata": {"name": "a"}}
    )
    assert first_manifest["metadata"]["annotations"] != second_manifest["metadata"]["annotations"]
