"""The permissions that a template grants, resolved."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from sim.iam.policy import Policy, PolicyStatement, parse_policy, parse_statement
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.lambda_runtime.stack_template.intrinsic_functions import Json

Template: TypeAlias = dict[str, Any]


def get_resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
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
    kinds = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy")
    return tuple(
        parse_policy(policy["PolicyDocument"]) for kind in kinds for policy in get_resources(template, kind).values()
    )


def as_list(value: Json) -> list[Json]:
    """Return *value* as a list: IAM writes a list of one item as that item."""
    return value if isinstance(value, list) else [value]
