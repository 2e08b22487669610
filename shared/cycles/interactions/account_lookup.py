"""Queries to the AWS account: the resources that each node class selects."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from shared.decide.launch.ami_families.images import list_image_parameters
from shared.decide.node_class.dry_run import build_refusal_findings
from shared.decide.node_class.status import with_answers
from shared.decide.node_class.validation import validate_node_class
from shared.errors import Fault, NotFound
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.metadata import Problem
from shared.model.ec2.account import CapacityReservation, ControlPlaneFacts, Image, PlacementGroup, SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.world import World
from shared.store.dry_runs import read_dry_run_refusals

ResultT = TypeVar("ResultT")


class AccountAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of the AWS account; None: the query failed, and nothing is concluded from that."""

    facts: ControlPlaneFacts | None
    node_class_answers: tuple[tuple[str, NodeClassAnswers], ...]
    """Pairs of node class name and answers."""
    problems: tuple[Problem, ...] = ()


def query_account(world: World, node_classes: Iterable[EC2NodeClass]) -> AccountAnswers:
    """Query the resources that each node class selects and the refusals of its last dry run.

    A query that fails yields None and a Problem.
    """
    problems: list[Problem] = []
    facts = _query_or_record_problem(
        "Cluster",
        world.settings.cluster_name,
        lambda: world.eks.describe_cluster(world.settings.cluster_name),
        problems,
    )
    node_class_answers: list[tuple[str, NodeClassAnswers]] = []
    for node_class in node_classes:
        answers = _query_node_class(node_class, facts, world, problems)
        node_class_answers.append((node_class.name, _add_dry_run_refusals(node_class, answers, world, problems)))
    return AccountAnswers(facts=facts, node_class_answers=tuple(node_class_answers), problems=tuple(problems))


def _query_node_class(
    node_class: EC2NodeClass, facts: ControlPlaneFacts | None, world: World, problems: list[Problem]
) -> NodeClassAnswers:
    def query(request: Callable[[], ResultT]) -> ResultT | None:
        return _query_or_record_problem("EC2NodeClass", node_class.name, request, problems)

    reservations = query(lambda: _list_capacity_reservations(node_class, world))
    return NodeClassAnswers(
        subnets=query(lambda: world.ec2.describe_subnets(node_class.subnet_selectors)),
        security_groups=query(lambda: world.ec2.describe_security_groups(node_class.security_group_selectors)),
        images=query(lambda: list_images(node_class, facts.version, world)) if facts is not None else None,
        capacity_reservations=_select_active(reservations),
        scheduled_blocks=_select_scheduled_blocks(reservations) if world.settings.gangs == "on" else None,
        placement_groups=query(lambda: _list_placement_groups(node_class, world)),
        findings=validate_node_class(
            node_class, facts, are_expressions_enabled=world.settings.aws_gates.node_class_cel
        ),
        kubernetes_version=facts.version if facts is not None else "",
    )


def _add_dry_run_refusals(
    node_class: EC2NodeClass, answers: NodeClassAnswers, world: World, problems: list[Problem]
) -> NodeClassAnswers:
    """Return *answers* with the refusals of the last EC2 dry run, if dry runs are enabled and one was made."""
    if answers.findings or world.settings.disable_dry_run:
        return answers
    resolved_node_class = with_answers(node_class, answers, world.settings.instance_profile, world.clock())
    refusals = _query_or_record_problem(
        "EC2NodeClass", resolved_node_class.name, lambda: read_dry_run_refusals(resolved_node_class, world), problems
    )
    severe_findings = build_refusal_findings(resolved_node_class, refusals or ())
    return msgspec.structs.replace(answers, refusals=refusals, findings=severe_findings)


def _list_capacity_reservations(node_class: EC2NodeClass, world: World) -> tuple[CapacityReservation, ...]:
    if not world.settings.gates.reserved_capacity:
        return ()
    terms = node_class.capacity_reservation_selectors
    if not terms:
        return ()
    if world.settings.gangs == "off":
        return world.ec2.describe_capacity_reservations(terms)
    return world.ec2.describe_capacity_reservations(terms, are_scheduled_included=True)


def _select_active(reservations: tuple[CapacityReservation, ...] | None) -> tuple[CapacityReservation, ...] | None:
    """Return the reservations that instances can be launched into."""
    return None if reservations is None else tuple(item for item in reservations if item.starts_at is None)


def _select_scheduled_blocks(
    reservations: tuple[CapacityReservation, ...] | None,
) -> tuple[CapacityReservation, ...] | None:
    """Return the Capacity Blocks that start later, for which gangs wait."""
    if reservations is None:
        return None
    return tuple(item for item in reservations if item.starts_at is not None and item.is_block)


def _list_placement_groups(node_class: EC2NodeClass, world: World) -> tuple[PlacementGroup, ...]:
    selector = node_class.placement_group_selector
    group = world.ec2.describe_placement_group(selector) if selector is not None else None
    return () if group is None else (group,)


def list_images(
    node_class: EC2NodeClass, kubernetes_version: str, world: World
) -> tuple[tuple[Image, tuple[str, ...]], ...]:
    """Return the images that *node_class* selects for *kubernetes_version*, each with the variants that it is for.

    Raises:
        Fault: SSM parameters or images could not be read.
    """
    variants: dict[str, list[str]] = {}
    for parameter in list_image_parameters(node_class, kubernetes_version):
        try:
            image_id = world.parameters.get_parameter(parameter.name)
        except NotFound:
            continue  # not every variant exists for every version
        variants.setdefault(image_id, []).extend(parameter.variants)
    image_terms = tuple(term for term in node_class.image_selectors if not term.alias and not term.ssm_parameter)
    id_terms = tuple(SelectorTerm(id=image_id) for image_id in sorted(variants))
    images = world.ec2.describe_images((*image_terms, *id_terms)) if image_terms or id_terms else ()
    return tuple((image, tuple(variants.get(image.image_id, ()))) for image in images)


def _query_or_record_problem(
    kind: str, name: str, request: Callable[[], ResultT], problems: list[Problem]
) -> ResultT | None:
    try:
        return request()
    except Fault as fault:
        problems.append(Problem(kind=kind, name=name, message=f"{type(fault).__name__}: {fault}"))
        return None
