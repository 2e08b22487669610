"""The EKS client, and the client for zonal shifts of EKS clusters: facts about the control plane, shifted zones."""

from collections.abc import Mapping
from typing import Any, Final

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.errors import Unreachable
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.ec2.account import ControlPlaneFacts

_APPLIED: Final = "APPLIED"
"""Of several shifts of a cluster, for example by a user and by AWS, ARC applies one; the others are NOT_APPLIED."""


class BotoEks:
    """`shared.ports.aws.Eks` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Make no call yet."""
        self._clients = clients

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        """Call DescribeCluster; the service CIDR is the IPv6 one if the cluster has it.

        Raises:
            NotFound: there is no such cluster.
            Unreachable: the cluster exists, but has no endpoint yet.
        """
        with translate_errors(f"eks:DescribeCluster {name}"):
            facts = self._clients.get_retrying_client("eks").describe_cluster(name=name)["cluster"]
        if not facts.get("endpoint"):
            raise Unreachable(f"eks:DescribeCluster {name}: {facts.get('status', '')}, no endpoint yet")
        network = facts.get("kubernetesNetworkConfig", {})
        return ControlPlaneFacts(
            name=facts["name"],
            endpoint=facts["endpoint"],
            certificate_authority=facts["certificateAuthority"]["data"],
            version=facts["version"],
            service_cidr=network.get("serviceIpv6Cidr") or network.get("serviceIpv4Cidr") or "",
        )


class BotoZonalShift:
    """`shared.ports.aws.ZonalShiftService` over boto3: Amazon Application Recovery Controller (ARC)."""

    def __init__(self, clients: Clients) -> None:
        """Make no call yet."""
        self._clients = clients

    def get_zonal_shifts(self, cluster_arn: str) -> tuple[ZonalShift, ...]:
        """Call GetManagedResource once: a network without a path to ARC must not delay a cycle by retries."""
        client = self._clients.get_single_attempt_client("arc-zonal-shift")
        with translate_errors(f"arc-zonal-shift:GetManagedResource {cluster_arn}"):
            resource = client.get_managed_resource(resourceIdentifier=cluster_arn)
        items = (*resource.get("zonalShifts", ()), *resource.get("autoshifts", ()))
        shift_by_zone_id: dict[str, ZonalShift] = {}
        for shift in sorted(_parse_shift(item) for item in items if item.get("appliedStatus") == _APPLIED):
            # A shift that has an end may be listed again as an autoshift, which has none.
            if shift.zone_id not in shift_by_zone_id or shift.expires_at is None:
                shift_by_zone_id[shift.zone_id] = shift
        return tuple(shift for _, shift in sorted(shift_by_zone_id.items()))


def _parse_shift(item: Mapping[str, Any]) -> ZonalShift:
    return ZonalShift(
        zone_id=item["awayFrom"],
        started_at=item.get("startTime"),
        expires_at=item.get("expiryTime"),
        comment=item.get("comment", ""),
    )
