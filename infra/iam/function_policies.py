"""IAM permissions of each function.

No function can both launch and terminate instances: `provision` launches, `lifecycle` terminates, no other function
changes EC2, and no function changes IAM. Launched resources must carry the tags of the cluster; only resources with
these tags can be used as a launch template, tagged or terminated. A statement with a wildcard needs a reason, otherwise
cdk-nag reports it.
"""

from collections.abc import Iterable
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions.functions import INSTALLER_SPEC, Functions
from infra.iam.cache_grants import DECIDING_FUNCTIONS, build_cache_grants
from infra.iam.commitment_grants import build_commitment_grants
from infra.iam.group_grants import build_group_grants
from infra.iam.key_grants import build_key_grants
from infra.iam.network_interfaces import build_interface_grants
from infra.iam.node_role import NodeRole
from infra.iam.policy_statement import Conditions, Grant
from infra.iam.report_grants import build_report_grants
from infra.iam.trace_grants import build_trace_grants
from infra.iam.zonal_shift_grants import build_zonal_shift_grants, format_cluster_arn
from infra.settings.settings import StackOptions
from infra.storage import (
    CATALOG_PREFIX,
    COST_REPORT_PREFIX,
    JOURNAL_PREFIX,
    MARKET_PREFIX,
    SNAPSHOT_PREFIX,
    State,
)

NODEPOOL_TAG: Final = "karpenter.sh/nodepool"
LAUNCHED_RESOURCE_TYPES: Final = ("fleet", "instance", "volume", "network-interface", "spot-instances-request")
USED_RESOURCE_TYPES: Final = ("security-group", "subnet", "capacity-reservation", "placement-group")
NODE_TAGS: Final = ("eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name")
"""The tags that can be written on a running instance."""
CATALOG_ACTIONS: Final = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)
INSTANCE_ACTIONS: Final = ("ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeLaunchTemplates")
LAUNCH_READ_ACTIONS: Final = ("ec2:DescribeInstances", "ec2:DescribeLaunchTemplates")
"""What `provision` reads of its launches: the instances of a launch group whose response was lost, and templates."""
FUNCTIONS_BY_TABLE_ACTION: Final = {
    "dynamodb:ConditionCheckItem": frozenset({"disrupt", "provision"}),
    "dynamodb:DeleteItem": frozenset({"disrupt"}),
    "dynamodb:Query": frozenset({"disrupt", "interrupt", "lifecycle", "provision"}),
}
"""The functions that write table rows only while they hold a lease, delete rows, and list rows.

All functions read and write single rows. Other functions than `disrupt` overwrite rows or let them expire.
"""
CATALOG_READING_FUNCTIONS: Final = frozenset({"provision", "disrupt", "interrupt", "catalog"})
"""`lifecycle` decides without prices: it reads the catalog only to write the conditions of NodeOverlays."""

NO_RESOURCES_REASON: Final = "the action does not support resource-level permissions"
SELECTED_RESOURCES_REASON: Final = "EC2NodeClasses can select any of these; instances must have the tags of the cluster"
TAG_CONDITIONS_REASON: Final = "EC2 generates the id; the conditions require the tags of the cluster"
OBJECT_KEYS_REASON: Final = "object keys in one bucket"
PUBLIC_PARAMETERS_REASON: Final = "public AWS parameters"


class FunctionPolicies(Construct):
    """The policies of all function roles."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: StackOptions,
        functions: Functions,
        state: State,
        node_roles: list[NodeRole],
    ) -> None:
        """Attach the policies to the roles."""
        super().__init__(scope, construct_id)
        self._cluster, self._state = options.cluster, state
        self._catalog_readers = CATALOG_READING_FUNCTIONS | ({"lifecycle"} if options.gates.node_overlay else set())
        self._without_prices = options.network == "isolated"
        if options.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", options.permissions_boundary)
            iam.PermissionsBoundary.of(cdk.Stack.of(self)).apply(boundary)
        own_grants_by_function = {
            "provision": [
                *self._build_launch_grants(),
                self._build_pass_role_grant(node_roles, options.node_roles),
                *build_key_grants(options.kms_keys),
            ],
            "lifecycle": self._build_termination_grants(),
            "disrupt": [
                _build_unscoped_grant("DescribeInstances", ("ec2:DescribeInstances",), _build_region_condition())
            ],
            "catalog": [
                *self._build_catalog_grants(options.ssm_parameters),
                *build_commitment_grants(options.commitments, options.commitments_role),
                *build_report_grants(options.report_topic),
            ],
        }
        grants_by_function = {
            spec.name: [*own_grants_by_function.get(spec.name, []), *self._build_common_grants(spec.name, options)]
            for spec in functions.specs
        }
        grants_by_function[INSTALLER_SPEC.name] = [self._build_find_cluster_grant()]
        for name, grants in grants_by_function.items():
            network_grants = build_interface_grants() if options.network != "public" else []
            trace_grants = build_trace_grants() if options.tracing == "on" else []
            for grant in (*grants, *network_grants, *trace_grants, *build_group_grants(options, name)):
                grant.add_to_role(functions.get_role(name))

    def _build_launch_grants(self) -> list[Grant]:
        launch_actions = ("ec2:CreateFleet", "ec2:RunInstances")
        used_resources = (
            *(_format_ec2_arn(kind) for kind in USED_RESOURCE_TYPES),
            _format_ec2_arn("image", account=""),
            _format_ec2_arn("snapshot", account=""),
        )
        launched_resources, template = (
            tuple(_format_ec2_arn(kind) for kind in LAUNCHED_RESOURCE_TYPES),
            (_format_ec2_arn("launch-template"),),
        )
        owned_conditions = self._build_owned_conditions("aws:ResourceTag")
        tagged_conditions = self._build_owned_conditions(
            "aws:RequestTag", {"aws:RequestTag/eks:eks-cluster-name": self._cluster}
        )
        creation_conditions = self._build_owned_conditions(
            "aws:RequestTag",
            {
                "aws:RequestTag/eks:eks-cluster-name": self._cluster,
                "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
            },
        )
        create_actions, tag_actions = ("ec2:CreateLaunchTemplate",), ("ec2:CreateTags",)
        return [
            Grant(
                sid="LaunchWithSelectedResources",
                actions=launch_actions,
                resources=used_resources,
                wildcard_reason=SELECTED_RESOURCES_REASON,
            ),
            Grant(
                sid="LaunchFromOwnedTemplates",
                actions=launch_actions,
                resources=template,
                conditions=owned_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            Grant(
                sid="CreateTaggedFleets",
                actions=launch_actions,
                resources=launched_resources,
                conditions=tagged_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            Grant(
                sid="CreateTaggedLaunchTemplates",
                actions=create_actions,
                resources=template,
                conditions=tagged_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            Grant(
                sid="TagCreatedResources",
                actions=tag_actions,
                resources=(*launched_resources, *template),
                conditions=creation_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            _build_unscoped_grant("FindLaunchedInstances", LAUNCH_READ_ACTIONS, _build_region_condition()),
        ]

    def _build_pass_role_grant(self, node_roles: list[NodeRole], more_role_names: Iterable[str]) -> Grant:
        arns = tuple(f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{name}" for name in more_role_names)
        services = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
        return Grant(
            sid="PassNodeRole",
            actions=("iam:PassRole",),
            resources=(*(node_role.role.role_arn for node_role in node_roles), *arns),
            conditions={"StringEquals": {"iam:PassedToService": services}},
        )

    def _build_termination_grants(self) -> list[Grant]:
        instance, template = (_format_ec2_arn("instance"),), (_format_ec2_arn("launch-template"),)
        owned_conditions = self._build_owned_conditions("aws:ResourceTag")
        name_conditions = owned_conditions | {
            "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": self._cluster},
            "ForAllValues:StringEquals": {"aws:TagKeys": list(NODE_TAGS)},
        }
        terminate, delete = ("ec2:TerminateInstances",), ("ec2:DeleteLaunchTemplate",)
        return [
            Grant(
                sid="TerminateOwnedInstances",
                actions=terminate,
                resources=instance,
                conditions=owned_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            Grant(
                sid="DeleteOwnedLaunchTemplates",
                actions=delete,
                resources=template,
                conditions=owned_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            Grant(
                sid="TagOwnedInstances",
                actions=("ec2:CreateTags",),
                resources=instance,
                conditions=name_conditions,
                wildcard_reason=TAG_CONDITIONS_REASON,
            ),
            _build_unscoped_grant("DescribeInstances", INSTANCE_ACTIONS, _build_region_condition()),
        ]

    def _build_catalog_grants(self, parameters: Iterable[str]) -> list[Grant]:
        ssm = f"arn:{cdk.Aws.PARTITION}:ssm:{cdk.Aws.REGION}"
        private = tuple(f"{ssm}:{cdk.Aws.ACCOUNT_ID}:parameter/{name.lstrip('/')}" for name in parameters)
        public, read = f"{ssm}::parameter/aws/service/*", ("ssm:GetParameter",)
        images = Grant(
            sid="ReadImageParameters",
            actions=read,
            resources=(public, *private),
            wildcard_reason=PUBLIC_PARAMETERS_REASON,
        )
        grants = [_build_unscoped_grant("DescribeCatalogSources", CATALOG_ACTIONS, _build_region_condition()), images]
        return (
            grants
            if self._without_prices
            else [*grants, _build_unscoped_grant("ReadOnDemandPrices", ("pricing:GetProducts",))]
        )

    def _build_common_grants(self, name: str, options: StackOptions) -> list[Grant]:
        bucket = self._state.bucket.bucket_arn
        journal, snapshots, catalogs, market, costs = (
            f"{bucket}/{prefix}*"
            for prefix in (JOURNAL_PREFIX, SNAPSHOT_PREFIX, CATALOG_PREFIX, MARKET_PREFIX, COST_REPORT_PREFIX)
        )
        own_keys = (catalogs, market, costs) if name == "catalog" else ()
        written_keys = (journal, *own_keys, *((snapshots,) if name in DECIDING_FUNCTIONS else ()))
        read_keys = (*own_keys, journal) if name == "catalog" else (catalogs,)
        own_row_actions = (action for action, names in FUNCTIONS_BY_TABLE_ACTION.items() if name in names)
        row_actions = ("dynamodb:GetItem", "dynamodb:PutItem", *own_row_actions)
        grants = [
            self._build_find_cluster_grant(),
            *build_zonal_shift_grants(options.zonal_shift, self._cluster, name),
            Grant(
                sid="WriteObjects",
                actions=("s3:PutObject",),
                resources=written_keys,
                wildcard_reason=OBJECT_KEYS_REASON,
            ),
            Grant(sid="AccessTable", actions=row_actions, resources=(self._state.table.table_arn,)),
        ]
        if name in self._catalog_readers:
            grants.append(
                Grant(
                    sid="ReadObjects",
                    actions=("s3:GetObject",),
                    resources=read_keys,
                    wildcard_reason=OBJECT_KEYS_REASON,
                )
            )
            # Without this permission, S3 answers "forbidden" instead of "not found".
            grants.append(Grant(sid="ListBucket", actions=("s3:ListBucket",), resources=(bucket,)))
        return [*grants, *build_cache_grants(bucket, options, name)]

    def _build_find_cluster_grant(self) -> Grant:
        actions = ("eks:DescribeCluster",)
        return Grant(sid="DescribeCluster", actions=actions, resources=(format_cluster_arn(self._cluster),))

    def _build_owned_conditions(self, key: str, more_equals: dict[str, Any] | None = None) -> Conditions:
        """Return the condition that the tags under *key* name this cluster and a NodePool, plus *more_equals*."""
        return {
            "StringEquals": {f"{key}/kubernetes.io/cluster/{self._cluster}": "owned"} | (more_equals or {}),
            "StringLike": {f"{key}/{NODEPOOL_TAG}": "*"},
        }


def _format_ec2_arn(kind: str, *, account: str = "*") -> str:
    return f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}:{account}:{kind}/*"


def _build_region_condition() -> Conditions:
    return {"StringEquals": {"aws:RequestedRegion": cdk.Aws.REGION}}


def _build_unscoped_grant(sid: str, actions: tuple[str, ...], conditions: Conditions | None = None) -> Grant:
    return Grant(sid=sid, actions=actions, resources=("*",), conditions=conditions, wildcard_reason=NO_RESOURCES_REASON)
