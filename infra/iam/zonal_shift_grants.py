"""Read-only permission of the functions that plan nodes, for the setting `zonal-shift`."""

from typing import Final

import aws_cdk as cdk

from infra.iam.policy_statement import Grant

ZONAL_SHIFT_FUNCTIONS: Final = frozenset({"provision", "lifecycle", "disrupt", "interrupt"})
"""The functions that decide where nodes are launched or which nodes are disrupted."""


def format_cluster_arn(cluster: str) -> str:
    """Return the ARN of the EKS cluster."""
    return f"arn:{cdk.Aws.PARTITION}:eks:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:cluster/{cluster}"


def build_zonal_shift_grants(setting: str, cluster: str, function: str) -> list[Grant]:
    """Return the permission of *function* to read the zonal shifts of *cluster*."""
    if setting == "off" or function not in ZONAL_SHIFT_FUNCTIONS:
        return []
    return [
        Grant(
            sid="ReadZonalShifts",
            actions=("arc-zonal-shift:GetManagedResource",),
            resources=("*",),
            conditions={"StringEquals": {"arc-zonal-shift:ResourceIdentifier": format_cluster_arn(cluster)}},
            wildcard_reason="the resource types of ARC do not include EKS clusters; the condition names the cluster",
        )
    ]
