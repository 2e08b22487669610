"""The IAM requests that EC2 and the VPC CNI make with the role of a launch or of a node."""

from typing import Final

from sim.iam.patterns_and_variables import IamRequest, build_context

_KEY_ACTIONS: Final = (
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""The permissions for a customer-managed key that the caller of a launch with an encrypted volume needs (Amazon EBS
User Guide, "Requirements for Amazon EBS encryption": https://docs.aws.amazon.com/ebs/latest/userguide/
ebs-encryption-requirements.html). The page names `kms:ReEncrypt`, which KMS checks as two actions. A launch by an
instant fleet has the permissions of the caller, not of a service-linked role, which only other fleets use ("EC2 Fleet
prerequisites").
"""


def build_key_requests(key: str, region: str, account_id: str) -> tuple[IamRequest, ...]:
    """Return the requests of EC2 for an encrypted volume; *key* is an ARN or a key id."""
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{region}:{account_id}:key/{key}"
    via_ec2 = {"kms:ViaService": f"ec2.{region}.amazonaws.com"}
    return tuple(
        IamRequest(
            action=action,
            resource=arn,
            context=build_context(
                via_ec2 | ({"kms:GrantIsForAWSResource": "true"} if action == "kms:CreateGrant" else {})
            ),
        )
        for action in _KEY_ACTIONS
    )


def build_address_request(region: str, account_id: str) -> IamRequest:
    """Return the request of the VPC CNI for IPv6 addresses of pods.

    The managed policy AmazonEKS_CNI_Policy, which every node role has, allows the other requests of the VPC CNI.
    """
    arn = f"arn:aws:ec2:{region}:{account_id}:network-interface/*"
    return IamRequest(action="ec2:AssignIpv6Addresses", resource=arn)
