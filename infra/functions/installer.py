"""The cluster objects that are installed and removed with the stack: CRDs, RBAC and API priority.

One function serves two CloudFormation resources. CloudFormation creates resources in the order of their dependencies
and deletes them in reverse order. `Installed` is created before access entries and schedules, and deleted after them.
`Emptied` is created last and so deleted first, while all functions still work: on request, the functions then terminate
every node.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_eks as eks
from constructs import Construct, IDependable

from infra.functions.functions import INSTALLER_SPEC, Functions
from infra.settings.settings import StackOptions
from shared.settings import ChosenSettings

MANIFEST_FOLDER: Final = Path(__file__).resolve().parents[2] / "shared"
DEFAULT_SETTINGS: Final = ChosenSettings()
MANIFESTS_FILENAME: Final = "manifests.json"
"""Shipped with the code of the functions, which have no YAML parser."""
ADMIN_POLICY: Final = "AmazonEKSClusterAdminPolicy"
"""No lesser EKS access policy allows writing CRDs and cluster roles."""


def build_manifests(settings: ChosenSettings = DEFAULT_SETTINGS) -> bytes:
    """Return all objects to install as one JSON list; *settings* enable optional rules of the ClusterRole."""
    return _build_manifests(list_enabled_features(settings))


def list_enabled_features(settings: ChosenSettings) -> frozenset[str]:
    """Return the features that *settings* enable and that have rules of their own, by the name of their field."""
    return frozenset(name for name in _read_optional_rules() if getattr(settings, name) == "on")


@cache
def _read_optional_rules() -> Mapping[str, list[dict[str, list[str]]]]:
    text = (MANIFEST_FOLDER / "installer" / "optional_rbac.yaml").read_text()
    rules_by_feature: dict[str, list[dict[str, list[str]]]] = msgspec.yaml.decode(text)
    return rules_by_feature


@cache
def _build_manifests(features: frozenset[str]) -> bytes:
    installer_folder = MANIFEST_FOLDER / "installer"
    paths = [
        *sorted((MANIFEST_FOLDER / "crds" / "manifests").glob("*.yaml")),
        installer_folder / "priority.yaml",
        installer_folder / "rbac.yaml",
    ]
    objects = [msgspec.yaml.decode(document) for path in paths for document in path.read_text().split("\n---\n")]
    [role] = [manifest for manifest in objects if manifest["kind"] == "ClusterRole"]
    for feature in sorted(features):
        role["rules"] += _read_optional_rules()[feature]
    return msgspec.json.encode(objects)


class InstallerConstruct(Construct):
    """The access of the installer function to the cluster, and its CloudFormation resources."""

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions, functions: Functions) -> None:
        """Create `installed`; constructs that need the installed objects must depend on it."""
        super().__init__(scope, construct_id)
        self._alias, self._options = functions.get_alias(INSTALLER_SPEC.name), options
        self._function = functions[INSTALLER_SPEC.name]
        self._access_entry = eks.CfnAccessEntry(
            self,
            "Entry",
            cluster_name=options.cluster,
            principal_arn=functions.get_role(INSTALLER_SPEC.name).role_arn,
            type="STANDARD",
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{cdk.Aws.PARTITION}:eks::aws:cluster-access-policy/{ADMIN_POLICY}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
            ],
        )
        # CreateAccessEntry fails with "invalid principal" while IAM has not propagated a new role. When the function
        # exists, Lambda has assumed the role.
        self._access_entry.node.add_dependency(self._function, self._alias)
        self.installed = self._build_resource(
            "Installed",
            {
                "Manifests": MANIFESTS_FILENAME,
                "Digest": sha256(build_manifests(options)).hexdigest(),
                # Left out by default, so that the template of an installation without GitOps has no other property.
                **({"ClusterObjects": options.cluster_objects} if options.cluster_objects != "stack" else {}),
            },
        )
        self.installer_message: str = self.installed.get_att_string("Told")

    def create_emptied_resource(self, *dependencies: IDependable, profiles: list[str]) -> None:
        """Create the resource that is deleted before *dependencies*, installed objects and instance *profiles*."""
        emptied = self._build_resource("Emptied", {"Profiles": profiles})
        emptied.node.add_dependency(self.installed, *dependencies)

    def _build_resource(self, name: str, properties: dict[str, Any]) -> cdk.CustomResource:
        resource = cdk.CustomResource(
            self,
            name,
            resource_type=f"Custom::Joiner{name}",
            service_token=self._alias.function_arn,
            service_timeout=cdk.Duration.seconds(INSTALLER_SPEC.timeout_seconds + 60),
            properties={"Part": name.lower(), "OnDestroy": self._options.on_destroy, **properties},
        )
        resource.node.add_dependency(self._access_entry, self._function, self._alias)
        return resource
