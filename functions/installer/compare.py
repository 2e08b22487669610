"""How a manifest and what is live differ: what has to be patched, and what is said of somebody else's definition."""

from collections.abc import Mapping
from typing import Any

from functions.installer.manifests import Manifest, name_of
from shared.kube.compatibility import lacking

Json = Any
"""Whatever a document may hold."""


def is_within(wanted: Json, live: Json) -> bool:
    """Whether *live* says all that is *wanted*; what the server adds to it does not matter, lists are as long.

    >>> is_within({"a": [{"b": 1}]}, {"a": [{"b": 1, "default": 2}], "c": 3}), is_within({"a": [1]}, {"a": [1, 2]})
    (True, False)
    """
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(key in live and is_within(wanted[key], live[key]) for key in wanted)
    if isinstance(wanted, list):
        pairs = zip(wanted, live, strict=False) if isinstance(live, list) else ()
        return isinstance(live, list) and len(live) == len(wanted) and all(is_within(*pair) for pair in pairs)
    return bool(wanted == live)


def merge_patch(live: Manifest, wanted: Manifest) -> dict[str, Json]:
    """Answer the merge patch (RFC 7386) that makes *live* say what is *wanted*, and no more than that in its content.

    Of the metadata only what is wanted is touched: labels of others stay.
    """
    content = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    changed = {key: _difference(live.get(key), value) for key, value in content.items()}
    return {**changed, "metadata": {key: wanted["metadata"][key] for key in ("labels", "annotations")}}


def _difference(live: Json, wanted: Json) -> Json:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    gone: dict[str, Json] = {key: None for key in live if key not in wanted}
    return gone | {key: _difference(live.get(key), value) for key, value in wanted.items()}


def described(wanted: Manifest, live: Manifest) -> str:
    """Say of somebody else's definition *live* that it is used as it is, and what it lacks."""
    missing = lacking(wanted, live)
    said = f"{name_of(wanted)} is somebody else's and left alone"
    return f"{said}; it does not know {', '.join(missing)}" if missing else said
