"""The name and region of an EKS cluster, parsed from its kubeconfig entry."""

import re
from typing import Final

import msgspec

_EKS_ARN_PATTERN: Final = re.compile(r"^arn:aws[^:]*:eks:(?P<region>[^:]+):[0-9]*:cluster/(?P<name>.+)$")
"""The entry name that `aws eks update-kubeconfig` writes."""
_EKSCTL_PATTERN: Final = re.compile(r"^(?P<name>.+)\.(?P<region>[a-z0-9-]+)\.eksctl\.io$")
"""The entry name that eksctl writes."""


class EksName(msgspec.Struct, frozen=True, kw_only=True):
    """An EKS cluster and its region."""

    name: str
    region: str


def parse_eks_name(entry: str) -> EksName | None:
    """Parse the cluster's name in a kubeconfig; return None if it has another form.

    >>> parse_eks_name("arn:aws:eks:eu-west-1:123456789012:cluster/shop")
    EksName(name='shop', region='eu-west-1')
    >>> parse_eks_name("shop.us-east-1.eksctl.io")
    EksName(name='shop', region='us-east-1')
    >>> parse_eks_name("shop")
    """
    match = _EKS_ARN_PATTERN.match(entry) or _EKSCTL_PATTERN.match(entry)
    return None if match is None else EksName(name=match["name"], region=match["region"])
