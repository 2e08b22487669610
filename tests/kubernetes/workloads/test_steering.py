"""`joiner pause` and `resume` on a real API server: what they write is kept, is read again, and is taken back."""

import json
from pathlib import Path
from typing import Final

import pytest

from cli.main import main
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.manifests import make_node_class, make_node_pool

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
SYSTEM: Final = "/api/v1/namespaces/kube-system"


def read_joiner_annotations(cluster: ControlPlane, path: str) -> dict[str, str]:
    """Read the `joiner.dev/` annotations of the object at *path*."""
    all_annotations = json.loads(cluster.get_client().read(path))["metadata"].get("annotations", {})
    return {key: value for key, value in all_annotations.items() if key.startswith("joiner.dev/")}


def test_pause_and_resume_write_and_remove_their_annotations(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kube = cluster.get_client()
    kube.create(CLASSES, json.dumps(make_node_class()).encode())
    kube.create(POOLS, json.dumps(make_node_pool("default")).encode())
    config = tmp_path / "config"
    config.write_text(cluster.build_kubeconfig(), encoding="utf-8")
    flags = ["--kubeconfig", str(config)]
    try:
        assert main(["pause", "--for", "2h", "--because", "freeze", *flags]) == 0
        assert "freeze" in read_joiner_annotations(cluster, SYSTEM)["joiner.dev/disruption-paused"]
        assert main(["pause", "--nodepool", "default", "--launches", "--because", "quota", *flags]) == 0
        assert "quota" in read_joiner_annotations(cluster, f"{POOLS}/default")["joiner.dev/launches-paused"]
        assert "freeze" in capsys.readouterr().out
        assert main(["resume", *flags]) == 0
        assert main(["resume", "--nodepool", "default", *flags]) == 0
        assert read_joiner_annotations(cluster, SYSTEM) == {}
        assert read_joiner_annotations(cluster, f"{POOLS}/default").keys() == {"joiner.dev/disruption-resumed"}
    finally:
        kube.delete(f"{POOLS}/default")
        kube.delete(f"{CLASSES}/default")
