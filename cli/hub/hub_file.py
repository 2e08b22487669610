"""The hub file: the clusters that `joiner hub` shows, and where each stores its journal and its costs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.inputs.files import read_utf8
from cli.inputs.yaml_reader import read_marked_documents
from cli.terminal.errors import InputError
from shared.settings_text import ExternalId, RoleArn

MAX_CLUSTERS: Final = 500
_EXPECTED: Final = "a hub file (docs/guide/hub.md)"
_FIELDS: Final = ("name", "bucket", "folder", "region", "role", "external-id", "context")
_BUCKET_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION_PATTERN: Final = re.compile(r"[a-z]+(-[a-z]+)+-\d+")


class HubCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of the hub file."""

    name: str
    bucket: str = ""
    """Its bucket; "" if *folder* is given."""
    folder: str = ""
    """A copy of its bucket."""
    region: str = ""
    """The region of the bucket."""
    role: str = ""
    """ARN of the IAM role that may read the bucket; "": the caller's credentials."""
    external_id: str = ""
    context: str = ""
    """The kubeconfig context of the cluster, for the commands that are suggested; no command connects to it."""


def read_hub_file(file: str) -> tuple[HubCluster, ...]:
    """Return the clusters of the hub *file*; relative folders are relative to it.

    Raises:
        InputError: The file cannot be read, or has errors; the message has one line for each.
    """
    errors: list[str] = []
    text = read_utf8(file, Path(file), _EXPECTED).decode()
    documents = list(
        read_marked_documents(text, lambda line, reason: errors.append(f"{file}:{line}: not YAML: {reason}"))
    )
    if not errors and len(documents) != 1:
        errors.append(f"{file}: {len(documents)} documents: write one document with `clusters:`")
    if errors:
        raise InputError("\n".join(errors))
    return _parse_clusters(file, documents[0].value)


def _parse_clusters(file: str, document: Any) -> tuple[HubCluster, ...]:  # noqa: ANN401 - YAML
    items = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(items, list) or not items:
        raise InputError(f"{file}: clusters: missing or empty: write a list of clusters, each with name and bucket")
    errors = [f"{file}: {key}: unknown field: remove it" for key in document if key != "clusters"]
    if len(items) > MAX_CLUSTERS:
        errors.append(f"{file}: clusters: {len(items):,} clusters: use several files with at most {MAX_CLUSTERS}")
    names: set[str] = set()
    for number, item in enumerate(items, 1):
        errors += (f"{file}: {error}" for error in _find_errors(item, number, names))
    if errors:
        raise InputError("\n".join(errors))
    return tuple(_build_cluster(item, Path(file).parent) for item in items)


def _build_cluster(item: Mapping[str, str], parent: Path) -> HubCluster:
    folder = item.get("folder", "")
    return HubCluster(
        name=item["name"],
        bucket=item.get("bucket", ""),
        folder=str(parent / folder) if folder else "",
        region=item.get("region", ""),
        role=item.get("role", ""),
        external_id=item.get("external-id", ""),
        context=item.get("context", ""),
    )


def _find_errors(item: Any, number: int, names: set[str]) -> Iterator[str]:  # noqa: ANN401 - YAML
    """Yield the errors of one cluster, each with its name; *names* are those of the clusters before it."""
    if not isinstance(item, dict):
        yield f"cluster {number}: not a mapping: write name: and bucket:"
        return
    name = item.get("name")
    title = f"cluster {name if isinstance(name, str) and name else number}"
    if not name:
        yield f"{title}: name: missing: write a name that is unique in the file"
    elif name in names:
        yield f"{title}: name: used twice: write a unique name"
    for key, value in item.items():
        if key not in _FIELDS:
            yield f"{title}: {key}: unknown field: use {', '.join(_FIELDS)}"
        elif not isinstance(value, str):
            yield f"{title}: {key}: {value!r} is not text: write it in quotes"
    fields = {key: value for key, value in item.items() if key in _FIELDS and isinstance(value, str)}
    names.add(fields.get("name", ""))
    yield from (f"{title}: {error}" for error in _find_source_errors(fields))


def _find_source_errors(fields: Mapping[str, str]) -> Iterator[str]:
    bucket, folder, region = (fields.get(key, "") for key in ("bucket", "folder", "region"))
    if bool(bucket) == bool(folder):
        problem = "both are set" if bucket else "both are missing"
        yield f"bucket, folder: {problem}: write the bucket of the cluster, or a folder with a copy of it"
    if folder:
        yield from (
            f"{key}: not used with folder: remove it" for key in ("region", "role", "external-id") if key in fields
        )
        return
    if bucket and not _BUCKET_PATTERN.fullmatch(bucket):
        yield f"bucket: {bucket!r} is not a bucket name: write it without s3:// and without a path"
    if bucket and not _REGION_PATTERN.fullmatch(region):
        yield f"region: {region!r} is not a region: write the region of the bucket, as in us-east-1"
    role, external_id = fields.get("role", ""), fields.get("external-id", "")
    if not _is_valid(role, RoleArn):
        yield f"role: {role!r} is not the ARN of a role: write it as in arn:aws:iam::123456789012:role/joiner-hub"
    if not _is_valid(external_id, ExternalId):
        yield f"external-id: {external_id!r} is not an external ID: write 2 to 1,224 letters, digits or _+=,.@:/-"
    if external_id and not role:
        yield "external-id: set without role: add the role that requires it, or remove external-id"


def _is_valid(text: str, type_: Any) -> bool:  # noqa: ANN401 - an annotated type
    try:
        msgspec.convert(text, type_)
    except msgspec.ValidationError:
        return False
    return True
