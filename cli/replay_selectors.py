"""What a changed EC2NodeClass selects, as far as what was kept can say it: nothing is asked of the account.

Known is what the selectors of then found. A term that some class had, or the id or name of something that was found, is
resolved by that; of any other nobody knows what it selects, and what is assumed then is said.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.text import some as named
from shared.launch.images import best_images
from shared.launch.nodeclass import Found
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.conditions import with_condition
from shared.model.ec2 import Image, Selector
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import is_true

Terms = tuple[Selector, ...]
MOST: Final = 5


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One list of selector terms."""

    spec: str
    terms: str
    """The class' attribute, as the two that follow."""
    status: str
    found: str
    """Of `Found`."""
    what: str
    named: Callable[[Any], tuple[str, str]]
    """The id and the name of one that was found."""


FIELDS: Final = (
    Field(
        spec="subnetSelectorTerms",
        terms="subnet_selectors",
        status="resolved_subnets",
        found="subnets",
        what="subnets",
        named=lambda one: (one.subnet_id, ""),
    ),
    Field(
        spec="securityGroupSelectorTerms",
        terms="security_group_selectors",
        status="resolved_security_groups",
        found="security_groups",
        what="security groups",
        named=lambda one: (one.group_id, one.name),
    ),
    Field(
        spec="amiSelectorTerms",
        terms="image_selectors",
        status="resolved_images",
        found="images",
        what="images",
        named=lambda one: (one[0].image_id, one[0].name) if isinstance(one, tuple) else (one.image_id, one.name),
    ),
    Field(
        spec="capacityReservationSelectorTerms",
        terms="capacity_reservation_selectors",
        status="resolved_capacity_reservations",
        found="capacity_reservations",
        what="capacity reservations",
        named=lambda one: (one.reservation_id, ""),
    ),
)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the account."""

    classes: tuple[EC2NodeClass, ...] = ()
    """Those that were decided on, with their status."""
    asked: tuple[tuple[EC2NodeClass, Found], ...] = ()
    """What `catalog` had found last, by class as it was."""
    now: datetime

    def seen(self, field: Field) -> list[tuple[EC2NodeClass, Sequence[Any]]]:
        """Answer what each class had found, what `catalog` heard before what a status says."""
        heard = [(one, getattr(found, field.found) or ()) for one, found in self.asked]
        return [(one, things) for one, things in heard if things] + [
            (one, getattr(one, field.status)) for one in self.classes if getattr(one, field.status)
        ]


def reselected(one: EC2NodeClass, before: EC2NodeClass | None, known: Known) -> tuple[EC2NodeClass, tuple[str, ...]]:
    """Answer *one* with what it selects, and what is to be said of that; *before*: the class of this name then."""
    notes: list[str] = []
    for field in FIELDS:
        terms: Terms = getattr(one, field.terms)
        if before is not None and _asks(before, field, terms, one.ami_family, is_empty=True):
            continue
        things, lost = _things(terms, field, one.ami_family, known)
        kept = getattr(before, field.status) if before is not None and lost else ()
        chosen = kept or _status(things, known.now)
        notes += _said(one, field, chosen, lost, is_kept=bool(kept))
        one = replace(one, **{field.status: chosen})
    if before is None or one.placement_group_selector != before.placement_group_selector:
        one, words = _grouped(one, known)
        notes += words
    return (one, tuple(notes)) if before is not None else _new(one, known, notes)


def refound(one: EC2NodeClass, found: Found | None, known: Known) -> Found:
    """Answer what `catalog` would have found for *one*, as far as it is known; *found*: for the class of this name."""
    parts: dict[str, Any] = {}
    for field in FIELDS:
        things, lost = _things(getattr(one, field.terms), field, one.ami_family, known)
        usable = tuple(thing for thing in things if field.found != "images" or isinstance(thing, tuple))
        parts[field.found] = usable if not lost or found is None else getattr(found, field.found)
    empty = Found(subnets=None, security_groups=None, images=None)
    return replace(found or empty, refusals=(), **parts)


def _things(terms: Terms, field: Field, family: str, known: Known) -> tuple[list[Any], list[str]]:
    """Answer what *terms* select, each once, and those of which that is not known."""
    seen = known.seen(field)
    whole = next((things for one, things in seen if _asks(one, field, terms, family)), None)
    if whole is not None:
        return list(whole), []
    found: dict[str, Any] = {}
    lost: list[str] = []
    for number, term in enumerate(terms):
        things = next((things for one, things in seen if _asks(one, field, (term,), family)), None)
        if things is None:
            every = (thing for _, things in seen for thing in things)
            things = tuple(thing for thing in every if _is_meant(term, field.named(thing), thing))
        if not things:
            lost.append(f"spec.{field.spec}[{number}] ({_words(term)})")
        for thing in things:
            found.setdefault(field.named(thing)[0], thing)
    return [thing for _, thing in sorted(found.items())], lost


def _asks(one: EC2NodeClass, field: Field, terms: Terms, family: str, *, is_empty: bool = False) -> bool:
    """Whether *one* asks by these terms; those of images say little without the family."""
    is_family = field.found != "images" or one.ami_family == family
    return (is_empty or bool(terms)) and getattr(one, field.terms) == terms and is_family


def _is_meant(term: Selector, called: tuple[str, str], thing: object) -> bool:
    id_, name = called
    if term.id:
        return term.id == id_
    if term.alias or term.ssm_parameter or term.owner or not (term.name or term.tags):
        return False
    if term.tags:
        image = thing[0] if isinstance(thing, tuple) else None
        if not isinstance(image, Image) or not _has(image, term):
            return False
    return not term.name or (bool(name) and fnmatchcase(name, term.name))


def _has(image: Image, term: Selector) -> bool:
    tags = dict(image.tags)
    return all(key in tags and value in ("*", tags[key]) for key, value in term.tags)


def _status(things: Iterable[Any], now: datetime) -> tuple[Any, ...]:
    """Answer *things* as a status has them."""
    some = tuple(things)
    if some and isinstance(some[0], tuple):
        return best_images((one for one in some if isinstance(one, tuple)), now)
    return some


def _said(one: EC2NodeClass, field: Field, chosen: Sequence[Any], lost: Sequence[str], *, is_kept: bool) -> list[str]:
    names = named([field.named(each)[0] for each in chosen], MOST) if chosen else "none"
    if not lost:
        return [f"EC2NodeClass {one.name}: spec.{field.spec} select {names}, as they were found then"]
    assumed = f"its {field.what} stay what they were: {names}" if is_kept else f"its {field.what}: {names}"
    return [
        f"EC2NodeClass {one.name}: {each} cannot be resolved: nothing that was kept says what it selects; "
        f"assumed: {assumed}"
        for each in lost
    ]


def _words(term: Selector) -> str:
    tags = ", ".join(f"{key}={value}" for key, value in term.tags)
    parts = (term.id, term.alias, term.ssm_parameter, term.name, term.owner, f"tags {tags}" if tags else "")
    return " ".join(filter(None, parts)) or "nothing"


def _grouped(one: EC2NodeClass, known: Known) -> tuple[EC2NodeClass, list[str]]:
    selector = one.placement_group_selector
    if selector is None:
        return replace(one, resolved_placement_group=None), []
    groups = [group for _, found in known.asked for group in found.placement_groups or ()]
    group = next((each for each in groups if (selector.id or selector.name) in (each.group_id, each.name)), None)
    said = [] if group is not None else [f"EC2NodeClass {one.name}: its placement group is not known; assumed: none"]
    return replace(one, resolved_placement_group=group), said


def _new(one: EC2NodeClass, known: Known, notes: list[str]) -> tuple[EC2NodeClass, tuple[str, ...]]:
    """Answer a class that there was not: Ready, if all is known that it needs to be."""
    profile = one.instance_profile or next((each.resolved_profile for each in known.classes), "")
    one = replace(one, resolved_profile=profile)
    needed = (one.resolved_subnets, one.resolved_security_groups, one.resolved_images, profile)
    if not all(needed):
        return one, (*notes, f"EC2NodeClass {one.name} is new, and not Ready: not all is known that it selects")
    ready = with_condition(one.conditions, "Ready", "True", "Ready", "", known.now, one.meta.generation)
    says = f"EC2NodeClass {one.name} is new; assumed: it is Ready, and sells what the others do"
    return replace(one, conditions=ready), (*notes, says)


def sold_to(catalogue: Catalogue, one: EC2NodeClass, before: EC2NodeClass | None) -> tuple[Catalogue, tuple[str, ...]]:
    """Answer *catalogue* with what *one* can start in the zones of its subnets, and what is not known of that."""
    zones = {subnet.zone for subnet in one.resolved_subnets}
    views = dict(catalogue.by_node_class)
    if not views or (before is not None and zones == {subnet.zone for subnet in before.resolved_subnets}):
        return catalogue, ()
    if not is_true(one.conditions, "Ready"):
        return catalogue, ()
    types = views.get(one.name) or next(iter(sorted(views.items())))[1]
    sold = {offering.zone for kind in types for offering in kind.offerings}
    views[one.name] = tuple(left for kind in types if (left := _within(kind, zones)).offerings)
    new = ", ".join(sorted(zones - sold))
    says = (f"EC2NodeClass {one.name}: what is sold in {new} was not kept; assumed: nothing",) if new else ()
    return replace(catalogue, by_node_class=tuple(sorted(views.items()))), says


def _within(kind: InstanceType, zones: set[str]) -> InstanceType:
    return replace(kind, offerings=tuple(one for one in kind.offerings if one.zone in zones))
