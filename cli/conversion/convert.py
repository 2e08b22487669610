"""Objects of any age -> objects of v1, knobs of the stack, and a line of why for each change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cli.conversion import classes, controller, pools, settings, workloads
from cli.conversion.accepted import is_ours
from cli.conversion.classes import Defaults
from cli.conversion.judged import refuse_unaccepted
from cli.conversion.kinds import is_karpenters, refused
from cli.conversion.kubelet_homes import Homed, homes
from cli.conversion.metadata import check_name
from cli.conversion.nowadays import mended, other_class
from cli.conversion.parts import Part
from cli.conversion.pools import Pool
from cli.conversion.remarks import Level, Remark, Remarks, spelled
from cli.conversion.remedies import value_at
from cli.conversion.sources import Written

Object = dict[str, Any]
ALPHA: Final = "karpenter.sh/v1alpha5"
OLDER_ALPHA: Final = "karpenter.sh/v1alpha4"
"""The same fields, fewer of them."""
BETA: Final = "karpenter.sh/v1beta1"
TEMPLATES: Final = "karpenter.k8s.aws/v1alpha1"
BETA_CLASSES: Final = "karpenter.k8s.aws/v1beta1"
_POOLS: Final[Mapping[tuple[str, str], Callable[[Part, Defaults], Pool]]] = {
    (ALPHA, "Provisioner"): pools.from_provisioner,
    (OLDER_ALPHA, "Provisioner"): pools.from_provisioner,
    (BETA, "NodePool"): lambda root, _: pools.from_beta(root),
    (BETA, "NodeClaim"): lambda root, _: pools.from_beta_claim(root),
}
_CLASSES: Final[Mapping[tuple[str, str], Callable[[Part, Defaults], Object]]] = {
    (TEMPLATES, "AWSNodeTemplate"): classes.from_template,
    (BETA_CLASSES, "EC2NodeClass"): lambda root, _: classes.from_beta(root),
}
CONVERTED: Final = frozenset((*_POOLS, *_CLASSES))
"""API and kind of what has another form now."""
_CLASS_KINDS: Final = ("AWSNodeTemplate", "EC2NodeClass")
_BECOMES: Final = {"Provisioner": "NodePool", "AWSNodeTemplate": "EC2NodeClass"}


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What was done with one field, or why it could not be."""

    level: Level
    where: str
    """File, and line where that is known."""
    kind: str
    name: str
    field: str
    message: str


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What became of everything."""

    objects: tuple[Written, ...]
    """In the order in which they were read; a class that a pool had inline stands before it."""
    knobs: Mapping[str, str]
    notes: tuple[Note, ...]


def convert(found: Iterable[Written], role: str = "") -> Conversion:
    """Convert what is old; what is not passes as it is. *role* is that of nodes, where nobody names one."""
    some = list(found)
    told: list[tuple[Written, Remarks]] = [(one, Remarks(one.plain)) for one in some]
    knobs: dict[str, str] = {}
    defaults = Defaults(role=role)
    _tell_namesakes(told)
    for one, remarks in told:
        if _is_config(one.value, settings.GLOBAL):
            defaults = settings.defaults_in(_root(one, remarks), role)
    defaults.taken = frozenset(_name(one) for one in some if one.value["kind"] in _CLASS_KINDS)
    done = [_converted(one, remarks, defaults, knobs) for one, remarks in told]
    kept = [new for (_, remarks), new in zip(told, done, strict=True) if not remarks.is_refused()]
    homed = homes([pool for pool in kept if isinstance(pool, Pool)], _known(done))
    objects: list[Written] = []
    for (one, remarks), new in zip(told, done, strict=True):
        objects.extend(_said(one, remarks, new, homed))
    notes = (_note(one, remark) for one, remarks in told for remark in _worth_telling(one, remarks))
    return Conversion(objects=tuple(objects), knobs=knobs, notes=tuple(dict.fromkeys(notes)))


def _worth_telling(one: Written, remarks: Remarks) -> list[Remark]:
    """Answer what is told, line by line; what an object that is left out would have become is of no interest."""
    some = [remark for remark in remarks.said if not remarks.is_refused() or remark.level != "changed"]
    return sorted(some if _becomes_object(one) else remarks.said, key=lambda remark: one.line(remark.path))


def _becomes_object(one: Written) -> bool:
    return bool(one.value["kind"] != "ConfigMap")


def _root(one: Written, remarks: Remarks) -> Part:
    return Part(one.value, (), remarks)


def _is_config(value: Object, name: str) -> bool:
    meta = value.get("metadata")
    return value["kind"] == "ConfigMap" and isinstance(meta, dict) and meta.get("name") == name


def _converted(one: Written, remarks: Remarks, defaults: Defaults, knobs: dict[str, str]) -> Pool | Object | None:
    """Answer what *one* becomes; None if it becomes no object."""
    key = (str(one.value["apiVersion"]), one.value["kind"])
    if (pool := _POOLS.get(key)) is not None:
        new = pool(_root(one, remarks), defaults)
        knobs.update(new.knobs)
        return new
    if (template := _CLASSES.get(key)) is not None:
        return template(_root(one, remarks), defaults)
    if _is_config(one.value, settings.GLOBAL) or _is_config(one.value, settings.LOGGING):
        knobs.update(settings.knobs(_root(one, remarks)))
        return None
    if is_ours(one.value):
        return _of_today(one, remarks)
    if (refusal := refused(*key)) is not None:
        remarks.refuse((refusal[0],), refusal[1])
        return None
    if controller.is_controller(one.value):
        knobs.update(controller.knobs(one.value, remarks))
    return workloads.converted(one.value, remarks)


def _of_today(one: Written, remarks: Remarks) -> Pool | Object:
    if name := _name(one):
        check_name(name, ("metadata", "name"), remarks)
    elif value_at(one.value, ("metadata", "generateName")) is None:
        remarks.refuse(("metadata", "name"), "is missing: name it")
    for path, message in other_class(one.value):
        remarks.warn(path, message)
    return mended(one.value, remarks)


def _tell_namesakes(told: Iterable[tuple[Written, Remarks]]) -> None:
    """Tell what is applied over something else of its name; if that stood beside it before, it is refused."""
    first: dict[tuple[str, str], Written] = {}
    for one, remarks in told:
        kind = _BECOMES.get(one.value["kind"], one.value["kind"])
        if not is_karpenters(str(one.value["apiVersion"])) or not (name := _name(one)):
            continue
        other = first.setdefault((kind, name), one)
        path, where = ("metadata", "name"), other.where(("metadata", "name"))
        if other.value["kind"] != one.value["kind"] and other.file == one.file:
            remarks.refuse(path, f"{kind} {name} stands at {where} already: rename or remove one of them")
        elif other.value != one.value:
            remarks.warn(path, f"{kind} {name} stands at {where}, too, and what is applied last counts: rename one")


def _known(done: Sequence[Pool | Object | None]) -> dict[str, Object]:
    """Answer the node classes that are there, by name."""
    inline = [one.node_class for one in done if isinstance(one, Pool) and one.node_class is not None]
    some = [*inline, *(one for one in done if isinstance(one, dict) and _is_class(one))]
    return {str(one["metadata"].get("name")): one for one in some if isinstance(one.get("metadata"), dict)}


def _is_class(value: Object) -> bool:
    is_class = value.get("kind") == "EC2NodeClass" and value.get("apiVersion") == classes.API
    return is_class and isinstance(value.get("metadata"), dict)


def _said(one: Written, remarks: Remarks, new: Pool | Object | None, homed: Homed) -> list[Written]:
    """Answer what is printed for *one*."""
    if isinstance(new, Pool):
        values = [] if remarks.is_refused() else homed.of_pool(new, remarks)
    elif new is not None and _is_class(new):
        values = homed.of_class(new, remarks)
    else:
        values = [] if new is None else [new]
    if len(values) == 1 and values[0] is one.value:
        return [] if remarks.is_refused() else [one]
    for value in values:
        refuse_unaccepted(one, value, remarks)
    if remarks.is_refused():
        return []
    return [Written(value=value, file=one.file) for value in values]


def _name(one: Written) -> str:
    meta = one.value.get("metadata")
    return str((meta.get("name") if isinstance(meta, dict) else None) or "")


def _note(one: Written, remark: Remark) -> Note:
    return Note(
        level=remark.level,
        where=one.where(remark.path),
        kind=one.value["kind"],
        name=_name(one) or "without a name",
        field=spelled(remark.path),
        message=remark.message,
    )
