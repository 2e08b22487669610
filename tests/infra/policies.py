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


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Answer each statement with the function whose role has it."""
    resolver = Resolver(template)
    functions = {resolver.ref(role): function for function, role in roles(template).items()}
    for policy in resources(template, "AWS::IAM::Policy").values():
        for name in policy["Roles"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                yield functions[name], statement


def policies(template: Template) -> dict[str, Policy]:
    """Answer what each function's role says, parsed."""
    found: dict[str, list[Statement]] = {function: [] for function in roles(template)}
    for function, statement in statements(template):
        found[function].append(parse_statement(statement))
    return {function: tuple(some) for function, some in found.items()}


def resource_policies(template: Template) -> tuple[Policy, ...]:
    """Answer what queues and buckets say of who asks them."""
    kinds = ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy")
    return tuple(
        parse_policy(policy["PolicyDocument"]) for kind in kinds for policy in resources(template, kind).values()
    )


def several(value: Json) -> list[Json]:
    """IAM writes a list of one as its only element."""
    return value if isinstance(value, list) else [value]
