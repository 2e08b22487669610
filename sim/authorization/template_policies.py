"""The permissions that a template grants: IAM policies of roles and resources, and Kubernetes groups of functions."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from shared.installer.rbac import list_enabled_features
from shared.settings import ChosenSettings
from sim.iam.policy import Policy, PolicyStatement, parse_policy, parse_statement
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver

Template: TypeAlias = Mapping[str, Any]

RESOURCE_POLICY_TYPES: Final = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy")


def get_resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Return the resolved properties of the resources of type *kind*, by logical id."""
    matching_resources = {key: value for key, value in template["Resources"].items() if value["Type"] == kind}
    return {
        key: IntrinsicResolver(template).resolve(value.get("Properties", {}))
        for key, value in matching_resources.items()
    }


def map_function_roles(template: Template) -> dict[str, str]:
    """Return the logical id of each function's role, by the function."""
    resolver = IntrinsicResolver(template)
    ids = {resolver.get_arn(key): key for key in get_resources(template, "AWS::IAM::Role")}
    functions = get_resources(template, "AWS::Lambda::Function").values()
    return {properties["Handler"].split(".")[1]: ids[properties["Role"]] for properties in functions}


def map_function_role_arns(template: Template) -> dict[str, str]:
    """Return the ARN of each function's role, by the function."""
    resolver = IntrinsicResolver(template)
    return {function: resolver.get_arn(role) for function, role in map_function_roles(template).items()}


def map_service_roles(template: Template) -> dict[str, str]:
    """Return the logical id of the role of each service that works for the functions, by the service."""
    service_roles = {}
    for key, role in get_resources(template, "AWS::IAM::Role").items():
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        service = trust["Principal"]["Service"].partition(".")[0]
        if service not in ("lambda", "ec2"):
            service_roles[service] = key
    return service_roles


def iterate_statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each statement with the function whose role has it."""
    return _iterate_statements(template, map_function_roles(template))


def parse_function_policies(template: Template) -> dict[str, Policy]:
    """Return the parsed policy of each function's role."""
    return _parse_policies(template, map_function_roles(template))


def parse_service_policies(template: Template) -> dict[str, Policy]:
    """Return the parsed policies of the roles of services that call functions or move their aliases."""
    return _parse_policies(template, map_service_roles(template))


def _iterate_statements(template: Template, ids: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    resolver = IntrinsicResolver(template)
    owners = {resolver.resolve_ref(role): owner for owner, role in ids.items()}
    for policy in get_resources(template, "AWS::IAM::Policy").values():
        for name in policy["Roles"]:
            if name in owners:
                yield from ((owners[name], statement) for statement in policy["PolicyDocument"]["Statement"])


def _parse_policies(template: Template, ids: dict[str, str]) -> dict[str, Policy]:
    statements_by_owner: dict[str, list[PolicyStatement]] = {owner: [] for owner in ids}
    for owner, statement in _iterate_statements(template, ids):
        statements_by_owner[owner].append(parse_statement(statement))
    return {owner: tuple(owner_statements) for owner, owner_statements in statements_by_owner.items()}


def parse_resource_policies(template: Template) -> tuple[Policy, ...]:
    """Return the resource policies of queues and buckets."""
    return tuple(
        parse_policy(policy["PolicyDocument"])
        for kind in RESOURCE_POLICY_TYPES
        for policy in get_resources(template, kind).values()
    )


def parse_profile_policies(template: Template) -> dict[str, Policy]:
    """Return the inline policy of the role in each instance profile, by the profile's name.

    Managed policies are not read.
    """
    resolver = IntrinsicResolver(template)
    role_keys = {resolver.resolve_ref(key): key for key in get_resources(template, "AWS::IAM::Role")}
    profiles = get_resources(template, "AWS::IAM::InstanceProfile").items()
    roles = {resolver.resolve_ref(key): role_keys[profile["Roles"][0]] for key, profile in profiles}
    return _parse_policies(template, roles)


def map_profile_roles(template: Template) -> dict[str, str]:
    """Return the role's ARN of each instance profile, by the profile's name."""
    resolver = IntrinsicResolver(template)
    arns = {resolver.resolve_ref(key): resolver.get_arn(key) for key in get_resources(template, "AWS::IAM::Role")}
    instance_profiles = get_resources(template, "AWS::IAM::InstanceProfile").items()
    return {resolver.resolve_ref(key): arns[profile["Roles"][0]] for key, profile in instance_profiles}


def map_function_groups(template: Template) -> dict[str, frozenset[str]]:
    """Return the Kubernetes groups of each function, from the access entry of its role; no entry: no groups."""
    resolver = IntrinsicResolver(template)
    entries = get_resources(template, "AWS::EKS::AccessEntry").values()
    groups_by_arn = {entry["PrincipalArn"]: frozenset(entry.get("KubernetesGroups", ())) for entry in entries}
    roles = map_function_roles(template).items()
    return {function: groups_by_arn.get(resolver.get_arn(role), frozenset()) for function, role in roles}


def parse_rbac_features(template: Template) -> frozenset[str]:
    """Return the optional features whose rules the installer adds to the ClusterRole, by the functions' settings."""
    return frozenset().union(
        *(
            list_enabled_features(ChosenSettings.from_environment(properties["Environment"]["Variables"]))
            for properties in get_resources(template, "AWS::Lambda::Function").values()
        )
    )
