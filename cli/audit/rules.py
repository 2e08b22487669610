"""Audit rules: which of Joiner's resources are leaked; each with its owner, age, price and fix."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from cli.audit.assets import Asset, AuditEvidence
from cli.facts.model import ReadFailure
from shared.decide.launch.fleets.launch_template import TEMPLATE_NAME_PREFIX
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import ObjectMeta, Pairs
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node

EVENTUAL_CONSISTENCY_DELAY: Final = timedelta(minutes=5)
"""EC2 and the API server may show a new instance at different times."""
DELETION_TIMEOUT: Final = timedelta(hours=1)
"""A deletion that takes longer is stuck. A launch template that is kept for the next launch is not leaked."""
GP3_USD_PER_GIB_MONTH: Final = 0.08
"""USD for one GiB of a gp3 volume, the type that Joiner creates; other types and regions differ by up to 50 %."""
HOURS_PER_MONTH: Final = 730


def list_assets(evidence: AuditEvidence) -> tuple[Asset, ...]:
    """Return all assets: leaked ones first, then by kind and name.

    A resource that an unseen part might account for is not reported as leaked.
    """
    assets = [asset for audit_part in _AUDITS for asset in audit_part(evidence)]
    return tuple(sorted(assets, key=lambda asset: (not asset.is_leaked, asset.kind, asset.name)))


def _audit_instances(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.instances, ReadFailure) or isinstance(evidence.cluster_state, ReadFailure):
        return
    node_claims_by_instance = {
        node_claim.instance_id: node_claim
        for node_claim in evidence.cluster_state.snapshot.node_claims
        if node_claim.is_launched()
    }
    prices = evidence.cluster_state.price_list
    for instance in (
        present_instance for present_instance in evidence.instances if not present_instance.is_terminating()
    ):
        age = evidence.now - instance.launched_at
        node_claim = node_claims_by_instance.get(instance.instance_id)
        owner = (
            f"NodeClaim {node_claim.name}"
            if node_claim is not None
            else ""
            if age > EVENTUAL_CONSISTENCY_DELAY
            else "a launch in progress"
        )
        labels: Pairs = (
            (CAPACITY_TYPE, instance.capacity_type),
            (INSTANCE_TYPE, instance.instance_type),
            (NODEPOOL, instance.get_tag(NODEPOOL)),
            (ZONE, instance.zone),
        )
        price = prices.get_price(
            ObjectMeta(name="", labels=tuple(sorted(labels))), instance.get_tag("karpenter.k8s.aws/ec2nodeclass")
        )
        leak_reason = "it has no NodeClaim; if `lifecycle` runs, it terminates the instance within minutes"
        fix = f"aws ec2 terminate-instances --instance-ids {instance.instance_id}"
        yield _build_asset("Instance", instance.instance_id, owner, leak_reason, fix, age, price)


def _audit_node_claims(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.cluster_state, ReadFailure):
        return
    instance_ids = (
        None
        if isinstance(evidence.instances, ReadFailure)
        else {instance.instance_id for instance in evidence.instances}
    )
    pool_names = {node_pool.name for node_pool in evidence.cluster_state.snapshot.node_pools}
    for node_claim in evidence.cluster_state.snapshot.node_claims:
        leak_reason, fix = _find_claim_leak(node_claim, pool_names, instance_ids, evidence.now)
        pool = node_claim.meta.get_label(NODEPOOL)
        yield _build_asset(
            "NodeClaim",
            node_claim.name,
            "" if leak_reason else f"NodePool {pool}",
            leak_reason,
            fix,
            _compute_age(node_claim.meta, evidence.now),
        )


def _find_claim_leak(
    node_claim: NodeClaim, pool_names: set[str], instance_ids: set[str] | None, now: datetime
) -> tuple[str, str]:
    age = _compute_age(node_claim.meta, now) or timedelta()
    if node_claim.meta.deleted_at is not None:
        if now - node_claim.meta.deleted_at > DELETION_TIMEOUT:
            finalizers = ", ".join(node_claim.meta.finalizers) or "no finalizer"
            return (
                f"deleting for over an hour, held by {finalizers}",
                f"joiner explain nodeclaim {node_claim.name} --context",
            )
        return "", ""
    if (
        node_claim.is_launched()
        and instance_ids is not None
        and node_claim.instance_id not in instance_ids
        and age > EVENTUAL_CONSISTENCY_DELAY
    ):
        return f"its instance does not exist: {node_claim.instance_id}", f"kubectl delete nodeclaim {node_claim.name}"
    if node_claim.meta.get_label(NODEPOOL) not in pool_names:
        return "its NodePool does not exist", f"kubectl delete nodeclaim {node_claim.name}"
    return "", ""


def _audit_nodes(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.cluster_state, ReadFailure):
        return
    for state_node in evidence.cluster_state.nodes:
        if state_node.node is None or not (state_node.pool or state_node.claim is not None):
            continue
        yield _build_node_asset(
            state_node.node, f"NodeClaim {state_node.claim.name}" if state_node.claim is not None else "", evidence.now
        )


def _build_node_asset(node: Node, owner: str, now: datetime) -> Asset:
    finalizer_note = f", held by {', '.join(node.meta.finalizers)}" if node.meta.finalizers else ""
    leak_reason = f"labelled with NodePool {node.meta.get_label(NODEPOOL)}, but it has no NodeClaim{finalizer_note}"
    age = _compute_age(node.meta, now)
    is_young = age is not None and age <= EVENTUAL_CONSISTENCY_DELAY
    return _build_asset(
        "Node",
        node.name,
        owner or ("a launch in progress" if is_young else ""),
        leak_reason,
        _build_delete_command("node", node),
        age,
    )


def _build_delete_command(kind: str, node: Node) -> str:
    """Return the kubectl command that deletes the object.

    If it is already deleting, only its finalizers are removed.
    """
    if node.meta.deleted_at is None:
        return f"kubectl delete {kind} {node.name}"
    return f"""kubectl patch {kind} {node.name} --type merge -p '{{"metadata": {{"finalizers": null}}}}'"""


def _audit_node_classes(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.cluster_state, ReadFailure):
        return
    used_names = {node_claim.node_class.name for node_claim in evidence.cluster_state.snapshot.node_claims}
    for node_class in evidence.cluster_state.snapshot.node_classes:
        deleted_at = node_class.meta.deleted_at
        is_stuck = (
            deleted_at is not None
            and evidence.now - deleted_at > DELETION_TIMEOUT
            and node_class.meta.name not in used_names
        )
        leak_reason = (
            f"deleting for over an hour, held by {', '.join(node_class.meta.finalizers)}, but no NodeClaim uses it"
        )
        fix = "joiner doctor  # check that `lifecycle` runs"
        yield _build_asset(
            "EC2NodeClass",
            node_class.meta.name,
            "" if is_stuck else "you",
            leak_reason,
            fix,
            _compute_age(node_class.meta, evidence.now),
        )


def _audit_launch_templates(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.templates, ReadFailure):
        return
    for template in evidence.templates:
        if template.name.startswith(f"{TEMPLATE_NAME_PREFIX}/{evidence.cluster_name}/"):
            age = None if template.created_at is None else evidence.now - template.created_at
            owner = "launches" if age is None or age <= DELETION_TIMEOUT or evidence.is_installed is not False else ""
            leak_reason = "Joiner is no longer installed"
            fix = f"aws ec2 delete-launch-template --launch-template-name {template.name}"
            yield _build_asset("LaunchTemplate", template.name, owner, leak_reason, fix, age)


def _audit_attached_resources(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.attached, ReadFailure) or isinstance(evidence.instances, ReadFailure):
        return
    instance_ids = {instance.instance_id for instance in evidence.instances if not instance.is_terminating()}
    for resource in evidence.attached:
        age = None if resource.created_at is None else evidence.now - resource.created_at
        is_young = age is not None and age <= EVENTUAL_CONSISTENCY_DELAY
        owner = f"instance {resource.instance_id}" if resource.instance_id else ""
        if not owner and (is_young or resource.made_for_instance_id in instance_ids):
            owner = (
                f"instance {resource.made_for_instance_id}" if resource.made_for_instance_id else "a launch in progress"
            )
        price = resource.size_gib * GP3_USD_PER_GIB_MONTH / HOURS_PER_MONTH
        yield _build_asset(
            resource.kind,
            resource.name,
            owner,
            "not attached to an instance",
            _DELETE_COMMANDS[resource.kind](resource.name),
            age,
            price,
        )


_DELETE_COMMANDS: Final[dict[str, Callable[[str], str]]] = {
    "Volume": lambda name: f"aws ec2 delete-volume --volume-id {name}",
    "NetworkInterface": lambda name: f"aws ec2 delete-network-interface --network-interface-id {name}",
    "Queue": lambda name: f"aws sqs delete-queue --queue-url {name}",
    "InstanceProfile": lambda name: f"aws iam delete-instance-profile --instance-profile-name {name}",
}


def _audit_named_resources(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.named_resources, ReadFailure) or evidence.is_installed is None:
        return
    for resource in evidence.named_resources:
        owner = "the installation" if evidence.is_installed else ""
        age = None if resource.created_at is None else evidence.now - resource.created_at
        yield _build_asset(
            resource.kind,
            resource.name,
            owner,
            "Joiner is no longer installed",
            _DELETE_COMMANDS[resource.kind](resource.name),
            age,
        )


def _audit_commands(evidence: AuditEvidence) -> Iterator[Asset]:
    if isinstance(evidence.commands, ReadFailure):
        return
    for name, command_state in evidence.commands:
        if command_state is None:
            yield _build_asset(
                "Command", name, "", "its row in the table cannot be read", "nothing to do: Joiner cancels the command"
            )
        elif command_state.is_open:
            age = evidence.now - command_state.proposed_at
            owner = "`disrupt`" if age <= 2 * DELETION_TIMEOUT else ""
            leak_reason = f"{command_state.phase} for over two hours: {command_state.message}"
            yield _build_asset("Command", name, owner, leak_reason, f"joiner explain command {name}", age)


_AUDITS: Final[tuple[Callable[[AuditEvidence], Iterable[Asset]], ...]] = (
    _audit_instances,
    _audit_node_claims,
    _audit_nodes,
    _audit_node_classes,
    _audit_launch_templates,
    _audit_attached_resources,
    _audit_named_resources,
    _audit_commands,
)


def _build_asset(
    kind: str,
    name: str,
    owner: str,
    leak_reason: str,
    fix: str,
    age: timedelta | None = None,
    usd_per_hour: float = 0.0,
) -> Asset:
    if owner:
        return Asset(kind=kind, name=name, owner=owner, age=age, usd_per_hour=usd_per_hour)
    return Asset(kind=kind, name=name, owner="", leak_reason=leak_reason, fix=fix, age=age, usd_per_hour=usd_per_hour)


def _compute_age(meta: ObjectMeta, now: datetime) -> timedelta | None:
    return None if meta.created_at is None else now - meta.created_at
