"""What a template grants, resolved."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from sim.iam.policy import Policy, Statement, parse_policy, parse_statement
from sim.lambdas.intrinsics import Json, Resolver

Template: TypeAlias = dict[str, Any]


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    found = {key: value for key, value in template["Resources"].items() if value["Type"] == kind}
    return {key: Resolver(template).resolve(value.get("Properties", {})) for key, value in found.items()}


def roles(template: Template) -> dict[str, str]:
    """Answer the logical id of each function's role, by the function."""
    resolver = Resolver(template)
    ids = {resolver.arn(key): key for key in resources(template, "AWS::IAM::Role")}
    functions = resources(template, "AWS::Lambda::Function").values()
    return {properties["Handler"].split(".")[1]: ids[properties["Role"]] for properties in functions}


def services(template: Template) -> dict[str, str]:
    """Answer the logical id of the role that each service has which works for the functions, by the service."""
    found = {}
    for key, role in resources(template, "AWS::IAM::Role").items():
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        service = trust["Principal"]["Service"].partition(".")[0]
        if service not in ("lambda", "ec2"):
            found[service] = key
    return found


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Answer each statement with the function whose role has it."""
    return _statements(template, roles(template))


def policies(template: Template) -> dict[str, Policy]:
    """Answer what each function's role says, parsed."""
    return _parsed(template, roles(template))


def service_policies(template: Template) -> dict[str, Policy]:
    """Answer the same for the roles of services that call functions, or move their aliases."""
    return _parsed(template, services(template))


def _statements(template: Template, ids: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    resolver = Resolver(template)
    owners = {resolver.ref(role): owner for owner, role in ids.items()}
    for policy in resources(template, "AWS::IAM::Policy").values():
        for name in policy["Roles"]:
            if name in owners:
                yield from ((owners[name], statement) for statement in policy["PolicyDocument"]["Statement"])


def _parsed(template: Template, ids: dict[str, str]) -> dict[str, Policy]:
    found: dict[str, list[Statement]] = {owner: [] for owner in ids}
    for owner, statement in _statements(template, ids):
        found[owner].append(parse_statement(statement))
    return {owner: tuple(some) for owner, some in found.items()}


def resource_policies(template: Template) -> tuple[Policy, ...]:
    """Answer what queues and buckets say of who asks them."""
    kinds = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy")
    return tuple(
        parse_policy(policy["PolicyDocument"]) for kind in kinds for policy in resources(template, kind).values()
    )


def several(value: Json) -> list[Json]:
    """IAM writes a list of one as its only element."""
    return value if isinstance(value, list) else [value]
