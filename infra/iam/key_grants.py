"""Permissions for the customer-managed KMS keys of the nodes' volumes."""

from typing import Final

import aws_cdk as cdk

from infra.iam.policy_statement import Conditions, Grant

KEY_ACTIONS: Final = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


def build_key_grants(keys: tuple[str, ...]) -> list[Grant]:
    """Return the permissions to launch instances with volumes that *keys* encrypt.

    EC2 uses a key on behalf of the caller of CreateFleet (Amazon EBS User Guide, "Requirements for Amazon EBS
    encryption"). The conditions exclude other uses of the key.
    """
    if not keys:
        return []
    via_ec2: Conditions = {"StringEquals": {"kms:ViaService": f"ec2.{cdk.Aws.REGION}.{cdk.Aws.URL_SUFFIX}"}}
    for_aws_conditions: Conditions = {**via_ec2, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    return [
        Grant(sid="UseKeys", actions=KEY_ACTIONS, resources=keys, conditions=via_ec2),
        Grant(sid="GrantKeys", actions=("kms:CreateGrant",), resources=keys, conditions=for_aws_conditions),
    ]
