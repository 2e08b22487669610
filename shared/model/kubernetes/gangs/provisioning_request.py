"""ProvisioningRequests: capacity for pods that do not exist yet, as Kueue requests it."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, Pairs, find_condition, is_condition_true
from shared.model.kubernetes.gangs.gang import parse_count

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
ATOMIC_SCALE_UP: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONSUMED_REQUEST: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
"""Annotation of a pod: the ProvisioningRequest whose capacity it uses."""
BOOKING_TTL: Final = timedelta(minutes=10)
"""How long the capacity is kept after the request is provisioned, as Cluster Autoscaler does."""
UNPROVISIONED_TTL: Final = timedelta(days=7)
"""How long a request without `ValidUntilSeconds` is tried."""
ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
BOOKING_EXPIRED: Final = "BookingExpired"
CAPACITY_REVOKED: Final = "CapacityRevoked"
_NO_RETRY: Final = "noRetry"
_VALID_UNTIL: Final = "ValidUntilSeconds"
_MAX_VALID_S: Final = 10**10
"""Larger numbers count as this one: 300 years."""


class RequestedPods(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of spec.podSets."""

    template: str
    """Name of a PodTemplate in the namespace of the request."""
    count: int


class ProvisioningRequest(msgspec.Struct, frozen=True, kw_only=True):
    """autoscaling.x-k8s.io/v1 ProvisioningRequest."""

    meta: ObjectMeta
    class_name: str
    pod_sets: tuple[RequestedPods, ...]
    parameters: Pairs = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/train``."""
        return f"{self.meta.namespace}/{self.meta.name}"

    @property
    def launches_nodes(self) -> bool:
        """Whether nodes are launched for it; else only existing capacity counts."""
        return self.class_name == ATOMIC_SCALE_UP

    @property
    def can_retry(self) -> bool:
        """Whether it is tried again if there is no capacity."""
        return self.launches_nodes or dict(self.parameters).get(_NO_RETRY) != "true"

    def is_provisioned(self) -> bool:
        """Return whether its capacity was found or launched."""
        return is_condition_true(self.conditions, PROVISIONED)

    def is_open(self) -> bool:
        """Return whether it is of a class that Joiner supports, and neither failed nor ended."""
        return (
            self.class_name in (CHECK_CAPACITY, ATOMIC_SCALE_UP)
            and self.meta.deleted_at is None
            and not any(
                is_condition_true(self.conditions, type_) for type_ in (FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED)
            )
        )

    def is_booking_over(self, now: datetime) -> bool:
        """Return whether its capacity is no longer kept."""
        provisioned = find_condition(self.conditions, PROVISIONED)
        is_true = provisioned is not None and provisioned.status == "True"
        return (
            is_true
            and provisioned is not None
            and (provisioned.since is None or now - provisioned.since >= BOOKING_TTL)
        )

    def is_expired(self, now: datetime) -> bool:
        """Return whether it was not provisioned in time."""
        seconds = parse_count(dict(self.parameters).get(_VALID_UNTIL, ""), _MAX_VALID_S)
        ttl = timedelta(seconds=seconds) if seconds is not None else UNPROVISIONED_TTL
        return not self.is_provisioned() and self.meta.created_at is not None and now - self.meta.created_at >= ttl
