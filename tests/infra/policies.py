"""Shapes of policy documents."""

from sim.lambda_runtime.stack_template.intrinsic_functions import Json


def as_list(value: Json) -> list[Json]:
    """Return *value* as a list: IAM writes a list of one item as that item."""
    return value if isinstance(value, list) else [value]
