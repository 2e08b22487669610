"""What is put into the cluster with the stack, and taken out with it: definitions, rights, a priority of requests.

One function serves two resources of CloudFormation, which makes things in the order of their dependencies and deletes
in the opposite one. `Installed` comes before anybody is let in or woken, and goes after they are gone. `Emptied` comes
last of all and so is deleted first, while all functions still work: on request it has them end every node.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_eks as eks
from constructs import Construct, IDependable

from infra.functions import INSTALLER, Functions
from infra.knobs import Knobs

KUBE: Final = Path(__file__).resolve().parent.parent / "shared" / "kube"
FILE: Final = "manifests.json"
"""Beside the functions' code: they have no reader of YAML."""
ADMIN: Final = "AmazonEKSClusterAdminPolicy"
"""No lesser policy of EKS lets anybody write definitions and cluster roles."""


@cache
def manifests() -> bytes:
    """Answer all that is installed, as one JSON list."""
    texts = [*sorted((KUBE / "crds").glob("*.yaml")), KUBE / "priority.yaml", KUBE / "rbac.yaml"]
    found = [msgspec.yaml.decode(one) for path in texts for one in path.read_text().split("\n---\n")]
    return msgspec.json.encode(found)


class Installer(Construct):
    """The function's way into the cluster, and what it does there."""

    def __init__(self, scope: Construct, construct_id: str, *, knobs: Knobs, functions: Functions) -> None:
        """Make `installed`; whatever needs it has to say so."""
        super().__init__(scope, construct_id)
        self._alias, self._knobs = functions.alias(INSTALLER.name), knobs
        self._function = functions[INSTALLER.name]
        self._entry = eks.CfnAccessEntry(
            self,
            "Entry",
            cluster_name=knobs.cluster,
            principal_arn=functions.role(INSTALLER.name).role_arn,
            type="STANDARD",
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{cdk.Aws.PARTITION}:eks::aws:cluster-access-policy/{ADMIN}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
            ],
        )
        self.installed = self._resource("Installed", {"Manifests": FILE, "Digest": sha256(manifests()).hexdigest()})
        self.told: str = self.installed.get_att_string("Told")

    def empty_before(self, *others: IDependable, profiles: list[str]) -> None:
        """Make the resource whose deletion comes before that of *others*, of what is installed, and of *profiles*."""
        emptied = self._resource("Emptied", {"Profiles": profiles})
        emptied.node.add_dependency(self.installed, *others)

    def _resource(self, name: str, properties: dict[str, Any]) -> cdk.CustomResource:
        resource = cdk.CustomResource(
            self,
            name,
            resource_type=f"Custom::Joiner{name}",
            service_token=self._alias.function_arn,
            service_timeout=cdk.Duration.seconds(INSTALLER.timeout_seconds + 60),
            properties={"Part": name.lower(), "OnDestroy": self._knobs.on_destroy, **properties},
        )
        resource.node.add_dependency(self._entry, self._function, self._alias)
        return resource
