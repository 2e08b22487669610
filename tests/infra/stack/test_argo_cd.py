"""The examples for Argo CD: they never delete CRDs or nodes, and leave to Joiner what it writes."""

import re
from typing import Any, Final

import pytest
import yaml

from shared.crds.definitions import load_shipped_crds
from shared.kubernetes import raw_api_client
from tests.controlplane.server_side_apply import (
    JOINER_MANAGER,
    find_undocumented_fields,
    list_fields,
    read_documented_fields,
)
from tests.guide.pages import DOCS, ROOT

EXAMPLES: Final = ROOT / "examples" / "argocd"
APPLICATIONS: Final = list(yaml.safe_load_all((EXAMPLES / "application.yaml").read_text(encoding="utf-8")))
[APPLICATION_SET] = yaml.safe_load_all((EXAMPLES / "applicationset.yaml").read_text(encoding="utf-8"))
SPECS: Final = [*(application["spec"] for application in APPLICATIONS), APPLICATION_SET["spec"]["template"]["spec"]]


@pytest.mark.parametrize("spec", SPECS, ids=["cluster-objects", "nodes", "application-set"])
def test_applications_apply_on_the_server_and_never_prune(spec: dict[str, Any]) -> None:
    policy = spec["syncPolicy"]
    assert "ServerSideApply=true" in policy["syncOptions"]
    assert policy["automated"] == {"prune": False, "selfHeal": True}
    assert ("ignoreDifferences" in spec) <= ("RespectIgnoreDifferences=true" in policy["syncOptions"])


def test_deleted_applications_keep_their_objects() -> None:
    for application in (*APPLICATIONS, APPLICATION_SET["spec"]["template"]):
        assert "finalizers" not in application["metadata"]
    assert APPLICATION_SET["spec"]["syncPolicy"] == {"preserveResourcesOnDeletion": True}


def test_application_set_creates_the_applications_of_one_cluster() -> None:
    [cluster, parts] = APPLICATION_SET["spec"]["generators"][0]["matrix"]["generators"]
    assert cluster["clusters"]["selector"]["matchLabels"] == {"joiner": "true"}
    template = APPLICATION_SET["spec"]["template"]
    created = {
        (
            template["metadata"]["name"].replace("{{.part}}", element["part"]).replace("{{.nameNormalized}}", "prod"),
            template["spec"]["source"]["path"].replace("{{.name}}", "prod").replace("{{.folder}}", element["folder"]),
        )
        for element in parts["list"]["elements"]
    }
    expected = {
        (application["metadata"]["name"], application["spec"]["source"]["path"]) for application in APPLICATIONS
    }
    assert (
        created
        == expected
        == {
            ("joiner-prod", "clusters/prod/joiner/argocd"),
            ("joiner-nodes-prod", "clusters/prod/nodes"),
        }
    )
    assert template["spec"]["ignoreDifferences"] == APPLICATIONS[1]["spec"]["ignoreDifferences"]


def test_differences_by_joiner_are_ignored_for_every_kind_that_it_writes() -> None:
    ignored = {rule["kind"]: rule for rule in APPLICATIONS[1]["spec"]["ignoreDifferences"]}
    crds = {crd["spec"]["names"]["kind"]: crd["spec"]["group"] for crd in load_shipped_crds()}
    assert ignored.keys() == crds.keys() & read_documented_fields().keys()
    for kind, rule in ignored.items():
        assert rule == {"group": crds[kind], "kind": kind, "managedFieldsManagers": [JOINER_MANAGER]}
    assert JOINER_MANAGER == raw_api_client._USER_AGENT  # noqa: SLF001 - the manager that the API server records


def read_written_annotations() -> set[tuple[str, str]]:
    """Return kind and key of each annotation or finalizer that Joiner writes, from the reference of labels."""
    table = (DOCS / "reference" / "labels.md").read_text().partition("## What Joiner writes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    return {(kind.strip(), key) for key, kinds, meaning in rows for kind in kinds.split(",") if meaning}


def test_guide_lists_the_annotations_that_joiner_writes_on_objects_of_git() -> None:
    documented = read_documented_fields()
    written_keys = {(kind, key) for kind, key in read_written_annotations() if kind in documented}
    assert ("NodePool", "karpenter.sh/nodepool-hash") in written_keys
    assert ("StatefulSet", "joiner.dev/scheduled-scale") in written_keys
    for kind, key in written_keys:
        parent = "f:finalizers" if key.endswith("/termination") else "f:annotations"
        entry = {"manager": JOINER_MANAGER, "fieldsV1": {"f:metadata": {parent: {f"f:{key}": {}}}}}
        assert find_undocumented_fields({"kind": kind, "metadata": {"managedFields": [entry]}}, documented) == set()


def test_field_that_the_guide_does_not_list_is_found() -> None:
    fields: dict[str, Any] = {
        "f:metadata": {"f:annotations": {"f:example.com/a": {}}},
        "f:spec": {"f:limits": {".": {}, "f:cpu": {}}},
    }
    manifest = {
        "kind": "NodePool",
        "metadata": {
            "managedFields": [
                {"manager": JOINER_MANAGER, "fieldsV1": fields},
                {"manager": JOINER_MANAGER, "fieldsV1": {"f:status": {"f:nodes": {}}}},
                {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:weight": {}}}},
            ]
        },
    }
    expected = {"metadata.annotations.example.com/a", "spec.limits.cpu"}
    assert find_undocumented_fields(manifest, read_documented_fields()) == expected
    assert list_fields(manifest, "kubectl") == {"spec.weight"}
