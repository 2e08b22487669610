"""Permissions for the lists that functions store for each other, with the setting `shared-cache: on`."""

from infra.iam.policy_statement import Grant
from infra.storage import LIST_PREFIX


def build_shared_cache_grants(bucket_arn: str) -> list[Grant]:
    """Return the permissions with which a function stores and loads lists."""
    return [
        Grant(
            sid="ShareLists",
            actions=("s3:GetObject", "s3:PutObject"),
            resources=(f"{bucket_arn}/{LIST_PREFIX}*",),
            wildcard_reason="object keys in one bucket",
        )
    ]
