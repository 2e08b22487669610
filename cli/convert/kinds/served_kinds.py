"""The kinds of each Karpenter API version, and fixes for kinds that no version had."""

from difflib import get_close_matches
from typing import Final

_API_VERSIONS_BY_KIND: Final = {
    "Provisioner": ("karpenter.sh/v1alpha5",),
    "AWSNodeTemplate": ("karpenter.k8s.aws/v1alpha1",),
    "NodePool": ("karpenter.sh/v1beta1", "karpenter.sh/v1"),
    "NodeClaim": ("karpenter.sh/v1beta1", "karpenter.sh/v1"),
    "EC2NodeClass": ("karpenter.k8s.aws/v1beta1", "karpenter.k8s.aws/v1"),
    "NodeOverlay": ("karpenter.sh/v1alpha1",),
}
_UNSUPPORTED_VERSIONS: Final = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")
_MIN_KIND_SIMILARITY_RATIO: Final = 0.7
_MIN_GROUP_SIMILARITY_RATIO: Final = 0.85
_CONVERSION_HINT: Final = (
    "requirements for instanceTypes, zones, architectures and operatingSystems, providerRef or provider, and no cluster"
)


def is_karpenter_api(api: str) -> bool:
    """Return whether *api* is an API version of Karpenter on AWS, of any age.

    >>> api_versions = ("karpenter.sh/v1", "provisioning.karpenter.sh/v1alpha3", "karpenter.azure.com/v1")
    >>> [is_karpenter_api(api) for api in api_versions]
    [True, True, False]
    """
    group = api.partition("/")[0]
    return group in ("karpenter.sh", "karpenter.k8s.aws") or group.endswith(".karpenter.sh")


def suggest_api_version(api: str, kind: str) -> str:
    """Return the API version that *api* is a misspelling of, judged by *kind*; "" if another project may own both.

    >>> suggest_api_version("kapenter.sh/v1beta1", "NodePool"), suggest_api_version("v1", "Provisioner")
    ('karpenter.sh/v1beta1', 'karpenter.sh/v1alpha5')
    >>> suggest_api_version("a.io/v1", "NodePool")
    ''
    """
    group = api.rpartition("/")[0]
    known_apis = _API_VERSIONS_BY_KIND.get(kind, ())
    groups = {known_api.partition("/")[0] for known_api in known_apis}
    if not known_apis or (
        group and group != "karpenter" and not get_close_matches(group, groups, n=1, cutoff=_MIN_GROUP_SIMILARITY_RATIO)
    ):
        return ""
    return next(
        (known_api for known_api in known_apis if known_api.partition("/")[2] == api.rpartition("/")[2]), known_apis[-1]
    )


def find_kind_problem(api: str, kind: str) -> tuple[str, str] | None:
    """Return the field and the message for a Karpenter kind that no old or current API has; None for other kinds."""
    if is_karpenter_api(api):
        return "kind", describe_unknown_kind(api, kind)
    suggestion = suggest_api_version(api, kind)
    return ("apiVersion", f"unknown kind {kind} in {api}: did you mean {suggestion}?") if suggestion else None


def describe_unknown_kind(api: str, kind: str) -> str:
    """Return what to do about *kind*, which *api* does not have.

    >>> describe_unknown_kind("karpenter.sh/v1beta1", "Provisioner")
    'karpenter.sh/v1beta1 has no Provisioner: write apiVersion: karpenter.sh/v1alpha5'
    """
    version = api.partition("/")[2]
    if kind == "Machine":
        return "a Machine is one running instance: remove it; existing nodes are adopted or expire"
    if kind == "Provisioner" and version in _UNSUPPORTED_VERSIONS:
        return f"{version} is too old to convert: write it as karpenter.sh/v1alpha5, with {_CONVERSION_HINT}"
    if kind in _API_VERSIONS_BY_KIND:
        alternatives = " or ".join(f"apiVersion: {api_version}" for api_version in _API_VERSIONS_BY_KIND[kind])
        addition = ", or its fields as those of a Provisioner" if version == "v1alpha5" and kind == "NodePool" else ""
        return f"{api} has no {kind}: write {alternatives}{addition}"
    kind_by_lowercase = {known_kind.lower(): known_kind for known_kind in _API_VERSIONS_BY_KIND}
    close = get_close_matches(kind.lower(), kind_by_lowercase, n=1, cutoff=_MIN_KIND_SIMILARITY_RATIO)
    if close:
        return f"{api} has no {kind}: did you mean {kind_by_lowercase[close[0]]}?"
    return f"{api} has no {kind}any longer: remove it"
