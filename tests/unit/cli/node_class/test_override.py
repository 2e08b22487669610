"""`joiner nodeclass approve` and `joiner nodeclass reject`, on a cluster over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from shared.model.core.labels import CANARY_APPROVED, CANARY_REJECTED
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract.kube_front import create
from tests.scenario.worlds import make_node_class
from tests.support.cli.live_cases import serve_cluster

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
PATH = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
STATUS = {"amis": [{"id": "ami-0123", "name": "one", "requirements": []}]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[InMemoryKube, str]]:
    with serve_cluster(tmp_path) as (kube, config):
        for name in ("default", "second"):
            create(kube, PATH, make_node_class(name))
        kube.patch(f"{PATH}/default/status", json.dumps({"status": STATUS}).encode())
        yield kube, config


def read_annotations(kube: InMemoryKube, name: str = "default") -> dict[str, str]:
    annotations: dict[str, str] = json.loads(kube.read(f"{PATH}/{name}"))["metadata"].get("annotations", {})
    return annotations


def test_decision_is_stored_in_the_classes_that_know_the_image(cluster: tuple[InMemoryKube, str], capsys: Out) -> None:
    kube, config = cluster
    assert main(["nodeclass", "reject", "ami-0123", "--kubeconfig", config]) == 0
    assert read_annotations(kube) == {CANARY_REJECTED: "ami-0123"}
    assert read_annotations(kube, "second") == {}
    assert capsys.readouterr().out == "EC2NodeClass default: approved: none; rejected: ami-0123\n"


def test_last_decision_counts_and_others_stay(cluster: tuple[InMemoryKube, str], capsys: Out) -> None:
    kube, config = cluster
    for action, image in (("approve", "ami-9"), ("reject", "ami-0123"), ("approve", "ami-0123")):
        assert main(["nodeclass", action, image, "--nodeclass", "default", "--kubeconfig", config]) == 0
    assert read_annotations(kube) == {CANARY_APPROVED: "ami-0123,ami-9"}
    capsys.readouterr()
    main(["nodeclass", "reject", "ami-9", "--nodeclass", "default", "--kubeconfig", config, "-o", "json"])
    [document] = json.loads(capsys.readouterr().out)
    assert (document["approved"], document["rejected"], document["amis"]) == (["ami-0123"], ["ami-9"], ["ami-0123"])


def test_unknown_image_is_an_error_with_the_images_that_exist(cluster: tuple[InMemoryKube, str], capsys: Out) -> None:
    _, config = cluster
    assert main(["nodeclass", "approve", "ami-77", "--kubeconfig", config]) == 1
    error = capsys.readouterr().err
    assert "no EC2NodeClass has ami-77; existing images and hashes: " in error
    assert "ami-0123" in error
    assert main(["nodeclass", "approve", "ami-77", "--nodeclass", "none", "--kubeconfig", config]) == 1
    assert "EC2NodeClass none does not exist; existing EC2NodeClasses: default" in capsys.readouterr().err


def test_text_that_is_no_image_is_wrong_usage(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["nodeclass", "approve", "latest"])
    assert "'latest' is neither an image id nor the hash" in capsys.readouterr().err
