"""What a template grants, resolved."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from sim.lambdas.intrinsics import Json, Resolver

Template: TypeAlias = dict[str, Any]


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    found = {key: value for key, value in template["Resources"].items() if value["Type"] == kind}
    return {key: Resolver(template).resolve(value.get("Properties", {})) for key, value in found.items()}


def function_of(role: str) -> str:
    return role.removeprefix("Functions").partition("Role")[0].lower()


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Answer each statement with the function whose role has it."""
    for key, policy in resources(template, "AWS::IAM::Policy").items():
        for statement in policy["PolicyDocument"]["Statement"]:
            yield function_of(key), statement


def several(value: Json) -> list[Json]:
    """IAM writes a list of one as its only element."""
    return value if isinstance(value, list) else [value]
