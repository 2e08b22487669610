"""Permissions of roles without which nodes do not start: the default key of EBS volumes, IPv6 addresses of pods."""

from collections.abc import Iterable, Mapping
from typing import Final

from cli.facts.model import NodeClassFacts, ReadFailure, RolePermissions, StackFacts
from shared.aws.clients import Clients
from shared.aws.errors import translate_errors

IPV6_ACTION: Final = "ec2:AssignIpv6Addresses"
KEY_ACTIONS: Final = ("kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext")
"""What EC2 does with the key of a volume on behalf of the caller that launches an instance."""


def read_role_permissions(
    clients: Clients,
    ip_family: str,
    stack: StackFacts | ReadFailure | None,
    node_classes: Iterable[NodeClassFacts],
) -> RolePermissions:
    """Read the default key, and simulate what depends on it and on *ip_family*.

    Raises:
        Fault: a call was denied or not answered.
    """
    key, launch_role = _read_default_key(clients), _find_launch_role(stack)
    role_arns = sorted({facts.role_arn for facts in node_classes if isinstance(facts.role_arn, str) and facts.role_arn})
    conditions = {"kms:ViaService": f"ec2.{clients.region}.amazonaws.com", "kms:GrantIsForAWSResource": "true"}
    return RolePermissions(
        default_key=key,
        denied_key_actions=list_denied_actions(clients, launch_role, KEY_ACTIONS, key, conditions)
        if key and launch_role
        else (),
        roles_without_ipv6=tuple(arn for arn in role_arns if list_denied_actions(clients, arn, (IPV6_ACTION,)))
        if ip_family == "ipv6"
        else (),
    )


def _read_default_key(clients: Clients) -> str:
    ec2 = clients.get_retrying_client("ec2")
    with translate_errors("ec2:GetEbsEncryptionByDefault"):
        is_encrypted = ec2.get_ebs_encryption_by_default()["EbsEncryptionByDefault"]
    if not is_encrypted:
        return ""
    with translate_errors("ec2:GetEbsDefaultKmsKeyId"):
        key = str(ec2.get_ebs_default_kms_key_id()["KmsKeyId"])
    return "" if key.endswith("alias/aws/ebs") else key


def _find_launch_role(stack: StackFacts | ReadFailure | None) -> str:
    functions = stack.functions if isinstance(stack, StackFacts) else ()
    known_functions = () if isinstance(functions, ReadFailure) else functions
    return next((function.role_arn for function in known_functions if function.name == "provision"), "")


def list_denied_actions(
    clients: Clients,
    role_arn: str,
    actions: tuple[str, ...],
    resource: str = "*",
    conditions: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the *actions* that the policies of *role_arn*, the ARN of a role or user, do not allow, sorted.

    Raises:
        Fault: the call was denied or not answered.
    """
    entries = [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for key, value in sorted((conditions or {}).items())
    ]
    with translate_errors(f"iam:SimulatePrincipalPolicy {role_arn}"):
        pages = (
            clients.get_retrying_client("iam")
            .get_paginator("simulate_principal_policy")
            .paginate(
                PolicySourceArn=role_arn, ActionNames=list(actions), ResourceArns=[resource], ContextEntries=entries
            )
        )
        results = [item for page in pages for item in page["EvaluationResults"]]
    return tuple(sorted(item["EvalActionName"] for item in results if item["EvalDecision"] != "allowed"))
