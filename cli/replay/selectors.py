"""Resolve the selectors of a changed EC2NodeClass from records only, without requests to the account.

A term is resolved if a recorded class had the same term, or if it names the ID or the name of a recorded resource. The
result of any other term is unknown: the replay makes an assumption and reports it.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.decide.launch.ami_families.images import select_newest_images
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.conditions import with_condition
from shared.model.core.formatting import join_names
from shared.model.core.metadata import is_condition_true
from shared.model.ec2.account import Image, SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass

SelectorTerms = tuple[SelectorTerm, ...]
MAX_LISTED_NAMES: Final = 5


class SelectorField(msgspec.Struct, frozen=True, kw_only=True):
    """A list of selector terms in an EC2NodeClass."""

    spec_key: str
    terms_attribute: str
    """An attribute of the EC2NodeClass, like the next field."""
    status_attribute: str
    answer_attribute: str
    """An attribute of `NodeClassAnswers`."""
    label: str
    identify: Callable[[Any], tuple[str, str]]
    """Return the id and the name of a selected resource."""


SELECTOR_FIELDS: Final = (
    SelectorField(
        spec_key="subnetSelectorTerms",
        terms_attribute="subnet_selectors",
        status_attribute="resolved_subnets",
        answer_attribute="subnets",
        label="subnets",
        identify=lambda subnet: (subnet.subnet_id, ""),
    ),
    SelectorField(
        spec_key="securityGroupSelectorTerms",
        terms_attribute="security_group_selectors",
        status_attribute="resolved_security_groups",
        answer_attribute="security_groups",
        label="security groups",
        identify=lambda group: (group.group_id, group.name),
    ),
    SelectorField(
        spec_key="amiSelectorTerms",
        terms_attribute="image_selectors",
        status_attribute="resolved_images",
        answer_attribute="images",
        label="images",
        identify=lambda image: (
            (image[0].image_id, image[0].name) if isinstance(image, tuple) else (image.image_id, image.name)
        ),
    ),
    SelectorField(
        spec_key="capacityReservationSelectorTerms",
        terms_attribute="capacity_reservation_selectors",
        status_attribute="resolved_capacity_reservations",
        answer_attribute="capacity_reservations",
        label="capacity reservations",
        identify=lambda reservation: (reservation.reservation_id, ""),
    ),
)


class RecordedSelections(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded resolutions of selectors."""

    classes: tuple[EC2NodeClass, ...] = ()
    """The classes of the decision, with their status."""
    catalog_answers: tuple[tuple[EC2NodeClass, NodeClassAnswers], ...] = ()
    """The last answers that `catalog` got, with the class as it was then."""
    now: datetime

    def list_selections(self, field: SelectorField) -> list[tuple[EC2NodeClass, Sequence[Any]]]:
        """Return what each class selected: first the answers that `catalog` got, then statuses."""
        answered_classes = [
            (node_class, getattr(answers, field.answer_attribute) or ()) for node_class, answers in self.catalog_answers
        ]
        return [(node_class, things) for node_class, things in answered_classes if things] + [
            (node_class, getattr(node_class, field.status_attribute))
            for node_class in self.classes
            if getattr(node_class, field.status_attribute)
        ]


def resolve_selectors(
    node_class: EC2NodeClass, before: EC2NodeClass | None, selections: RecordedSelections
) -> tuple[EC2NodeClass, tuple[str, ...]]:
    """Return *node_class* with the resources it selects, and notes; *before* is the recorded class of this name."""
    notes: list[str] = []
    for field in SELECTOR_FIELDS:
        terms: SelectorTerms = getattr(node_class, field.terms_attribute)
        if before is not None and _has_terms(before, field, terms, node_class.ami_family, is_empty=True):
            continue
        resources, unresolved_terms = _resolve_terms(terms, field, node_class.ami_family, selections)
        previous_items = getattr(before, field.status_attribute) if before is not None and unresolved_terms else ()
        selected = previous_items or _build_status_items(resources, selections.now)
        notes += _describe_selection(node_class, field, selected, unresolved_terms, is_kept=bool(previous_items))
        node_class = replace(node_class, **{field.status_attribute: selected})
    if before is None or node_class.placement_group_selector != before.placement_group_selector:
        node_class, words = _resolve_placement_group(node_class, selections)
        notes += words
    return (node_class, tuple(notes)) if before is not None else _build_new_class(node_class, selections, notes)


def build_recorded_answers(
    node_class: EC2NodeClass, previous_answers: NodeClassAnswers | None, selections: RecordedSelections
) -> NodeClassAnswers:
    """Return the answers `catalog` would have got for *node_class*, as far as known.

    *previous_answers* are those for the class of this name.
    """
    parts: dict[str, Any] = {}
    for field in SELECTOR_FIELDS:
        resources, unresolved_terms = _resolve_terms(
            getattr(node_class, field.terms_attribute), field, node_class.ami_family, selections
        )
        usable = tuple(thing for thing in resources if field.answer_attribute != "images" or isinstance(thing, tuple))
        parts[field.answer_attribute] = (
            usable
            if not unresolved_terms or previous_answers is None
            else getattr(previous_answers, field.answer_attribute)
        )
    empty = NodeClassAnswers(subnets=None, security_groups=None, images=None)
    return replace(previous_answers or empty, refusals=(), **parts)


def _resolve_terms(
    terms: SelectorTerms, field: SelectorField, family: str, selections: RecordedSelections
) -> tuple[list[Any], list[str]]:
    """Return the resources that *terms* select, each once, and the terms that cannot be resolved."""
    recorded = selections.list_selections(field)
    exact_match = next(
        (resources for node_class, resources in recorded if _has_terms(node_class, field, terms, family)), None
    )
    if exact_match is not None:
        return list(exact_match), []
    resources_by_id: dict[str, Any] = {}
    unresolved_terms: list[str] = []
    for number, term in enumerate(terms):
        resources = next(
            (resources for node_class, resources in recorded if _has_terms(node_class, field, (term,), family)), None
        )
        if resources is None:
            all_resources = (resource for _, resources in recorded for resource in resources)
            resources = tuple(
                resource for resource in all_resources if _is_selected(term, field.identify(resource), resource)
            )
        if not resources:
            unresolved_terms.append(f"spec.{field.spec_key}[{number}] ({_format_term(term)})")
        for resource in resources:
            resources_by_id.setdefault(field.identify(resource)[0], resource)
    return [resource for _, resource in sorted(resources_by_id.items())], unresolved_terms


def _has_terms(
    node_class: EC2NodeClass, field: SelectorField, terms: SelectorTerms, family: str, *, is_empty: bool = False
) -> bool:
    """Return whether *node_class* has these terms; image terms also need the same AMI family."""
    is_family = field.answer_attribute != "images" or node_class.ami_family == family
    return (is_empty or bool(terms)) and getattr(node_class, field.terms_attribute) == terms and is_family


def _is_selected(term: SelectorTerm, id_and_name: tuple[str, str], resource: object) -> bool:
    id_, name = id_and_name
    if term.id:
        return term.id == id_
    if term.alias or term.ssm_parameter or term.owner or not (term.name or term.tags):
        return False
    if term.tags:
        image = resource[0] if isinstance(resource, tuple) else None
        if not isinstance(image, Image) or not _has_tags(image, term):
            return False
    return not term.name or (bool(name) and fnmatchcase(name, term.name))


def _has_tags(image: Image, term: SelectorTerm) -> bool:
    tags = dict(image.tags)
    return all(key in tags and value in ("*", tags[key]) for key, value in term.tags)


def _build_status_items(resources: Iterable[Any], now: datetime) -> tuple[Any, ...]:
    """Return *resources* in the form of a status."""
    items = tuple(resources)
    if items and isinstance(items[0], tuple):
        return select_newest_images((item for item in items if isinstance(item, tuple)), now)
    return items


def _describe_selection(
    node_class: EC2NodeClass,
    field: SelectorField,
    selected: Sequence[Any],
    unresolved_terms: list[str],
    *,
    is_kept: bool,
) -> list[str]:
    names = join_names([field.identify(thing)[0] for thing in selected], MAX_LISTED_NAMES) if selected else "none"
    if not unresolved_terms:
        return [f"EC2NodeClass {node_class.name}: spec.{field.spec_key} resolve to {names}, as recorded"]
    assumption = f"{field.label} unchanged ({names})" if is_kept else f"{field.label}: {names}"
    return [
        f"EC2NodeClass {node_class.name}: {term} cannot be resolved from the records; assumed: {assumption}"
        for term in unresolved_terms
    ]


def _format_term(term: SelectorTerm) -> str:
    tags = ", ".join(f"{key}={value}" for key, value in term.tags)
    parts = (term.id, term.alias, term.ssm_parameter, term.name, term.owner, f"tags {tags}" if tags else "")
    return " ".join(filter(None, parts)) or "nothing"


def _resolve_placement_group(
    node_class: EC2NodeClass, selections: RecordedSelections
) -> tuple[EC2NodeClass, list[str]]:
    selector = node_class.placement_group_selector
    if selector is None:
        return replace(node_class, resolved_placement_group=None), []
    groups = [group for _, answers in selections.catalog_answers for group in answers.placement_groups or ()]
    name = selector.id or selector.name
    group = next((candidate for candidate in groups if name in (candidate.group_id, candidate.name)), None)
    note = f"EC2NodeClass {node_class.name}: the placement group cannot be resolved from the records; assumed: none"
    return replace(node_class, resolved_placement_group=group), [] if group is not None else [note]


def _build_new_class(
    node_class: EC2NodeClass, selections: RecordedSelections, notes: list[str]
) -> tuple[EC2NodeClass, tuple[str, ...]]:
    """Return *node_class*, which did not exist in the record: Ready, if everything that this needs is known."""
    recorded_profiles = (recorded_class.resolved_profile for recorded_class in selections.classes)
    profile = node_class.instance_profile or next(recorded_profiles, "")
    node_class = replace(node_class, resolved_profile=profile)
    needed = (node_class.resolved_subnets, node_class.resolved_security_groups, node_class.resolved_images, profile)
    if not all(needed):
        note = f"EC2NodeClass {node_class.name} is new; assumed: not Ready, because not all selectors can be resolved"
        return node_class, (*notes, note)
    conditions = with_condition(
        node_class.conditions, "Ready", "True", "Ready", "", selections.now, node_class.meta.generation
    )
    note = f"EC2NodeClass {node_class.name} is new; assumed: Ready, with the same offerings as the other classes"
    return replace(node_class, conditions=conditions), (*notes, note)


def with_node_class_offerings(
    catalog: Catalog, node_class: EC2NodeClass, before: EC2NodeClass | None
) -> tuple[Catalog, tuple[str, ...]]:
    """Return *catalog* with the offerings of *node_class* in the zones of its subnets, and notes on unknown ones."""
    zones = {subnet.zone for subnet in node_class.resolved_subnets}
    views = dict(catalog.by_node_class)
    if not views or (before is not None and zones == {subnet.zone for subnet in before.resolved_subnets}):
        return catalog, ()
    if not is_condition_true(node_class.conditions, "Ready"):
        return catalog, ()
    types = views.get(node_class.name) or next(iter(sorted(views.items())))[1]
    known_zones = {offering.zone for instance_type in types for offering in instance_type.offerings}
    views[node_class.name] = tuple(
        zonal_type for instance_type in types if (zonal_type := _filter_offerings(instance_type, zones)).offerings
    )
    unknown_zones = ", ".join(sorted(zones - known_zones))
    note = f"EC2NodeClass {node_class.name}: offerings in {unknown_zones} were not stored; assumed: none"
    return replace(catalog, by_node_class=tuple(sorted(views.items()))), (note,) if unknown_zones else ()


def _filter_offerings(instance_type: InstanceType, zones: set[str]) -> InstanceType:
    offerings = tuple(offering for offering in instance_type.offerings if offering.zone in zones)
    return replace(instance_type, offerings=offerings)
