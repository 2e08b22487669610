"""IAM permissions of each function.

No function can both launch and terminate instances: `provision` launches, `lifecycle` terminates, no other function
changes EC2, and no function changes IAM. Launched resources must carry the tags of the cluster; only resources with
these tags can be used as a launch template, tagged or terminated. A statement with a wildcard needs a reason, otherwise
cdk-nag reports it.
"""

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions.functions import INSTALLER_SPEC, Functions
from infra.iam.cache_grants import DECIDING_FUNCTIONS, build_cache_grants
from infra.iam.commitment_grants import build_commitment_grants
from infra.iam.group_grants import build_group_grants
from infra.iam.instance_grants import (
    build_launch_grants,
    build_pass_role_grant,
    build_region_condition,
    build_termination_grants,
    build_unscoped_grant,
)
from infra.iam.key_grants import build_key_grants
from infra.iam.network_interfaces import build_interface_grants
from infra.iam.node_role import NodeRole
from infra.iam.policy_statement import Grant
from infra.iam.report_grants import build_event_bus_grants, build_remote_write_grants, build_report_grants
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
                *build_launch_grants(options.cluster),
                build_pass_role_grant(node_roles, options.node_roles),
                *build_key_grants(options.kms_keys),
            ],
            "lifecycle": build_termination_grants(options.cluster),
            "disrupt": [
                build_unscoped_grant("DescribeInstances", ("ec2:DescribeInstances",), build_region_condition())
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
        grants = [build_unscoped_grant("DescribeCatalogSources", CATALOG_ACTIONS, build_region_condition()), images]
        return (
            grants
            if self._without_prices
            else [*grants, build_unscoped_grant("ReadOnDemandPrices", ("pricing:GetProducts",))]
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
            *build_event_bus_grants(options.event_bus, name),
            *build_remote_write_grants(options.remote_write_url, name),
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
