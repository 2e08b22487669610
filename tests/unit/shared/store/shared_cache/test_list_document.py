"""Tests of the stored document of a list."""

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.core.metadata import Problem
from shared.model.kubernetes.node import Node
from shared.store.shared_cache.list_document import STORED_FIELDS, decode_list, encode_list
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.snapshot import SnapshotRequest, take_snapshot
from tests.benchmarks import population
from tests.support.snapshot_world import Lists, make_object, make_world

PROBLEM = Problem(kind="Pod", name="shop/a", message="spec: wrong", uid="u", node="n")
CLUSTER = take_snapshot(
    make_world(
        Lists(
            {
                "Pod": [
                    population.make_pod(number, 3) | {"status": population.make_pod_status(number)}
                    for number in range(3)
                ],
                "Node": [population.make_node(n) | {"status": population.make_node_status(n)} for n in range(3)],
                "NodeClaim": [
                    population.make_node_claim(n) | {"status": population.make_node_claim_status(n)} for n in range(3)
                ],
                "CSINode": [population.make_csi_node(number) for number in range(3)],
                "PersistentVolume": [
                    make_object("v", spec={"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}})
                ],
                "PersistentVolumeClaim": [make_object("c", "shop", spec={"volumeName": "v"})],
                "VolumeAttachment": [make_object("a", spec={"nodeName": "n", "source": {"persistentVolumeName": "v"}})],
                "ReplicaSet": [
                    make_object("r", "shop", spec={"replicas": 2, "selector": {"matchLabels": {"app": "r"}}})
                ],
            }
        )
    ),
    SnapshotRequest(lists=tuple(STORED_FIELDS)),
)
DOCUMENT = encode_list("pods", CLUSTER.pods, (PROBLEM,))


@pytest.mark.parametrize("field", sorted(STORED_FIELDS))
def test_decoded_list_equals_the_encoded_list(field: str) -> None:
    values = getattr(CLUSTER, field)
    assert values
    assert decode_list(field, encode_list(field, values, (PROBLEM,))) == (values, (PROBLEM,))
    assert decode_list(field, encode_list(field, (), ())) == ((), ())


def test_only_lists_of_the_snapshot_without_user_data_are_stored() -> None:
    assert {kind.field for kind in (*RESOURCE_KINDS, *OPTIONAL_KINDS)} > STORED_FIELDS
    assert "node_classes" not in STORED_FIELDS


def test_document_contains_no_environment_variables_images_or_foreign_annotations() -> None:
    stored_text = zlib.decompress(DOCUMENT)
    pod = msgspec.json.encode(population.make_pod(0, 3))
    for text in (b"SETTING_0", b"value-0-0", b"registry.example.com", b"checksum/config", b"kube-api-access"):
        assert text in pod
        assert text not in stored_text


def test_150000_pods_need_less_than_100_bytes_each() -> None:
    pods = CLUSTER.pods * 1000
    assert len(encode_list("pods", pods, ())) / len(pods) < 100


@given(st.integers(0, len(DOCUMENT) - 1), st.integers(1, 255))
def test_damaged_or_truncated_document_is_refused(index: int, flip: int) -> None:
    damaged = bytearray(DOCUMENT)
    damaged[index] ^= flip
    for body in (bytes(damaged), DOCUMENT[:index]):
        with pytest.raises(ValueError, match=r".+"):
            decode_list("pods", body)


@pytest.mark.parametrize("content", [b"", b"\x80", msgspec.msgpack.encode({"problems": [], "values": [1, 2]})])
def test_document_of_another_format_is_refused(content: bytes) -> None:
    for field in ("pods", "nodes"):
        with pytest.raises(ValueError, match=r".+"):
            decode_list(field, zlib.compress(content))


def test_document_of_another_list_is_refused() -> None:
    nodes = encode_list("nodes", (Node(meta=CLUSTER.nodes[0].meta),), ())
    with pytest.raises(ValueError, match=r".+"):
        decode_list("pods", nodes)
