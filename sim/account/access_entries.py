"""EKS's access entries: whom the cluster lets in, and as what."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]

NODE_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "EC2_LINUX": ("system:bootstrappers", "system:nodes"),
    "EC2_WINDOWS": ("eks:kube-proxy-windows", "system:bootstrappers", "system:nodes"),
}
"""The groups of nodes; their user is ``system:node:`` and the name of the machine."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class Entry(msgspec.Struct, kw_only=True):
    """One principal of one cluster."""

    cluster: str
    principal: str
    type: str
    groups: list[str]
    username: str
    arn: str
    tags: dict[str, str]
    policies: dict[str, dict[str, Any]]
    """By ARN: how far each reaches."""


class AccessEntries:
    """All of the account's."""

    def __init__(self, region: str, number: str, clock: Clock, has_cluster: Callable[[str], bool]) -> None:
        """Begin without any; *has_cluster* says whether there is one of that name."""
        self._region, self._number, self._clock, self._has_cluster = region, number, clock, has_cluster
        self._entries: dict[tuple[str, str], Entry] = {}
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "AssociateAccessPolicy": self._associate,
            "CreateAccessEntry": self._create,
            "DeleteAccessEntry": self._delete,
            "DescribeAccessEntry": lambda said: {"accessEntry": self._wire(self._find(said))},
            "DisassociateAccessPolicy": self._disassociate,
            "ListAccessEntries": self._list,
            "ListAssociatedAccessPolicies": self._policies,
            "UpdateAccessEntry": self._update,
        }

    def entry(self, cluster: str, principal: str) -> Entry | None:
        """Answer the entry of the role with the ARN *principal*, None if it has none."""
        return self._entries.get((cluster, principal))

    def _find(self, said: Wire) -> Entry:
        cluster, principal = said["clusterName"], said["principalArn"]
        found = self.entry(cluster, principal)
        if found is None:
            text = f"The specified principalArn could not be found: {principal} has no entry for {cluster}"
            raise ApiError("ResourceNotFoundException", text, _NOT_FOUND)
        return found

    def _create(self, said: Wire) -> Answer:
        cluster, principal, kind = said["clusterName"], said["principalArn"], said.get("type", "STANDARD")
        if not self._has_cluster(cluster):
            raise ApiError("ResourceNotFoundException", f"No cluster found for name: {cluster}.", _NOT_FOUND)
        if (cluster, principal) in self._entries:
            text = "The specified access entry resource is already in use on this cluster."
            raise ApiError("ResourceInUseException", text, _CONFLICT)
        if kind != "STANDARD" and said.get("kubernetesGroups"):
            raise ApiError("InvalidParameterException", f"kubernetesGroups cannot be given with type {kind}")
        name = principal.rpartition("/")[2]
        arn = f"arn:aws:eks:{self._region}:{self._number}:access-entry/{cluster}/role/{self._number}/{name}"
        groups = list(NODE_TYPES.get(kind, said.get("kubernetesGroups", ())))
        session = f"arn:aws:sts::{self._number}:assumed-role/{name}/{{{{SessionName}}}}"
        standard = session if ":role/" in principal else principal
        user = said.get("username") or ("system:node:{{EC2PrivateDNSName}}" if kind in NODE_TYPES else standard)
        self._entries[cluster, principal] = Entry(
            cluster=cluster,
            principal=principal,
            type=kind,
            groups=groups,
            username=user,
            arn=arn,
            tags=dict(said.get("tags", {})),
            policies={},
        )
        return {"accessEntry": self._wire(self._find(said))}

    def _update(self, said: Wire) -> Answer:
        found = self._find(said)
        if found.type == "STANDARD" and "kubernetesGroups" in said:
            found.groups = list(said["kubernetesGroups"])
        found.username = said.get("username") or found.username
        return {"accessEntry": self._wire(found)}

    def _delete(self, said: Wire) -> Answer:
        found = self._find(said)
        del self._entries[found.cluster, found.principal]
        return {}

    def _list(self, said: Wire) -> Answer:
        return {"accessEntries": sorted(who for cluster, who in self._entries if cluster == said["clusterName"])}

    def _associate(self, said: Wire) -> Answer:
        found, arn = self._find(said), said["policyArn"]
        if found.type != "STANDARD":
            raise ApiError("InvalidParameterException", f"an entry of type {found.type} takes no policies")
        found.policies[arn] = dict(said["accessScope"])
        return {
            "clusterName": found.cluster,
            "principalArn": found.principal,
            "associatedAccessPolicy": self._policy(arn, found.policies[arn]),
        }

    def _disassociate(self, said: Wire) -> Answer:
        self._find(said).policies.pop(said["policyArn"], None)
        return {}

    def _policies(self, said: Wire) -> Answer:
        found = self._find(said)
        return {
            "clusterName": found.cluster,
            "principalArn": found.principal,
            "associatedAccessPolicies": [self._policy(arn, scope) for arn, scope in sorted(found.policies.items())],
        }

    def _policy(self, arn: str, scope: Wire) -> Answer:
        return {
            "policyArn": arn,
            "accessScope": scope,
            "associatedAt": self._clock.now(),
            "modifiedAt": self._clock.now(),
        }

    def _wire(self, one: Entry) -> Answer:
        return {
            "clusterName": one.cluster,
            "principalArn": one.principal,
            "kubernetesGroups": one.groups,
            "accessEntryArn": one.arn,
            "createdAt": self._clock.now(),
            "modifiedAt": self._clock.now(),
            "tags": one.tags,
            "username": one.username,
            "type": one.type,
        }
