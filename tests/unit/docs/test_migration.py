"""The page on how to come and how to go speaks of everything that we leave on objects."""

from pathlib import Path

from shared.model.core import labels

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "migrate-from-karpenter.md").read_text()
PEOPLES = frozenset(
    (
        labels.BUDGET_TIME_ZONE,
        labels.CONSOLIDATION_MODE,
        labels.DISRUPTION_PAUSED,
        labels.DISRUPTION_RESUMED,
        labels.DISRUPTION_WINDOWS,
        labels.EVICTION_PRICE,
        labels.EXPIRY_JITTER,
        labels.GANG,
        labels.GANG_SIZE,
        labels.GANG_TOPOLOGY,
        labels.GRACEFUL_EXPIRATION,
        labels.IMAGE_SOAK,
        labels.LAUNCHES_PAUSED,
        labels.LIMIT_USD,
        labels.MINIMUM_SAVINGS_PERCENT,
        labels.MINIMUM_SAVINGS_USD,
        labels.DEVICES,
        labels.CANARY,
        labels.CANARY_APPROVED,
        labels.CANARY_REJECTED,
        labels.IMAGE_MINIMUM_AGE,
        labels.PAUSE_AFTER_FAILURES,
        labels.SCHEDULE,
        labels.SCHEDULE_TIME_ZONE,
        labels.ON_DEMAND_BASE,
        labels.REBALANCE_POLICY,
        labels.SPOT_SHARE,
        labels.SPOT_SHARE_UNIT,
        labels.SURGE_DRAIN,
        labels.UTILIZATION_THRESHOLD,
        labels.ZONE_BALANCE,
    )
)
"""What people write and we only read."""
LEFT_ON_TEMPLATES = frozenset((labels.SURGE_DRAIN_RESTART,))
"""What stays on pod templates, because a removal would restart the pods."""


def test_migration_page_removes_every_joiner_label_and_annotation() -> None:
    own_labels = {
        value for value in vars(labels).values() if isinstance(value, str) and value.startswith("joiner.dev/")
    }
    assert own_labels >= PEOPLES
    assert [mark for mark in sorted(own_labels - PEOPLES - LEFT_ON_TEMPLATES) if f"{mark}-" not in PAGE] == []
    assert [mark for mark in sorted(LEFT_ON_TEMPLATES) if f"`{mark}`" not in PAGE] == []
