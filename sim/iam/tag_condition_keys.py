"""Condition keys of IAM for the tags of requests and resources."""

from collections.abc import Iterable

from shared.model.ec2.types import Tags


def build_request_tag_keys(tags: Tags) -> dict[str, str | Iterable[str]]:
    """Return the condition keys of tags that the request writes."""
    return {f"aws:RequestTag/{key}": value for key, value in tags} | {"aws:TagKeys": tuple(key for key, _ in tags)}


def build_resource_tag_keys(tags: Tags) -> dict[str, str | Iterable[str]]:
    """Return the condition keys of tags that the resource has."""
    return {f"{name}:ResourceTag/{key}": value for name in ("aws", "ec2") for key, value in tags}
