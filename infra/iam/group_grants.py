"""Permissions for the item of a group of clusters in the table that the clusters share."""

from typing import Final

from infra.iam.policy_statement import Grant
from infra.settings.settings import StackOptions

WRITING_FUNCTION: Final = "provision"
READING_FUNCTIONS: Final = frozenset({"disrupt", "interrupt", "provision"})
"""The functions that plan nodes."""


def build_group_grants(options: StackOptions, function: str) -> list[Grant]:
    """Return the permissions of *function* for the item of the group only; none without a group.

    All clusters can write the item: a condition on single entries is not possible. Items of other groups, queries and
    deletions are not allowed.
    """
    if not options.group or function not in READING_FUNCTIONS:
        return []
    return [
        Grant(
            sid="ShareGroupLimit",
            actions=("dynamodb:GetItem", *(("dynamodb:PutItem",) if function == WRITING_FUNCTION else ())),
            resources=(options.group_table,),
            conditions={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [f"group/{options.group}"]}},
        )
    ]
