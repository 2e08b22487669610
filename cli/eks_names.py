"""What a kubeconfig's entry says of the EKS cluster that it leads to."""

import re
from typing import Final

import msgspec

_AWS: Final = re.compile(r"^arn:aws[^:]*:eks:(?P<region>[^:]+):[0-9]*:cluster/(?P<name>.+)$")
"""What `aws eks update-kubeconfig` calls a cluster."""
_EKSCTL: Final = re.compile(r"^(?P<name>.+)\.(?P<region>[a-z0-9-]+)\.eksctl\.io$")
"""What eksctl calls it."""


class EksName(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and where it is."""

    name: str
    region: str


def eks_name(entry: str) -> EksName | None:
    """Answer what the cluster's name in a kubeconfig says; None if somebody called it otherwise.

    >>> eks_name("arn:aws:eks:eu-west-1:123456789012:cluster/shop")
    EksName(name='shop', region='eu-west-1')
    >>> eks_name("shop.us-east-1.eksctl.io")
    EksName(name='shop', region='us-east-1')
    >>> eks_name("shop")
    """
    found = _AWS.match(entry) or _EKSCTL.match(entry)
    return None if found is None else EksName(name=found["name"], region=found["region"])
