"""EC2NodeClasses whose nodes do not register."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from shared.model.core.labels import LAUNCH_FAILURES, PAUSE_AFTER_FAILURES
from shared.model.core.metadata import build_pairs
from shared.model.karpenter.health.launch_failures import LaunchFailures
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.lifecycle_cases import BIRTH


def encode_failures(failed: Mapping[str, datetime], *, generation: int = 1) -> str:
    failures = LaunchFailures(generation=generation, since=BIRTH, failed=dict(failed))
    return msgspec.json.encode(failures).decode()


def with_failed_launches(node_class: EC2NodeClass, launched_at: datetime, count: int = 3) -> EC2NodeClass:
    """Return *node_class* with a limit of 3, and *count* nodes that were launched at *launched_at* and failed."""
    failed = {f"failed-{number}/uid": launched_at for number in range(count)}
    annotations = {
        PAUSE_AFTER_FAILURES: "3",
        LAUNCH_FAILURES: encode_failures(failed, generation=node_class.meta.generation),
    }
    pairs = build_pairs(dict(node_class.meta.annotations) | annotations)
    return msgspec.structs.replace(node_class, meta=msgspec.structs.replace(node_class.meta, annotations=pairs))
