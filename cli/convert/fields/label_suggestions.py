"""Well-known node labels and their values, and what a misspelled key or value was probably meant to be."""

import re
from difflib import get_close_matches
from typing import Final

from shared.model.core.labels import ARCH, CAPACITY_TYPE, OS, WELL_KNOWN, ZONE

VALUES_BY_LABEL: Final = {
    ARCH: ("amd64", "arm64"),
    CAPACITY_TYPE: ("on-demand", "reserved", "spot"),
    OS: ("linux", "windows"),
}
"""All values of the labels that have few."""
_VALUE_BY_SYNONYM: Final = {
    "x86": "amd64",
    "x86-64": "amd64",
    "x64": "amd64",
    "intel": "amd64",
    "aarch64": "arm64",
    "graviton": "arm64",
    "ondemand": "on-demand",
}

_KEY_BY_NAME: Final = {key.partition("/")[2]: key for key in sorted(WELL_KNOWN)}
_SYNONYMS: Final = {
    "architecture": ARCH,
    "availability-zone": ZONE,
    "az": ZONE,
    "operating-system": OS,
    "instance-arch": ARCH,
}
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh")
_CAMEL_CASE_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MIN_SIMILARITY_RATIO: Final = 0.88


def suggest_label(key: str) -> str:
    """Return the label that *key*, in a domain of Kubernetes or Karpenter, is a misspelling of; else "".

    >>> suggest_label("karpenter.sh/capacityType"), suggest_label("karpenter.k8s.aws/instance-types")
    ('karpenter.sh/capacity-type', 'node.kubernetes.io/instance-type')
    >>> [suggest_label(key) for key in ("example.com/zones", "kubernetes.io/arch", "node.kubernetes.io/role")]
    ['', '', '']
    """
    domain, _, name = key.partition("/")
    if key in WELL_KNOWN or not any(
        domain == reserved_domain or domain.endswith(f".{reserved_domain}") for reserved_domain in _RESERVED_DOMAINS
    ):
        return ""
    normalized_name = _CAMEL_CASE_HUMP.sub("-", name).lower().replace("_", "-")
    if normalized_name in _SYNONYMS:
        return _SYNONYMS[normalized_name]
    close = get_close_matches(normalized_name, _KEY_BY_NAME, n=1, cutoff=_MIN_SIMILARITY_RATIO)
    return _KEY_BY_NAME[close[0]] if close else ""


def suggest_label_value(key: str, value: str) -> str:
    """Return the value of the label *key* that was probably meant by *value*; "" if no value is similar.

    >>> suggest_label_value("kubernetes.io/arch", "x86_64"), suggest_label_value("karpenter.sh/capacity-type", "Spot")
    ('amd64', 'spot')
    """
    normalized = value.strip().lower().replace("_", "-").replace(" ", "-")
    close = [_VALUE_BY_SYNONYM.get(normalized, ""), *get_close_matches(normalized, VALUES_BY_LABEL[key], n=1)]
    return next((candidate for candidate in close if candidate in VALUES_BY_LABEL[key]), "")
