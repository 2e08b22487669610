"""Labels that machines have, and what a key that is none of them probably was to be."""

import re
from difflib import get_close_matches
from typing import Final

from shared.model.labels import ARCH, OS, WELL_KNOWN, ZONE

_BY_NAME: Final = {key.partition("/")[2]: key for key in sorted(WELL_KNOWN)}
_SYNONYMS: Final = {
    "architecture": ARCH,
    "availability-zone": ZONE,
    "az": ZONE,
    "operating-system": OS,
    "instance-arch": ARCH,
}
_DOMAINS: Final = ("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SURE: Final = 0.88


def meant(key: str) -> str:
    """Answer the label that *key*, in a domain of Kubernetes or ours, is misspelt for; "" if it may be meant as it is.

    >>> meant("karpenter.sh/capacityType"), meant("karpenter.k8s.aws/instance-types")
    ('karpenter.sh/capacity-type', 'node.kubernetes.io/instance-type')
    >>> meant("example.com/zones"), meant("kubernetes.io/arch"), meant("node.kubernetes.io/role")
    ('', '', '')
    """
    domain, _, name = key.partition("/")
    if key in WELL_KNOWN or not any(domain == one or domain.endswith(f".{one}") for one in _DOMAINS):
        return ""
    plain = _HUMP.sub("-", name).lower().replace("_", "-")
    if plain in _SYNONYMS:
        return _SYNONYMS[plain]
    close = get_close_matches(plain, _BY_NAME, n=1, cutoff=_SURE)
    return _BY_NAME[close[0]] if close else ""
