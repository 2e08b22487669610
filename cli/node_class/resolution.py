"""Resolution of EC2NodeClasses in an account: selected resources, refused launches, and matching instance types."""

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from cli.aws.account_api import AccountApis
from cli.aws.market import TypesAndOfferings, read_types_and_offerings
from cli.inputs.files import ErrorReporter
from shared.cycles.interactions.account_lookup import query_account
from shared.cycles.setup.options_from_settings import build_capacity_settings
from shared.decide.launch.instance_types.capacity import CapacitySettings, count_eni_limited_pods
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.decide.node_class.dry_run import build_dry_run_request, build_refusal_findings
from shared.decide.node_class.status import with_answers
from shared.errors import Fault
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.metadata import Problem
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.storage import TableRow
from shared.ports.world import World
from shared.settings import Settings
from shared.take.regional_offerings import PriceListFile


class ResolvedNodeClass(msgspec.Struct, frozen=True, kw_only=True):
    """A node class, and the resources that it selects in the account."""

    node_class: EC2NodeClass
    """The node class with its resolved status."""
    answers: NodeClassAnswers
    cluster_facts: ControlPlaneFacts | None
    instance_types: tuple[InstanceType, ...]
    refusals: tuple[DryRunRefusal, ...] = ()
    crowded_types: tuple[str, ...] = ()
    """Instance types with fewer IP addresses than maxPods, without prefix delegation."""


class _EmptyTable:
    """A table without rows, because no dry run is recorded."""

    def read(self, kind: str, name: str) -> TableRow | None:
        """Return None."""
        del kind, name
        return None


def resolve_node_classes(
    node_classes: tuple[EC2NodeClass, ...],
    apis: AccountApis,
    settings: Settings,
    report_error: ErrorReporter,
    *,
    price_list: PriceListFile | None = None,
    uses_dry_run: bool = True,
) -> tuple[ResolvedNodeClass, ...]:
    """Resolve each of *node_classes*: selected resources, refused launches, and matching instance types.

    Errors are passed to *report_error*; *price_list* is used if the pricing service cannot be reached.

    Raises:
        Fault: instance types, zones or spot prices could not be read.
        ValueError: feature gates cannot be parsed.
    """
    world = build_account_world(apis, settings)
    account_answers = query_account(world, node_classes)
    catalog_data = read_types_and_offerings(apis, report_error, price_list)
    type_settings = build_capacity_settings(settings)
    problems = list(account_answers.problems)
    answers_by_class = dict(account_answers.node_class_answers)
    resolved_classes = []
    for node_class in node_classes:
        resolved_class = _resolve_node_class(
            node_class, answers_by_class[node_class.name], account_answers.facts, catalog_data, type_settings, world
        )
        resolved_classes.append(
            _validate_with_dry_run(resolved_class, world, problems) if uses_dry_run else resolved_class
        )
    for problem in problems:
        report_error(f"{problem.kind} {problem.name}: {problem.message}")
    return tuple(resolved_classes)


def _resolve_node_class(
    node_class: EC2NodeClass,
    answers: NodeClassAnswers,
    cluster_facts: ControlPlaneFacts | None,
    catalog_data: TypesAndOfferings,
    type_settings: CapacitySettings,
    world: World,
) -> ResolvedNodeClass:
    filled_class = with_answers(node_class, answers, world.settings.instance_profile, world.clock())
    infos, market = catalog_data
    all_types: tuple[InstanceType, ...] = ()
    if filled_class.resolved_images:
        all_types = build_instance_types(infos, market, filled_class, type_settings, now=world.clock())
    matching_types = tuple(kind for kind in all_types if _has_image(filled_class, kind))
    names = {kind.name for kind in matching_types}
    return ResolvedNodeClass(
        node_class=filled_class,
        answers=answers,
        cluster_facts=cluster_facts,
        instance_types=matching_types,
        crowded_types=tuple(
            info.name for info in infos if info.name in names and _is_crowded(filled_class, info, type_settings)
        ),
    )


def _is_crowded(node_class: EC2NodeClass, info: InstanceTypeInfo, type_settings: CapacitySettings) -> bool:
    max_pods = node_class.kubelet.max_pods
    return (
        max_pods is not None
        and not node_class.ip_prefix_count
        and max_pods > count_eni_limited_pods(info, type_settings.reserved_enis)
    )


def _validate_with_dry_run(
    resolved_class: ResolvedNodeClass, world: World, problems: list[Problem]
) -> ResolvedNodeClass:
    node_class, answers, facts = resolved_class.node_class, resolved_class.answers, resolved_class.cluster_facts
    can_launch = node_class.resolved_profile and node_class.resolved_security_groups
    if facts is None or answers.findings or not can_launch:
        return resolved_class
    dry_run_request = build_dry_run_request(node_class, facts, resolved_class.instance_types)
    if dry_run_request is None:
        return resolved_class
    try:
        refusals = world.ec2.dry_run_launch(dry_run_request)
    except Fault as fault:
        problems.append(Problem(kind="EC2NodeClass", name=node_class.name, message=f"{type(fault).__name__}: {fault}"))
        return replace(resolved_class, answers=replace(answers, refusals=None))
    findings = build_refusal_findings(node_class, refusals)
    return replace(resolved_class, refusals=refusals, answers=replace(answers, findings=findings))


def _has_image(node_class: EC2NodeClass, instance_type: InstanceType) -> bool:
    return any(not instance_type.requirements.find_conflict(image.requirements) for image in node_class.resolved_images)


def build_account_world(apis: AccountApis, settings: Settings) -> World:
    """Return a World that only reads the account."""
    no_client: Any = None
    return World(
        settings=settings,
        kube=no_client,
        ec2=apis.ec2,
        parameters=apis.parameters,
        prices=apis.prices,
        eks=apis.eks,
        mailbox=no_client,
        table=cast("Any", _EmptyTable()),
        bucket=no_client,
        clock=lambda: apis.queried_at,
        emit=no_client,
    )
