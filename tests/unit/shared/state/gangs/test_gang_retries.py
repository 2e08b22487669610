"""The annotation with the retries of gangs."""

from datetime import UTC, datetime

import pytest

from shared.model.core.labels import GANG_RETRIES
from shared.model.core.metadata import ObjectMeta
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.state.gangs.gang_retries import GangRetry, format_gang_retries, parse_gang_retries

NOW = datetime(2026, 11, 28, 8, tzinfo=UTC)


def build_pool(text: str) -> NodePool:
    meta = ObjectMeta(name="default", annotations=((GANG_RETRIES, text),))
    return NodePool(meta=meta, node_class=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default"))


def test_retries_are_read_as_they_were_written() -> None:
    retries = {"shop/train": GangRetry(count=2, until=NOW)}
    assert parse_gang_retries(build_pool(format_gang_retries(retries, NOW))) == retries


@pytest.mark.parametrize(
    "text",
    [
        '{"shop/train": {"count": 1, "until": "2026-11-28T08:00:00"}}',
        '{"shop/train": {"count": "1", "until": "2026-11-28T08:00:00Z"}}',
        '{"shop/train"',
        "[]",
    ],
)
def test_value_that_cannot_be_read_counts_as_no_retries(text: str) -> None:
    assert parse_gang_retries(build_pool(text)) == {}
