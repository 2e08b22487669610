"""Laws of `joiner convert`: what comes out is taken by an API server, and converting it again changes nothing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cli.convert.conversion import convert_objects
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.schema_checks import list_schema_problems

NAMES = st.text("abc", min_size=1, max_size=3)
TEXTS = st.one_of(NAMES, st.booleans(), st.integers(0, 9))
NEEDS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values[: 0 if "E" in operator else 2]},
    st.sampled_from(("team", "beta.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-cpu")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(st.one_of(NAMES, st.integers(0, 9)), min_size=1, max_size=2, unique_by=str),
)
SECONDS = st.one_of(st.none(), st.integers(1, 10_000))
KUBELETS = st.one_of(st.none(), st.builds(lambda pods: {"maxPods": pods}, st.integers(1, 3)))
DISRUPTION = st.one_of(
    st.builds(lambda seconds: {"ttlSecondsAfterEmpty": seconds}, SECONDS),
    st.builds(lambda on: {"consolidation": {"enabled": on}}, st.booleans()),
)
PROVISIONERS: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda name, needs, expiry, disruption, kubelet, labels: {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": name},
        "spec": {
            "providerRef": {"name": "shared"},
            "requirements": needs,
            "ttlSecondsUntilExpired": expiry,
            "kubeletConfiguration": kubelet,
            "labels": labels,
            **disruption,
        },
    },
    NAMES,
    st.lists(NEEDS, max_size=3),
    SECONDS,
    DISRUPTION,
    KUBELETS,
    st.dictionaries(NAMES, TEXTS, max_size=2),
)
TEMPLATE = {
    "apiVersion": "karpenter.k8s.aws/v1alpha1",
    "kind": "AWSNodeTemplate",
    "metadata": {"name": "shared"},
    "spec": {"subnetSelector": {"a": "b,c"}, "securityGroupSelector": {"a": "*"}, "instanceProfile": "p"},
}


def convert_values(values: list[Any]) -> list[Any]:
    conversion = convert_objects([SourceObject(value=value, file="old") for value in values])
    assert [note for note in conversion.notes if note.level == "refused"] == []
    return [converted_object.value for converted_object in conversion.objects]


@given(st.lists(PROVISIONERS, max_size=4, unique_by=lambda one: str(one["metadata"]["name"])))
def test_conversion_output_is_valid_and_converting_it_again_changes_nothing(olds: list[Any]) -> None:
    once = convert_values([TEMPLATE, *olds])
    assert [complaint for manifest in once for complaint in list_schema_problems(manifest)] == []
    assert convert_values(once) == once


@given(st.lists(PROVISIONERS, min_size=1, max_size=4, unique_by=lambda one: str(one["metadata"]["name"])))
def test_every_converted_nodepool_references_a_node_class_with_its_own_kubelet(olds: list[Any]) -> None:
    once = convert_values([*olds, TEMPLATE])
    kubelets = {
        manifest["metadata"]["name"]: manifest["spec"].get("kubelet")
        for manifest in once
        if manifest["kind"] == "EC2NodeClass"
    }
    pools = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
        for manifest in once
        if manifest["kind"] == "NodePool"
    }
    for old in olds:
        class_name = pools[old["metadata"]["name"]]["nodeClassRef"]["name"]
        assert kubelets[class_name] == old["spec"]["kubeletConfiguration"]
