"""EKS access entries: which IAM principals can access the cluster, and with which user name and groups."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse
from sim.time.virtual_clock import Clock

NODE_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "EC2_LINUX": ("system:bootstrappers", "system:nodes"),
    "EC2_WINDOWS": ("eks:kube-proxy-windows", "system:bootstrappers", "system:nodes"),
}
"""The Kubernetes groups of each type of node; their user name is ``system:node:`` and the private DNS name of the
instance.
"""
_HTTP_NOT_FOUND: Final = 404
_HTTP_CONFLICT: Final = 409


class AccessEntry(msgspec.Struct, kw_only=True):
    """The access entry of one principal in one cluster."""

    cluster: str
    principal: str
    type: str
    groups: list[str]
    username: str
    arn: str
    tags: dict[str, str]
    policies: dict[str, dict[str, Any]]
    """The access scope of each associated policy, by policy ARN."""


class AccessEntryApi:
    """The access entries of the account and the EKS API calls for them."""

    def __init__(self, region: str, account_id: str, clock: Clock, has_cluster: Callable[[str], bool]) -> None:
        """Start without access entries; *has_cluster* returns whether a cluster of that name exists."""
        self._region, self._account_id, self._clock, self._has_cluster = region, account_id, clock, has_cluster
        self._entries: dict[tuple[str, str], AccessEntry] = {}
        self.handlers: ApiHandlers = {
            "AssociateAccessPolicy": self._associate,
            "CreateAccessEntry": self._create,
            "DeleteAccessEntry": self._delete,
            "DescribeAccessEntry": lambda request: {
                "accessEntry": self._build_entry_response(self._get_entry(request))
            },
            "DisassociateAccessPolicy": self._disassociate,
            "ListAccessEntries": self._list,
            "ListAssociatedAccessPolicies": self._list_policies,
            "UpdateAccessEntry": self._update,
        }

    def find_entry(self, cluster: str, principal: str) -> AccessEntry | None:
        """Return the access entry of the principal with the ARN *principal*, None if it has none."""
        return self._entries.get((cluster, principal))

    def _get_entry(self, request: ApiDict) -> AccessEntry:
        cluster, principal = request["clusterName"], request["principalArn"]
        entry = self.find_entry(cluster, principal)
        if entry is None:
            message = f"The specified principalArn could not be found: {principal} has no entry for {cluster}"
            raise ApiError("ResourceNotFoundException", message, _HTTP_NOT_FOUND)
        return entry

    def _create(self, request: ApiDict) -> ApiResponse:
        cluster, principal, entry_type = (
            request["clusterName"],
            request["principalArn"],
            request.get("type", "STANDARD"),
        )
        if not self._has_cluster(cluster):
            raise ApiError("ResourceNotFoundException", f"No cluster found for name: {cluster}.", _HTTP_NOT_FOUND)
        if (cluster, principal) in self._entries:
            message = "The specified access entry resource is already in use on this cluster."
            raise ApiError("ResourceInUseException", message, _HTTP_CONFLICT)
        if entry_type != "STANDARD" and request.get("kubernetesGroups"):
            raise ApiError("InvalidParameterException", f"kubernetesGroups cannot be given with type {entry_type}")
        name = principal.rpartition("/")[2]
        arn = f"arn:aws:eks:{self._region}:{self._account_id}:access-entry/{cluster}/role/{self._account_id}/{name}"
        groups = list(NODE_TYPES.get(entry_type, request.get("kubernetesGroups", ())))
        session_arn = f"arn:aws:sts::{self._account_id}:assumed-role/{name}/{{{{SessionName}}}}"
        default_username = session_arn if ":role/" in principal else principal
        username = request.get("username") or (
            "system:node:{{EC2PrivateDNSName}}" if entry_type in NODE_TYPES else default_username
        )
        self._entries[cluster, principal] = AccessEntry(
            cluster=cluster,
            principal=principal,
            type=entry_type,
            groups=groups,
            username=username,
            arn=arn,
            tags=dict(request.get("tags", {})),
            policies={},
        )
        return {"accessEntry": self._build_entry_response(self._get_entry(request))}

    def _update(self, request: ApiDict) -> ApiResponse:
        entry = self._get_entry(request)
        if entry.type == "STANDARD" and "kubernetesGroups" in request:
            entry.groups = list(request["kubernetesGroups"])
        entry.username = request.get("username") or entry.username
        return {"accessEntry": self._build_entry_response(entry)}

    def _delete(self, request: ApiDict) -> ApiResponse:
        entry = self._get_entry(request)
        del self._entries[entry.cluster, entry.principal]
        return {}

    def _list(self, request: ApiDict) -> ApiResponse:
        return {
            "accessEntries": sorted(
                principal for cluster, principal in self._entries if cluster == request["clusterName"]
            )
        }

    def _associate(self, request: ApiDict) -> ApiResponse:
        entry, arn = self._get_entry(request), request["policyArn"]
        if entry.type != "STANDARD":
            raise ApiError("InvalidParameterException", f"an entry of type {entry.type} takes no policies")
        entry.policies[arn] = dict(request["accessScope"])
        return {
            "clusterName": entry.cluster,
            "principalArn": entry.principal,
            "associatedAccessPolicy": self._build_policy_response(arn, entry.policies[arn]),
        }

    def _disassociate(self, request: ApiDict) -> ApiResponse:
        self._get_entry(request).policies.pop(request["policyArn"], None)
        return {}

    def _list_policies(self, request: ApiDict) -> ApiResponse:
        entry = self._get_entry(request)
        return {
            "clusterName": entry.cluster,
            "principalArn": entry.principal,
            "associatedAccessPolicies": [
                self._build_policy_response(arn, scope) for arn, scope in sorted(entry.policies.items())
            ],
        }

    def _build_policy_response(self, arn: str, scope: ApiDict) -> ApiResponse:
        return {
            "policyArn": arn,
            "accessScope": scope,
            "associatedAt": self._clock.get_time(),
            "modifiedAt": self._clock.get_time(),
        }

    def _build_entry_response(self, entry: AccessEntry) -> ApiResponse:
        return {
            "clusterName": entry.cluster,
            "principalArn": entry.principal,
            "kubernetesGroups": entry.groups,
            "accessEntryArn": entry.arn,
            "createdAt": self._clock.get_time(),
            "modifiedAt": self._clock.get_time(),
            "tags": entry.tags,
            "username": entry.username,
            "type": entry.type,
        }
