"""The permissions of a template's roles, as far as nodes and launches depend on them in the account."""

from collections.abc import Mapping
from typing import Any, Final

from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, Policy, evaluate_policies, parse_policy
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID, IntrinsicResolver

_KEY_ACTIONS: Final = ("kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext")
"""What EC2 does with a key on behalf of the caller that launches an instance with an encrypted volume."""


class RolePolicies:
    """The inline policies of the roles of a template; managed policies are not read."""

    def __init__(self, template: Mapping[str, Any], region: str) -> None:
        """Read the roles, their instance profiles, and the functions that use them."""
        self._resolver, self._region = IntrinsicResolver(template, region), region
        self._policies_by_role: dict[str, list[Policy]] = {}
        self._role_by_profile: dict[str, str] = {}
        self._role_arn_by_function: dict[str, str] = {}
        for logical_id, resource in template["Resources"].items():
            properties = resource.get("Properties", {})
            match resource["Type"]:
                case "AWS::IAM::Policy":
                    document = parse_policy(self._resolver.resolve(properties["PolicyDocument"]))
                    for role in self._resolver.resolve(properties["Roles"]):
                        self._policies_by_role.setdefault(role, []).append(document)
                case "AWS::IAM::InstanceProfile":
                    [role] = self._resolver.resolve(properties["Roles"])
                    self._role_by_profile[self._resolver.get_physical_name(logical_id)] = role
                case "AWS::Lambda::Function":
                    arn = self._resolver.resolve(properties["Role"])
                    self._role_arn_by_function[properties["Handler"].split(".")[1]] = arn
                case _:
                    pass

    def can_assign_ipv6_addresses(self, profile: str) -> bool:
        """Return whether nodes with the instance profile *profile* can give pods IPv6 addresses.

        A profile that the stack does not own has the permission.
        """
        role = self._role_by_profile.get(profile)
        return role is None or self._is_allowed(role, IamRequest(action="ec2:AssignIpv6Addresses"))

    def can_launch_with_key(self, key: str) -> bool:
        """Return whether `provision` can launch instances with volumes that *key*, an ARN or a key id, encrypts."""
        arn = key if key.startswith("arn:") else f"arn:aws:kms:{self._region}:{ACCOUNT_ID}:key/{key}"
        context = build_context(
            {"kms:ViaService": f"ec2.{self._region}.amazonaws.com", "kms:GrantIsForAWSResource": "true"}
        )
        role = self._role_arn_by_function["provision"].rpartition("/")[2]
        return all(
            self._is_allowed(role, IamRequest(action=action, resource=arn, context=context)) for action in _KEY_ACTIONS
        )

    def _is_allowed(self, role: str, request: IamRequest) -> bool:
        return evaluate_policies(self._policies_by_role.get(role, ()), request) is AccessDecision.ALLOWED
