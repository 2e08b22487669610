"""`joiner lint`: annotations of Cluster Autoscaler, which a setting of the deployment honors or not."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

Object = dict[str, Any]
SETTING = "JOINER_HONOR_CLUSTER_AUTOSCALER_ANNOTATIONS"
FLAG = "--honor-cluster-autoscaler-annotations"
PREFIX = "cluster-autoscaler.kubernetes.io/"
SAFE_TO_EVICT = {PREFIX + "safe-to-evict": "false"}
SCALE_DOWN_DISABLED = {PREFIX + "scale-down-disabled": "true"}


def make_object(kind: str, annotations: Object, template: Object | None = None) -> Object:
    spec = {"template": {"metadata": {"annotations": template}, "spec": {}}} if template else {}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "a", "annotations": annotations},
        "spec": spec,
    }


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that lints an object: the messages about annotations."""

    def run(value: Object, *flags: str) -> list[str]:
        file = tmp_path / "manifest.yaml"
        file.write_text(yaml.safe_dump(value))
        main(["lint", "-f", str(file), "-o", "json", *flags])
        findings = json.loads(capsys.readouterr().out)
        return [finding["message"] for finding in findings if PREFIX in finding["field"]]

    return run


@pytest.mark.parametrize(
    "value",
    [
        make_object("Pod", SAFE_TO_EVICT),
        make_object("Deployment", {}, SAFE_TO_EVICT),
        make_object("Node", SCALE_DOWN_DISABLED),
        make_object("NodePool", {}, SCALE_DOWN_DISABLED),
    ],
    ids=["pod", "deployment", "node", "node-pool"],
)
def test_protecting_annotation_is_reported_unless_the_setting_honors_it(
    lint: Any, value: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    [message] = lint(value)
    assert message == (
        "has no effect on Joiner unless its setting honor-cluster-autoscaler-annotations is on: "
        'write karpenter.sh/do-not-disrupt: "true", or set it'
    )
    [message] = lint(value, FLAG, "off")
    assert message == (
        'has no effect on Joiner: write karpenter.sh/do-not-disrupt: "true", '
        "or set honor-cluster-autoscaler-annotations: on"
    )
    assert lint(value, FLAG, "on") == []
    monkeypatch.setenv(SETTING, "on")
    assert lint(value) == []
    assert len(lint(value, FLAG, "off")) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            make_object("Deployment", SAFE_TO_EVICT),
            'has no effect here: write karpenter.sh/do-not-disrupt: "true" in spec.template.metadata.annotations',
        ),
        (make_object("DaemonSet", {}, SAFE_TO_EVICT), "has no effect on pods of a DaemonSet"),
        (make_object("Node", SAFE_TO_EVICT), "has no effect on a Node, only on pods"),
        (make_object("Deployment", {}, SCALE_DOWN_DISABLED), "has no effect on a Deployment, only on nodes"),
        (make_object("Pod", {PREFIX + "safe-to-evict": "true"}), "has no effect on Joiner: Joiner evicts pods"),
    ],
)
def test_annotation_without_effect_is_reported_even_if_the_setting_is_on(
    lint: Any, value: Object, message: str
) -> None:
    [reported] = lint(value, FLAG, "on")
    assert message in reported


def test_honored_annotation_that_is_not_a_string_is_an_error(lint: Any) -> None:
    assert lint(make_object("Pod", {PREFIX + "safe-to-evict": False}), FLAG, "on") == [
        'must be a string: write it in quotes: "false"'
    ]


def test_annotation_that_do_not_disrupt_replaces_is_not_reported(lint: Any) -> None:
    assert lint(make_object("Pod", {**SAFE_TO_EVICT, "karpenter.sh/do-not-disrupt": "true"})) == []
