"""What people write -> the objects that are planned with, what is wrong with the others, and what is not looked at."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from cli.files import Tell
from cli.inputs import Document
from cli.text import count
from cli.workloads import KINDS, Existing, Object, Unusable, is_workload, made_by
from shared.model.selectors import LabelSelector
from shared.snapshot.flat import Source
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.optional import OPTIONAL
from shared.snapshot.pages import nameless

_USED: Final = frozenset(listing.kind for listing in LISTINGS) | {kind for _, kind in KINDS}
_FEATURES: Final = frozenset(listing.kind for listing in OPTIONAL)
_READ: Final = {listing.kind: listing.api for listing in (*LISTINGS, *OPTIONAL)} | {kind: api for api, kind in KINDS}
_NAMESPACED: Final = frozenset(("Pod", "DaemonSet", "PersistentVolumeClaim", "PodDisruptionBudget"))
_OLDER: Final = frozenset(("Provisioner", "AWSNodeTemplate", "Machine", "NodePool", "NodeClaim", "EC2NodeClass"))
_FINISHED: Final = ("Succeeded", "Failed")
_GROUPS: Final = frozenset(api.partition("/")[0] for api in _READ.values())
_NAMELESS: Final = nameless()
_SIMILAR: Final = 0.9


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    objects: tuple[Source, ...]
    """To plan with, in the order in which they were found; those that workloads make at the end."""
    places: Mapping[tuple[str, str], str]
    """Where each is written, by kind and name (``shop/cart``)."""
    notes: tuple[str, ...] = ()
    """What a reader should know and need not correct."""


def manifests(
    found: Iterable[Document],
    tell: Tell,
    running: Mapping[str, list[Mapping[str, str]]],
    *,
    are_features_on: bool = False,
) -> Manifests:
    """Sort the objects in *found*; what is wrong with one of them is told.

    *running*: labels of the pods that are in the cluster already, by namespace. Some kinds count only for features.
    """
    unused: Counter[str] = Counter()
    kept: dict[tuple[str, str, str], Document] = {}
    for number, one in enumerate(found):
        if _is_read(one, tell, unused):
            _keep(_named(one, number), number, kept, tell)
    made, notes = _made(kept, _existing((one.value for one in kept.values()), running), tell)
    for kind in _FEATURES if are_features_on else ():
        del unused[kind]
    unused = +unused
    if unused:
        kinds = ", ".join(count(number, kind) for kind, number in sorted(unused.items()))
        notes.append(f"not looked at, as nothing depends on it: {kinds}")
    return Manifests(
        objects=(*(one.source for one in kept.values()), *made),
        places={(str(one.value["kind"]), _told_as(one.value)): one.where for one in kept.values()},
        notes=tuple(notes),
    )


def _is_read(one: Document, tell: Tell, unused: Counter[str]) -> bool:
    """Whether *one* is of a kind that is looked at; if it seems to be meant as one, that is told."""
    api, kind = (one.value.get(key) for key in ("apiVersion", "kind"))
    if "instanceTypes" in one.value:
        tell(f"{one.where}: is a catalogue: name it with --instance-types instead of -f")
        return False
    if not isinstance(kind, str) or not kind:
        tell(f"{one.where}: kind: is missing: write what it is, `kind: Pod` for example")
        return False
    if _READ.get(kind) == api or (kind in _OLDER and "karpenter" in str(api)):
        unused[kind] += kind not in _USED and kind not in _OLDER
        return True
    likely = "" if _is_foreign(str(api or "")) else _likely(kind)
    if not likely:
        unused[kind] += 1
        return False
    name = _name(one.value)
    if likely != kind:
        tell(f"{one.where}: {kind} {name}: kind: there is no {kind}: write {likely}, if that is meant")
    elif api:
        tell(f"{one.where}: {kind} {name}: apiVersion: {api}: {kind} is read as {_READ[kind]}: convert it")
    else:
        tell(f"{one.where}: {kind} {name}: apiVersion: is missing: write `apiVersion: {_READ[kind]}`")
    return False


def _is_foreign(api: str) -> bool:
    """Whether somebody else's extension of the API defines *api*."""
    group = api.partition("/")[0]
    return "." in group and group not in _GROUPS


def _likely(kind: str) -> str:
    """Answer which of the kinds that are read is meant, "" if it is none of them."""
    if kind in _READ:
        return kind
    folded = {one.lower(): one for one in _READ}
    close = get_close_matches(kind.lower(), sorted(folded), n=1, cutoff=_SIMILAR)
    return folded[close[0]] if close else ""


def _named(one: Document, number: int) -> Document:
    """Answer *one* with the name that an API server would make for it."""
    meta = one.value.get("metadata")
    if not isinstance(meta, dict) or meta.get("name") or not isinstance(meta.get("generateName"), str):
        return one
    return Document(where=one.where, value=one.value | {"metadata": meta | {"name": f"{meta['generateName']}{number}"}})


def _keep(one: Document, number: int, kept: dict[tuple[str, str, str], Document], tell: Tell) -> None:
    """Put *one* in; of two with one name the last counts, which is told if they are not the same."""
    kind, name = str(one.value["kind"]), _name(one.value)
    key = (str(one.value.get("apiVersion")), kind, f"{name} {number}" if name == _NAMELESS else name)
    before = kept.pop(key, None)
    kept[key] = one
    if before is None or before.says_the_same(one) or _is_later_look(before.value, one.value):
        return
    tell(
        f"{one.where}: {kind} {name}: metadata.name: another one at {before.where} has the same name and says "
        "something else: this one counts: rename or remove one of them"
    )


def _is_later_look(before: Object, after: Object) -> bool:
    """Whether both are one object that lives, seen twice."""
    uids = [one["metadata"].get("uid") for one in (before, after) if isinstance(one.get("metadata"), dict)]
    return len(set(uids)) == 1 and bool(uids[0])


def _name(one: Mapping[str, Any]) -> str:
    meta = one.get("metadata")
    name, namespace = (meta.get(key) if isinstance(meta, dict) else None for key in ("name", "namespace"))
    if not isinstance(name, str) or not name:
        return _NAMELESS
    spoken = one.get("kind") in _NAMESPACED or (one.get("apiVersion"), one.get("kind")) in KINDS
    return f"{namespace or 'default'}/{name}" if spoken else name


def _told_as(one: Mapping[str, Any]) -> str:
    """Answer how a problem names *one*."""
    name, meta = _name(one), one.get("metadata")
    if name == _NAMELESS and one.get("kind") in _NAMESPACED and isinstance(meta, dict):
        return nameless(str(meta.get("namespace") or "default"))
    return name


def _made(kept: dict[tuple[str, str, str], Document], existing: Existing, tell: Tell) -> tuple[list[Object], list[str]]:
    """Answer the pods of the workloads that were *kept*, and a note; those of which none can be made are dropped."""
    made: list[Object] = []
    pods: dict[str, int] = {}
    for key, one in list(kept.items()):
        if not is_workload(one.value):
            continue
        title = f"{one.value['kind']} {_name(one.value)}"
        if title.endswith(_NAMELESS):
            tell(f"{one.where}: {title}: metadata.name: is missing: name it")
            del kept[key]
            continue
        try:
            some = made_by(one.value, existing)
        except Unusable as error:
            tell(f"{one.where}: {title}: {error}")
            del kept[key]
            continue
        made += some
        pods[title] = sum(other["kind"] == "Pod" for other in some)
    said = [f"{title} ({number})" for title, number in pods.items() if number]
    total = sum(pods.values())
    return made, [f"{count(total, 'pod')} made from templates: {', '.join(said)}"] if said else []


def _existing(objects: Iterable[Object], running: Mapping[str, list[Mapping[str, str]]]) -> Existing:
    """Answer who counts pods, in *objects* and among those that run."""
    known: dict[str, list[Mapping[str, str]]] = {namespace: list(some) for namespace, some in running.items()}
    for namespace, labels in _pods(objects):
        known.setdefault(namespace, []).append(labels)

    def counted(namespace: str, wanted: LabelSelector) -> int:
        return sum(wanted.matches(labels) for labels in known.get(namespace, ()))

    return counted


def _pods(objects: Iterable[Object]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for one in objects:
        meta, status = one.get("metadata"), one.get("status")
        if one["kind"] != "Pod" or not isinstance(meta, dict) or meta.get("deletionTimestamp"):
            continue
        if isinstance(status, dict) and status.get("phase") in _FINISHED:
            continue
        labels = meta.get("labels")
        yield str(meta.get("namespace") or "default"), labels if isinstance(labels, dict) else {}
