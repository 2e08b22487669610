"""Which kinds Karpenter had in which API, and what to write for those that it never had."""

from difflib import get_close_matches
from typing import Final

_SERVED: Final = {
    "Provisioner": ("karpenter.sh/v1alpha5",),
    "AWSNodeTemplate": ("karpenter.k8s.aws/v1alpha1",),
    "NodePool": ("karpenter.sh/v1beta1", "karpenter.sh/v1"),
    "NodeClaim": ("karpenter.sh/v1beta1", "karpenter.sh/v1"),
    "EC2NodeClass": ("karpenter.k8s.aws/v1beta1", "karpenter.k8s.aws/v1"),
    "NodeOverlay": ("karpenter.sh/v1alpha1",),
}
_OLDER: Final = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")
_LIKE: Final = 0.7
_CLOSE: Final = 0.85
_FIELDS: Final = (
    "requirements for instanceTypes, zones, architectures and operatingSystems, providerRef or provider, and no cluster"
)


def is_karpenters(api: str) -> bool:
    """Whether *api* is one of Karpenter on AWS, of any age.

    >>> some = ("karpenter.sh/v1", "provisioning.karpenter.sh/v1alpha3", "karpenter.azure.com/v1")
    >>> [is_karpenters(api) for api in some]
    [True, True, False]
    """
    group = api.partition("/")[0]
    return group in ("karpenter.sh", "karpenter.k8s.aws") or group.endswith(".karpenter.sh")


def lookalike(api: str, kind: str) -> str:
    """Answer the API that *api* is misspelt for, as its *kind* shows; "" if both may be somebody else's.

    >>> lookalike("kapenter.sh/v1beta1", "NodePool"), lookalike("v1", "Provisioner"), lookalike("a.io/v1", "NodePool")
    ('karpenter.sh/v1beta1', 'karpenter.sh/v1alpha5', '')
    """
    group = api.rpartition("/")[0]
    apis = _SERVED.get(kind, ())
    groups = {one.partition("/")[0] for one in apis}
    if not apis or (group and group != "karpenter" and not get_close_matches(group, groups, n=1, cutoff=_CLOSE)):
        return ""
    return next((one for one in apis if one.partition("/")[2] == api.rpartition("/")[2]), apis[-1])


def refused(api: str, kind: str) -> tuple[str, str] | None:
    """Answer the field and the words for what is Karpenter's, or nearly, and neither old nor of today; None if not."""
    if is_karpenters(api):
        return "kind", served(api, kind)
    close = lookalike(api, kind)
    return ("apiVersion", f"no server has {api} with a {kind}: did you mean {close}?") if close else None


def served(api: str, kind: str) -> str:
    """Answer what to do about *kind*, which *api* has not.

    >>> served("karpenter.sh/v1beta1", "Provisioner")
    'karpenter.sh/v1beta1 has no Provisioner: write apiVersion: karpenter.sh/v1alpha5'
    """
    version = api.partition("/")[2]
    if kind == "Machine":
        return "a Machine stands for one running instance: remove it; nodes that are there are adopted, or expire"
    if kind == "Provisioner" and version in _OLDER:
        return f"{version} is older than what is converted: write it as karpenter.sh/v1alpha5, with {_FIELDS}"
    if kind in _SERVED:
        some = " or ".join(f"apiVersion: {one}" for one in _SERVED[kind])
        more = ", or its fields as those of a Provisioner" if version == "v1alpha5" and kind == "NodePool" else ""
        return f"{api} has no {kind}: write {some}{more}"
    lower = {one.lower(): one for one in _SERVED}
    close = get_close_matches(kind.lower(), lower, n=1, cutoff=_LIKE)
    if close:
        return f"{api} has no {kind}: did you mean {lower[close[0]]}?"
    return f"{api} has no {kind}, or has it no more: remove it"
