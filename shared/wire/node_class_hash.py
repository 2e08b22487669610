"""Hash of an EC2NodeClass: the part of its spec that determines how nodes are launched; a change of it is drift."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

_UNHASHED_FIELDS: Final = frozenset(
    (
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "capacityReservationSelectorTerms",
        "amiSelectorTerms",
        "ipPrefixCount",
        "amiFamily",
    )
)
_METADATA_DEFAULTS: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


def compute_static_digest(spec: Mapping[str, Any], family: str) -> str:
    """Return a digest of the part of *spec* that determines how nodes are launched.

    Selectors are left out, because the resources that they select are compared directly. The digest does not depend on
    the order of a list or map, or on whether an empty value is written or left out.
    """
    hashed_spec = {key: value for key, value in spec.items() if key not in _UNHASHED_FIELDS}
    hashed_spec["metadataOptions"] = _METADATA_DEFAULTS | (hashed_spec.get("metadataOptions") or {})
    text = msgspec.json.encode([family, _canonicalize_json(hashed_spec)], order="deterministic")
    return sha256(text).hexdigest()[:32]


def _canonicalize_json(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        parts = {key: _canonicalize_json(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part}
    if isinstance(value, list):
        return sorted(
            (_canonicalize_json(part) for part in value), key=lambda part: msgspec.json.encode(part, order="sorted")
        )
    return value
