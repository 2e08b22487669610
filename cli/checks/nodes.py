"""NodePools and EC2NodeClasses: whether nodes could be made of them here and now."""

from collections.abc import Iterator, Sized
from typing import Final

from cli.checks.facts import ClassFacts, Facts, Unseen
from cli.checks.findings import Finding, Findings
from cli.remedies import SIGN_IN, is_unsigned
from cli.text import count, some
from shared.launch.families import FAMILIES
from shared.model.ec2 import Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import condition

FEW_ADDRESSES: Final = 16
"""Each node takes several: two zones of so few are soon full."""
ZONES: Final = 2
NAMED: Final = 3
RESOLVE: Final = "`joiner nodeclass resolve -f FILE --cluster NAME` shows what it comes to"
_DENIED: Final = ("Unauthorized", "AccessDenied", "AuthFailure")


def pools(facts: Facts) -> Iterator[Finding]:
    """Are there NodePools, ready ones, with a class each?"""
    if facts.kubernetes is None:
        return
    found, say = facts.kubernetes.node_pools, Findings("nodepools")
    yield from _absent("NodePool", found, "list on nodepools.karpenter.sh", say, facts)
    for one in () if isinstance(found, Unseen) else found:
        ready = condition(one.conditions, "Ready")
        if ready is None:
            yield say.warn(f"NodePool {one.name} has no status", "wait a minute; then see whether `lifecycle` runs")
        elif ready.status != "True":
            wrong = [each for each in one.conditions if each.status == "False" and each.type != "Ready"]
            why = "; ".join(filter(None, (each.message or each.reason for each in wrong))) or ready.message
            yield say.fail(f"NodePool {one.name} is not ready: {why}", f"`joiner explain nodepool {one.name}`")
        else:
            yield say.ok(f"NodePool {one.name} is ready")
    for line in facts.kubernetes.told:
        yield say.fail(line, "correct it: it is left out until then")


def classes(facts: Facts) -> Iterator[Finding]:
    """Do the functions find everything for each class, and does EC2 let them launch? As its status says."""
    if facts.kubernetes is None:
        return
    found, say = facts.kubernetes.node_classes, Findings("nodeclasses")
    yield from _absent("EC2NodeClass", found, "list on ec2nodeclasses.karpenter.k8s.aws", say, facts)
    for one in () if isinstance(found, Unseen) else found:
        yield _status(one, say, facts)


def _absent(kind: str, found: Sized | Unseen, right: str, say: Findings, facts: Facts) -> Iterator[Finding]:
    """Iterate over what there is to say where no object of *kind* is there, or was seen."""
    if isinstance(found, Unseen):
        yield say.unseen(f"objects of kind {kind}", found, right)
    elif not found:
        made = say.later if facts.is_installed is False else say.warn
        yield made(f"there is no {kind}", "write one: docs/guide/getting-started.md")


def _status(one: EC2NodeClass, say: Findings, facts: Facts) -> Finding:
    wrong = [each for each in one.conditions if each.status == "False" and each.type != "Ready"]
    if wrong:
        why = "; ".join(f"{each.type}: {each.message or each.reason}" for each in wrong)
        return say.fail(f"EC2NodeClass {one.name}: {why}", RESOLVE)
    if one.is_ready():
        return say.ok(f"EC2NodeClass {one.name} is ready: the functions may launch from it")
    if facts.is_installed is False:
        return say.later(f"EC2NodeClass {one.name} was not looked at by the functions yet", "deploy the stack")
    what = f"EC2NodeClass {one.name} was not looked at as it is now"
    return say.warn(what, "wait five minutes; then see whether `catalog` runs")


def discovery(facts: Facts) -> Iterator[Finding]:
    """Before there is a class: is there something tagged that the usual one would select?"""
    if facts.account is None or not _is_without_classes(facts):
        return
    tagged, say, cluster = facts.account.discovered, Findings("discovery"), facts.account.cluster
    if isinstance(tagged, Unseen):
        yield say.unseen("tags of subnets and groups", tagged, "ec2:DescribeSubnets and ec2:DescribeSecurityGroups")
        return
    subnets, groups = tagged
    ids = {"subnet": facts.plane.subnet_ids if facts.plane else (), "security group": _group_of(facts)}
    for kind, found in (("subnet", subnets), ("security group", groups)):
        tag = f"--tags Key=karpenter.sh/discovery,Value={cluster}"
        command = f"aws ec2 create-tags --resources {' '.join(ids[kind]) or 'ID ...'} {tag}"
        if not found:
            yield say.warn(f"no {kind} has the tag karpenter.sh/discovery={cluster}", f"{command}, or select by id")
        else:
            yield say.ok(f"{count(len(found), kind)} tagged karpenter.sh/discovery={cluster}")


def _is_without_classes(facts: Facts) -> bool:
    """Whether there is no class, or none can be expected yet."""
    if facts.kubernetes is None:
        return facts.is_installed is False
    return facts.kubernetes.node_classes == ()


def _group_of(facts: Facts) -> tuple[str, ...]:
    return (facts.plane.security_group_id,) if facts.plane is not None and facts.plane.security_group_id else ()


def subnets(facts: Facts) -> Iterator[Finding]:
    """Is there room for nodes, in two zones?"""
    for one, say, who in _each(facts, "subnets"):
        found = one.found.subnets
        if found is None:
            yield say.unseen(f"{who}: subnets", _unasked(one), "ec2:DescribeSubnets")
        elif not found:
            yield say.fail(f"{who}: spec.subnetSelectorTerms matched nothing", RESOLVE)
        else:
            yield from _room(who, found, say)


def _room(who: str, found: tuple[Subnet, ...], say: Findings) -> Iterator[Finding]:
    free: dict[str, int] = {}
    for one in found:
        free[one.zone] = free.get(one.zone, 0) + one.available_ip_count
    zones = ", ".join(f"{zone} {number:,} free" for zone, number in sorted(free.items()))
    full = sorted(zone for zone, number in free.items() if number < FEW_ADDRESSES)
    if len(free) < ZONES:
        yield say.warn(
            f"{who}: all subnets are in one zone", "select subnets of two zones: one may fail, or be sold out"
        )
    if not sum(free.values()):
        yield say.fail(f"{who}: no subnet has a free address", "add subnets, or a secondary block to the VPC")
    elif full:
        yield say.warn(
            f"{who}: few addresses left in {', '.join(full)}", "add subnets, or use prefix delegation sparingly"
        )
    if len(free) >= ZONES and not full:
        yield say.ok(f"{who}: {count(len(found), 'subnet')}: {zones}")


def security_groups(facts: Facts) -> Iterator[Finding]:
    """Is there a group for the nodes?"""
    for one, say, who in _each(facts, "security-groups"):
        found = one.found.security_groups
        if found is None:
            yield say.unseen(f"{who}: security groups", _unasked(one), "ec2:DescribeSecurityGroups")
        elif not found:
            yield say.fail(f"{who}: spec.securityGroupSelectorTerms matched nothing", RESOLVE)
        else:
            yield say.ok(f"{who}: {some([group.group_id for group in found], NAMED)}")


def images(facts: Facts) -> Iterator[Finding]:
    """Is there an image for the cluster's version, and is the root volume as large as what it begins with?"""
    for one, say, who in _each(facts, "images"):
        found = one.found.images
        if found is None:
            yield say.unseen(
                f"{who}: images", _unasked(one), "ssm:GetParameter, ec2:DescribeImages, eks:DescribeCluster"
            )
        elif not one.node_class.resolved_images:
            version = one.found.kubernetes_version
            yield say.fail(f"{who}: there is no image for Kubernetes {version or 'of the cluster'}", RESOLVE)
        else:
            names = some([image.image_id for image in one.node_class.resolved_images], NAMED)
            yield say.ok(f"{who}: {names} for Kubernetes {one.found.kubernetes_version}")


def root_volumes(facts: Facts) -> Iterator[Finding]:
    """Is each volume as large as the snapshot it is made of?"""
    for one, say, who in _each(facts, "volumes"):
        if isinstance(one.snapshots, Unseen):
            yield say.unseen(f"{who}: snapshots of images", one.snapshots, "ec2:DescribeImages")
            continue
        small = list(dict.fromkeys(_too_small(one)))
        for device, has, needs in small:
            field = (
                "spec.blockDeviceMappings" if one.node_class.block_devices else "spec.blockDeviceMappings is empty and"
            )
            what = f"{who}: {field} {device} has {has} GiB, and the image's snapshot {needs} GiB: EC2 starts nothing"
            yield say.fail(what, f"write volumeSize: {needs}Gi or more for {device}")
        if not small and one.snapshots:
            yield say.ok(f"{who}: volumes are as large as the images' snapshots")


def _too_small(one: ClassFacts) -> Iterator[tuple[str, int, int]]:
    family = FAMILIES.get(one.node_class.ami_family)
    devices = one.node_class.block_devices or (family.default_devices if family is not None else ())
    sizes = {each.device_name: each.volume_size_gib for each in devices if not each.snapshot_id}
    snapshots = one.snapshots if not isinstance(one.snapshots, Unseen) else ()
    for _, device, needs in snapshots:
        has = sizes.get(device)
        if has is not None and has < needs:
            yield device, has, needs


def launches(facts: Facts) -> Iterator[Finding]:
    """Would EC2 let you launch, asked with DryRun? What only you may not, says nothing of the functions."""
    for one, say, who in _each(facts, "launch"):
        if one.refusals is None:
            continue
        if isinstance(one.refusals, Unseen):
            yield say.unseen(f"{who}: a launch (DryRun)", one.refusals, "ec2:RunInstances and ec2:CreateFleet")
            continue
        for refusal in one.refusals:
            what = f"ec2:{refusal.action}: {refusal.code}: {refusal.message}"
            if refusal.code.startswith(_DENIED):
                denied = Unseen(why=f"{what} (this is your right, not the functions')", is_denied=True)
                yield say.unseen(f"{who}: a launch (DryRun)", denied, f"ec2:{refusal.action}")
            else:
                yield say.fail(f"{who}: {what}", RESOLVE)
        if not one.refusals:
            yield say.ok(f"{who}: EC2 would launch (DryRun)")


def _each(facts: Facts, check: str) -> Iterator[tuple[ClassFacts, Findings, str]]:
    for one in facts.account.classes if facts.account is not None else ():
        yield one, Findings(check), f"EC2NodeClass {one.node_class.name}"


def _unasked(one: ClassFacts) -> Unseen:
    why = "; ".join(one.told) or "AWS did not answer"
    return Unseen(why=why, is_denied="Forbidden" in why, remedy=SIGN_IN if is_unsigned(why) else "")
