"""One look at the account: what node classes select there."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from shared.errors import Fault, Gone
from shared.launch.nodeclass import Found, filled, parameters_wanted
from shared.launch.probes import refusal_findings
from shared.launch.validation import findings
from shared.model.ec2 import CapacityReservation, ClusterFacts, Image, PlacementGroup, Selector
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.ports import World
from shared.settings import aws_gates_from, gates_from
from shared.snapshot.rehearsed import remembered

Answer = TypeVar("Answer")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the account answered; None: it could not be asked, and nothing is concluded."""

    facts: ClusterFacts | None
    found: tuple[tuple[str, Found], ...]
    """By node class."""
    problems: tuple[Problem, ...] = ()


def look(world: World, node_classes: Iterable[EC2NodeClass]) -> Account:
    """Ask for what every node class selects, and what a rehearsal said; a part that fails is None, and named."""
    problems: list[Problem] = []
    facts = _asked("Cluster", world.settings.cluster_name, lambda: world.eks.cluster(_name(world)), problems)
    found: list[tuple[str, Found]] = []
    for one in node_classes:
        seen = _found(one, facts, world, problems)
        found.append((one.name, _rehearsed(one, seen, world, problems)))
    return Account(facts=facts, found=tuple(found), problems=tuple(problems))


def _name(world: World) -> str:
    return world.settings.cluster_name


def _found(node_class: EC2NodeClass, facts: ClusterFacts | None, world: World, problems: list[Problem]) -> Found:
    def asked(question: Callable[[], Answer]) -> Answer | None:
        return _asked("EC2NodeClass", node_class.name, question, problems)

    return Found(
        subnets=asked(lambda: world.ec2.subnets(node_class.subnet_selectors)),
        security_groups=asked(lambda: world.ec2.security_groups(node_class.security_group_selectors)),
        images=asked(lambda: _images(node_class, facts, world)) if facts is not None else None,
        capacity_reservations=asked(lambda: _reservations(node_class, world)),
        placement_groups=asked(lambda: _groups(node_class, world)),
        findings=findings(
            node_class, facts, with_expressions=aws_gates_from(world.settings.aws_feature_gates).node_class_cel
        ),
        kubernetes_version=facts.version if facts is not None else "",
    )


def _rehearsed(node_class: EC2NodeClass, found: Found, world: World, problems: list[Problem]) -> Found:
    """Answer *found* with what EC2 said to a launch, if it was asked."""
    if found.findings or world.settings.disable_dry_run == "true":
        return found
    own = filled(node_class, found, world.settings.instance_profile, world.clock())
    refusals = _asked("EC2NodeClass", own.name, lambda: remembered(own, world), problems)
    grave = refusal_findings(own, refusals or ())
    return msgspec.structs.replace(found, refusals=refusals, findings=grave)


def _reservations(node_class: EC2NodeClass, world: World) -> tuple[CapacityReservation, ...]:
    if not gates_from(world.settings.feature_gates).reserved_capacity:
        return ()
    terms = node_class.capacity_reservation_selectors
    return world.ec2.capacity_reservations(terms) if terms else ()


def _groups(node_class: EC2NodeClass, world: World) -> tuple[PlacementGroup, ...]:
    selector = node_class.placement_group_selector
    group = world.ec2.placement_group(selector) if selector is not None else None
    return () if group is None else (group,)


def _images(node_class: EC2NodeClass, facts: ClusterFacts, world: World) -> tuple[tuple[Image, tuple[str, ...]], ...]:
    variants: dict[str, list[str]] = {}
    for wanted in parameters_wanted(node_class, facts.version):
        try:
            image_id = world.parameters.parameter(wanted.name)
        except Gone:
            continue  # not every variant exists for every version
        variants.setdefault(image_id, []).extend(wanted.variants)
    own = tuple(term for term in node_class.image_selectors if not term.alias and not term.ssm_parameter)
    by_id = tuple(Selector(id=image_id) for image_id in sorted(variants))
    images = world.ec2.images((*own, *by_id)) if own or by_id else ()
    return tuple((image, tuple(variants.get(image.image_id, ()))) for image in images)


def _asked(kind: str, name: str, question: Callable[[], Answer], problems: list[Problem]) -> Answer | None:
    try:
        return question()
    except Fault as fault:
        problems.append(Problem(kind=kind, name=name, message=f"{type(fault).__name__}: {fault}"))
        return None
