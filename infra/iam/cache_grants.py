"""Permissions for the lists that functions store for each other, with the setting `shared-cache: on`."""

from typing import Final

from infra.iam.policy_statement import Grant
from infra.settings.settings import StackOptions
from infra.storage import LIST_PREFIX

DECIDING_FUNCTIONS: Final = frozenset({"catalog", "disrupt", "interrupt", "lifecycle", "provision"})
"""The functions that store the snapshots of their decisions, and read lists of the cluster."""


def build_cache_grants(bucket_arn: str, options: StackOptions, function: str) -> list[Grant]:
    """Return the permissions with which *function* stores and loads lists: none if the setting is off."""
    if options.shared_cache == "off" or function not in DECIDING_FUNCTIONS:
        return []
    return [
        Grant(
            sid="ShareLists",
            actions=("s3:GetObject", "s3:PutObject"),
            resources=(f"{bucket_arn}/{LIST_PREFIX}*",),
            wildcard_reason="object keys in one bucket",
        )
    ]
