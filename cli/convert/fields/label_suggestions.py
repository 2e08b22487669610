"""Well-known node labels, and the label that a misspelled key was probably meant to be."""

import re
from difflib import get_close_matches
from typing import Final

from shared.model.core.labels import ARCH, OS, WELL_KNOWN, ZONE

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
