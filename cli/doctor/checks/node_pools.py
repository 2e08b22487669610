"""Checks of NodePools and EC2NodeClasses: whether nodes could be launched from them now."""

from collections.abc import Iterator, Sized
from typing import Final

from cli.cluster.fixes import SIGN_IN_HINT, is_credential_error
from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, NodeClassFacts, ReadFailure
from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.node_class.canary_status import list_rejections
from shared.decide.node_class.subnet_addresses import count_addresses_by_zone, describe_low_addresses
from shared.model.core.formatting import format_count, join_names
from shared.model.core.metadata import find_condition
from shared.model.ec2.account import Subnet
from shared.model.karpenter.health.canary import parse_canary_settings
from shared.model.karpenter.node_class import EC2NodeClass

MIN_ZONES: Final = 2
MAX_LISTED_NAMES: Final = 3
RESOLVE_FIX: Final = "check with `joiner nodeclass resolve -f FILE --cluster NAME`"
_DENIED_CODES: Final = ("Unauthorized", "AccessDenied", "AuthFailure")


def check_node_pools(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that there are NodePools and that each is ready."""
    if facts.kubernetes is None:
        return
    node_pools, check = facts.kubernetes.node_pools, CheckReporter("nodepools")
    yield from _check_absence("NodePool", node_pools, "list on nodepools.karpenter.sh", check, facts)
    for pool in () if isinstance(node_pools, ReadFailure) else node_pools:
        ready_condition = find_condition(pool.conditions, "Ready")
        if ready_condition is None:
            yield check.warn(f"NodePool {pool.name} has no status", "wait a minute, then check that `lifecycle` runs")
        elif ready_condition.status != "True":
            false_conditions = [
                pool_condition
                for pool_condition in pool.conditions
                if pool_condition.status == "False" and pool_condition.type != "Ready"
            ]
            reason = (
                "; ".join(
                    filter(
                        None, (pool_condition.message or pool_condition.reason for pool_condition in false_conditions)
                    )
                )
                or ready_condition.message
            )
            yield check.fail(
                f"NodePool {pool.name} is not ready: {reason}", f"run `joiner explain nodepool {pool.name}`"
            )
        else:
            yield check.accept(f"NodePool {pool.name} is ready")
    for read_error in facts.kubernetes.read_errors:
        yield check.fail(read_error, "correct it: Joiner ignores the object until then")


def check_node_classes(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check each EC2NodeClass by its status conditions."""
    if facts.kubernetes is None:
        return
    node_classes, check = facts.kubernetes.node_classes, CheckReporter("nodeclasses")
    yield from _check_absence("EC2NodeClass", node_classes, "list on ec2nodeclasses.karpenter.k8s.aws", check, facts)
    for node_class in () if isinstance(node_classes, ReadFailure) else node_classes:
        yield _check_node_class_status(node_class, check, facts)


def _check_absence(
    kind: str, objects: Sized | ReadFailure, permission: str, check: CheckReporter, facts: DoctorFacts
) -> Iterator[CheckResult]:
    """Yield a result if there are no objects of *kind*, or if they could not be read."""
    if isinstance(objects, ReadFailure):
        yield check.skip(f"objects of kind {kind}", objects, permission)
    elif not objects:
        build_result = check.defer if facts.is_installed is False else check.warn
        yield build_result(f"there is no {kind}", "create one (docs/guide/getting-started.md)")


def _check_node_class_status(node_class: EC2NodeClass, check: CheckReporter, facts: DoctorFacts) -> CheckResult:
    false_conditions = [
        condition for condition in node_class.conditions if condition.status == "False" and condition.type != "Ready"
    ]
    if false_conditions:
        reason = "; ".join(
            f"{condition.type}: {condition.message or condition.reason}" for condition in false_conditions
        )
        return check.fail(f"EC2NodeClass {node_class.name}: {reason}", RESOLVE_FIX)
    if node_class.is_ready():
        return check.accept(f"EC2NodeClass {node_class.name} is ready")
    if facts.is_installed is False:
        return check.defer(f"EC2NodeClass {node_class.name} has not been resolved yet", "deploy the stack")
    message = f"EC2NodeClass {node_class.name} has not been resolved since its last change"
    return check.warn(message, "wait five minutes, then check that `catalog` runs")


def check_discovery(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that subnets and security groups have the usual discovery tag, if there is no EC2NodeClass yet."""
    if facts.account is None or not _is_without_classes(facts):
        return
    discoverable, check, cluster = facts.account.discoverable, CheckReporter("discovery"), facts.account.cluster
    if isinstance(discoverable, ReadFailure):
        yield check.skip(
            "tags of subnets and security groups", discoverable, "ec2:DescribeSubnets and ec2:DescribeSecurityGroups"
        )
        return
    subnets, security_groups = discoverable
    ids_by_kind = {
        "subnet": facts.control_plane.subnet_ids if facts.control_plane else (),
        "security group": _list_security_group_ids(facts),
    }
    for kind, resources in (("subnet", subnets), ("security group", security_groups)):
        tag = f"--tags Key=karpenter.sh/discovery,Value={cluster}"
        command = f"aws ec2 create-tags --resources {' '.join(ids_by_kind[kind]) or 'ID ...'} {tag}"
        if not resources:
            yield check.warn(
                f"no {kind} has the tag karpenter.sh/discovery={cluster}", f"{command}, or select them by ID"
            )
        else:
            yield check.accept(f"{format_count(len(resources), kind)} tagged karpenter.sh/discovery={cluster}")


def _is_without_classes(facts: DoctorFacts) -> bool:
    """Return whether there is no EC2NodeClass, or none can be expected yet."""
    if facts.kubernetes is None:
        return facts.is_installed is False
    return facts.kubernetes.node_classes == ()


def _list_security_group_ids(facts: DoctorFacts) -> tuple[str, ...]:
    return (
        (facts.control_plane.security_group_id,)
        if facts.control_plane is not None and facts.control_plane.security_group_id
        else ()
    )


def check_subnets(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the subnets have free addresses and span two zones."""
    for class_facts, check, subject in _list_class_checks(facts, "subnets"):
        subnets = class_facts.answers.subnets
        if subnets is None:
            yield check.skip(f"{subject}: subnets", _build_unread_failure(class_facts), "ec2:DescribeSubnets")
        elif not subnets:
            yield check.fail(f"{subject}: spec.subnetSelectorTerms match no subnet", RESOLVE_FIX)
        else:
            yield from check_free_addresses(subject, subnets, check)


def check_free_addresses(subject: str, subnets: tuple[Subnet, ...], check: CheckReporter) -> Iterator[CheckResult]:
    """Check that *subnets* have free addresses and span two zones; *subject* names them."""
    free_by_zone = count_addresses_by_zone(subnets)
    zones = ", ".join(f"{zone} {number:,} free" for zone, number in free_by_zone.items())
    low_addresses = describe_low_addresses(subnets)
    if len(free_by_zone) < MIN_ZONES:
        message = "select subnets in two or more zones, in case a zone fails or has no capacity"
        yield check.warn(f"{subject}: all subnets are in one zone", message)
    if not sum(free_by_zone.values()):
        yield check.fail(
            f"{subject}: no subnet has a free address", "add subnets, or a secondary CIDR block to the VPC"
        )
    elif low_addresses:
        message, _, remedy = low_addresses.rpartition(": ")
        yield check.warn(f"{subject}: {message}", remedy)
    if len(free_by_zone) >= MIN_ZONES and not low_addresses:
        yield check.accept(f"{subject}: {format_count(len(subnets), 'subnet')}: {zones}")


def check_security_groups(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that each class selects a security group."""
    for class_facts, check, subject in _list_class_checks(facts, "security-groups"):
        security_groups = class_facts.answers.security_groups
        if security_groups is None:
            yield check.skip(
                f"{subject}: security groups", _build_unread_failure(class_facts), "ec2:DescribeSecurityGroups"
            )
        elif not security_groups:
            yield check.fail(f"{subject}: spec.securityGroupSelectorTerms match no security group", RESOLVE_FIX)
        else:
            yield check.accept(
                f"{subject}: {join_names([group.group_id for group in security_groups], MAX_LISTED_NAMES)}"
            )


def check_images(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that there is an image for the cluster's Kubernetes version."""
    for class_facts, check, subject in _list_class_checks(facts, "images"):
        image_answers = class_facts.answers.images
        if image_answers is None:
            message = "ssm:GetParameter, ec2:DescribeImages, eks:DescribeCluster"
            yield check.skip(f"{subject}: images", _build_unread_failure(class_facts), message)
        elif not class_facts.node_class.resolved_images:
            version = class_facts.answers.kubernetes_version
            yield check.fail(f"{subject}: no image for Kubernetes {version or '(unknown version)'}", RESOLVE_FIX)
        else:
            names = join_names([image.image_id for image in class_facts.node_class.resolved_images], MAX_LISTED_NAMES)
            yield check.accept(f"{subject}: {names} for Kubernetes {class_facts.answers.kubernetes_version}")
        for problem in parse_canary_settings(class_facts.node_class).problems:
            yield check.fail(f"{subject}: {problem}", "correct the annotation: until then, no new image is used")
        for identity, because in list_rejections(class_facts.node_class):
            yield check.warn(
                f"{subject}: the canary has rejected {identity}: {because}",
                f"`joiner nodeclass approve {identity}` uses it nevertheless",
            )


def check_volume_sizes(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that each volume is at least as large as the snapshot that it is created from."""
    for class_facts, check, subject in _list_class_checks(facts, "volumes"):
        if isinstance(class_facts.snapshots, ReadFailure):
            yield check.skip(f"{subject}: snapshots of images", class_facts.snapshots, "ec2:DescribeImages")
            continue
        small_volumes = list(dict.fromkeys(_find_small_volumes(class_facts)))
        for device, volume_gib, snapshot_gib in small_volumes:
            field = (
                "spec.blockDeviceMappings"
                if class_facts.node_class.block_devices
                else "spec.blockDeviceMappings is empty and"
            )
            message = (
                f"{subject}: {field} {device} has {volume_gib} GiB, "
                f"but the image's snapshot has {snapshot_gib} GiB: EC2 rejects the launch"
            )
            yield check.fail(message, f"write volumeSize: {snapshot_gib}Gi or more for {device}")
        if not small_volumes and class_facts.snapshots:
            yield check.accept(f"{subject}: volumes are large enough for the images")


def _find_small_volumes(class_facts: NodeClassFacts) -> Iterator[tuple[str, int, int]]:
    family = AMI_FAMILIES.get(class_facts.node_class.ami_family)
    devices = class_facts.node_class.block_devices or (family.default_devices if family is not None else ())
    volume_gib_by_device = {
        block_device.device_name: block_device.volume_size_gib
        for block_device in devices
        if not block_device.snapshot_id
    }
    snapshots = class_facts.snapshots if not isinstance(class_facts.snapshots, ReadFailure) else ()
    for _, device, snapshot_gib in snapshots:
        volume_gib = volume_gib_by_device.get(device)
        if volume_gib is not None and volume_gib < snapshot_gib:
            yield device, volume_gib, snapshot_gib


def check_launch_dry_run(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check with a dry run that EC2 would allow a launch.

    A permission that only the caller lacks does not affect the functions.
    """
    for class_facts, check, subject in _list_class_checks(facts, "launch"):
        if class_facts.refusals is None:
            continue
        if isinstance(class_facts.refusals, ReadFailure):
            yield check.skip(f"{subject}: launch dry run", class_facts.refusals, "ec2:RunInstances and ec2:CreateFleet")
            continue
        for refusal in class_facts.refusals:
            message = f"ec2:{refusal.action}: {refusal.code}: {refusal.message}"
            if refusal.code.startswith(_DENIED_CODES):
                failure = ReadFailure(reason=f"{message} (your permission, not that of the functions)", is_denied=True)
                yield check.skip(f"{subject}: launch dry run", failure, f"ec2:{refusal.action}")
            else:
                yield check.fail(f"{subject}: {message}", RESOLVE_FIX)
        if not class_facts.refusals:
            yield check.accept(f"{subject}: EC2 allows a launch (dry run)")


def _list_class_checks(facts: DoctorFacts, check: str) -> Iterator[tuple[NodeClassFacts, CheckReporter, str]]:
    for class_facts in facts.account.node_classes if facts.account is not None else ():
        yield class_facts, CheckReporter(check), f"EC2NodeClass {class_facts.node_class.name}"


def _build_unread_failure(class_facts: NodeClassFacts) -> ReadFailure:
    reason = "; ".join(class_facts.errors) or "AWS did not respond"
    return ReadFailure(
        reason=reason, is_denied="Forbidden" in reason, fix=SIGN_IN_HINT if is_credential_error(reason) else ""
    )
