"""Names, labels and annotations: what a server wrote goes, what an older Karpenter read is spelled as today."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.parts import Part, remedy
from cli.conversion.remarks import Path, Remarks
from shared.model.labels import DO_NOT_DISRUPT

Object = dict[str, Any]
RENAMED: Final = {
    "karpenter.sh/provisioner-name": "karpenter.sh/nodepool",
    "node.k8s.aws/capacity-type": "karpenter.sh/capacity-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels, by the names that they had."""
ANNOTATIONS: Final = {
    "karpenter.sh/do-not-evict": "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-consolidate": "karpenter.sh/do-not-disrupt",
}
_STALE: Final = (
    "compatibility.karpenter.k8s.aws/kubelet-drift-hash",
    "compatibility.karpenter.sh/v1beta1-kubelet-conversion",
    "compatibility.karpenter.sh/v1beta1-nodeclass-reference",
    "karpenter.sh/stored-version-migrated",
    "karpenter.sh/emptiness-timestamp",
    "karpenter.sh/linked",
    "karpenter.sh/managed-by",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.sh/provisioner-hash",
    "karpenter.sh/voluntary-disruption",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    "karpenter.k8s.aws/nodetemplate-hash",
    "kubectl.kubernetes.io/last-applied-configuration",
)
"""Annotations that controllers and kubectl write for themselves."""
_SERVERS: Final = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
_LIKE: Final = 0.75
_NO_WORD: Final = re.compile(r"[^a-z]")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST: Final = 63
"""Letters of a name that is the value of a label, too."""
_NO_LETTER: Final = re.compile(r"[^a-z0-9.]+")


def metadata(root: Part) -> Object:
    """Answer the metadata of a cluster-scoped object without what the API server wrote."""
    old = root.part("metadata", "name")
    if old is None or not (name := old.text("name") or old.text("generateName")):
        if old is not None or not root.holds("metadata"):
            root.remarks.refuse(("metadata", "name"), "is missing: name it")
        return {}
    new: Object = {"name" if old.has("name") else "generateName": name}
    if old.has("name"):
        check_name(name, old.at("name"), root.remarks)
    if old.has("namespace"):
        root.remarks.changed(old.at("namespace"), "left out: the kind belongs to the cluster, not to a namespace")
    labels, notes = old.table("labels"), annotations(old)
    if labels:
        new["labels"] = labels
    if notes:
        new["annotations"] = notes
    for key in (*_SERVERS, "generateName"):
        old.raw(key)
    old.end()
    return new


def check_name(name: str, path: Path, remarks: Remarks) -> None:
    """Refuse what no API server takes for a name."""
    if len(name) > _LONGEST:
        remarks.refuse(path, f"{name} has {len(name)} letters: write {_LONGEST} at most")
    elif _NAME.fullmatch(name) is None:
        hint = f"write small letters, digits and hyphens: {_NO_LETTER.sub('-', name.lower()).strip('-.')}"
        remarks.refuse(path, f"{name} is no name: {remedy(name, hint)}")


def annotations(owner: Part) -> dict[str, str]:
    """Answer the annotations of *owner*, spelled as they are now."""
    new: dict[str, str] = {}
    for key, value in owner.table("annotations").items():
        path = owner.at("annotations", key)
        if key in _STALE:
            owner.remarks.changed(path, "left out: a controller, or kubectl, wrote it for itself")
            continue
        new[renamed_annotation(key, path, owner.remarks)] = value
    return new


def renamed_annotation(key: str, path: Path, remarks: Remarks) -> str:
    """Answer how *key* is spelled now; a misspelt one is told."""
    now = ANNOTATIONS.get(key)
    if now is not None:
        more = ": it keeps a node from all disruption by choice, not from consolidation alone" * ("consol" in key)
        remarks.changed(path, f"is called {now} now{more}")
        return now
    if close := _misspelt(key):
        remarks.warn(path, f"nobody reads it: did you mean {close}?")
    return key


def _misspelt(key: str) -> str:
    """Answer the annotation that *key* is misspelt for; "" for none."""
    domain, slash, name = key.rpartition("/")
    known = {_NO_WORD.sub("", one.rpartition("/")[2]): one for one in (*ANNOTATIONS, DO_NOT_DISRUPT)}
    if key in known.values() or (slash and "arpenter" not in domain):
        return ""
    close = get_close_matches(_NO_WORD.sub("", name.lower()), known, n=1, cutoff=_LIKE)
    return known[close[0]] if close else ""


def renamed_label(key: str, path: Path, remarks: Remarks) -> str:
    """Answer how the label *key* is spelled now."""
    now = RENAMED.get(key)
    if now is None:
        return key
    remarks.changed(path, f"the label {key} is called {now} now")
    return now
