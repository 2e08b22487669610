"""A statement of an IAM policy, with the reason for its wildcards that cdk-nag asks for."""

from typing import Any

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from constructs import Construct

Conditions = dict[str, dict[str, Any]]


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of an IAM policy; *wildcard_reason* justifies the wildcards in *resources*."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Conditions | None = None
    wildcard_reason: str = ""
    effect: iam.Effect = iam.Effect.ALLOW

    def add_to_role(self, role: iam.Role) -> None:
        """Add the statement to *role*."""
        statement = iam.PolicyStatement(
            sid=self.sid,
            effect=self.effect,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=self.conditions,
        )
        role.add_to_policy(statement)
        if not self.wildcard_reason:
            return
        for resource in self.resources:
            rule_id = f"AwsSolutions::AwsSolutions-IAM5[Resource::{_format_for_cdk_nag(role, resource)}]"
            cdk.Validations.of(role).acknowledge(cdk.Acknowledgment(id=rule_id, reason=self.wildcard_reason))


def _format_for_cdk_nag(scope: Construct, resource: str) -> str:
    """Return *resource* as cdk-nag writes it: ``<AWS::Region>`` for a reference, ``<Logical.Arn>`` for an attribute."""
    resolved = cdk.Stack.of(scope).resolve(resource)
    return "".join(map(_format_part_for_cdk_nag, resolved["Fn::Join"][1])) if isinstance(resolved, dict) else resolved


def _format_part_for_cdk_nag(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    [target] = part.values()
    return f"<{target if isinstance(target, str) else '.'.join(target)}>"
