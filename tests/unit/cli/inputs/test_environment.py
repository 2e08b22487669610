"""Tests of settings in environment variables."""

from datetime import UTC, datetime

import pytest

from cli.inputs.environment import keep_honored_annotations
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize("setting", ["", "off", "on"])
def test_commands_read_annotations_of_cluster_autoscaler_only_with_the_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("JOINER_HONOR_CLUSTER_AUTOSCALER_ANNOTATIONS", setting)
    pod_annotations = ((SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "false"))
    cluster = ClusterSnapshot(
        taken_at=NOW,
        pods=(Pod(meta=ObjectMeta(name="cart", annotations=pod_annotations), spec=PodSpec()),),
        nodes=(Node(meta=ObjectMeta(name="a", annotations=((SCALE_DOWN_DISABLED, "true"),))),),
    )
    honored_cluster = keep_honored_annotations(cluster)
    if setting == "on":
        assert honored_cluster == cluster
    else:
        assert honored_cluster.pods[0].meta.annotations == ((DO_NOT_DISRUPT, "false"),)
        assert honored_cluster.nodes[0].meta.annotations == ()
