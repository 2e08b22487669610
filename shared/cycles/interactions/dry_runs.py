"""Dry runs of launches: made by the role that launches, stored for half an hour, and read by all functions.

Only the role that launches can ask whether a launch is allowed, so `provision` makes the dry runs and `catalog` reads
the results. Until there is a result, nothing counts as refused: the launch itself would report the error, only later
and on a NodeClaim.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.decide.node_class.dry_run import build_dry_run_request, build_refusal_findings
from shared.errors import Fault
from shared.model.cloud_provider.node_class_findings import DryRunResult
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import Action, FollowUp
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.world import World
from shared.store.dry_runs import DRY_RUN_KIND, compute_dry_run_key, decode_dry_run_result

DRY_RUN_INTERVAL: Final = timedelta(minutes=30)
REFUSED_DRY_RUN_INTERVAL: Final = timedelta(minutes=5)
"""After a refusal: a correction takes effect without a wait of half an hour."""
_ROW_TTL: Final = timedelta(days=1)


def run_dry_runs(cluster: ClusterSnapshot, world: World, problems: list[Problem]) -> tuple[Action, ...]:
    """Make dry runs for node classes that are ready or were refused and are due; return the follow-up for catalog.

    A fault is added to *problems*, and the next invocation tries again. In mode plan, and where dry runs are disabled,
    none are made.
    """
    facts = cluster.facts
    if facts is None or world.settings.mode != "active" or world.settings.disable_dry_run:
        return ()
    changed = [
        node_class.name
        for node_class in cluster.node_classes
        if _has_changed(node_class, cluster, facts, world, problems)
    ]
    reason = f"the dry runs of EC2 changed for EC2NodeClass {', '.join(changed)}"
    return (FollowUp(function="catalog", after=timedelta(), message=reason),) if changed else ()


def _has_changed(
    node_class: EC2NodeClass, cluster: ClusterSnapshot, facts: ControlPlaneFacts, world: World, problems: list[Problem]
) -> bool:
    try:
        return _run_dry_run(node_class, cluster, facts, world)
    except Fault as fault:
        message = f"EC2 dry runs failed: {type(fault).__name__}: {fault}"
        problems.append(Problem(kind="EC2NodeClass", name=node_class.name, message=message))
    except ValueError:
        pass  # the user data: catalog reports the error
    return False


def _run_dry_run(node_class: EC2NodeClass, cluster: ClusterSnapshot, facts: ControlPlaneFacts, world: World) -> bool:
    """Make a dry run if it is due, store the result, and return whether its findings changed.

    Raises:
        Fault: EC2 or the table did not respond.
        ValueError: the user data cannot be built.
    """
    row = world.table.read(DRY_RUN_KIND, node_class.name)
    previous_result = decode_dry_run_result(row, node_class)
    previous_findings = build_refusal_findings(
        node_class, previous_result.refusals if previous_result is not None else ()
    )
    if not (node_class.is_ready() or previous_findings) or (
        previous_result is not None and world.clock() < previous_result.again_at
    ):
        return False
    types = cluster.catalog.get_instance_types(node_class.name) if cluster.catalog is not None else ()
    request = build_dry_run_request(node_class, facts, types, cluster.node_pools)
    if request is None:
        return False
    refusals = world.ec2.dry_run_launch(request)
    current_findings, now = build_refusal_findings(node_class, refusals), world.clock()
    result = DryRunResult(
        key=compute_dry_run_key(node_class),
        refusals=refusals,
        again_at=now + (REFUSED_DRY_RUN_INTERVAL if current_findings else DRY_RUN_INTERVAL),
    )
    body = msgspec.json.encode(result).decode()
    version = row.version if row is not None else 0
    world.table.write(DRY_RUN_KIND, node_class.name, body, version=version, expires_at=now + _ROW_TTL)
    return previous_findings != current_findings
