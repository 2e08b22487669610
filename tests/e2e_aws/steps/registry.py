"""All steps in order: launches without Joiner, the deployment, nodes, upkeep, updates, removal."""

from collections.abc import Iterable
from typing import Final

from tests.e2e_aws.budget import FIS_USD_PER_ACTION_MINUTE, STACK_USD_PER_HOUR, CostItem, build_instance_cost
from tests.e2e_aws.steps.deployment import (
    audit_leaks,
    check_access_entries,
    check_alarms,
    deploy_stack,
    destroy_stack,
    roll_back_broken_version,
    roll_out_next_version,
)
from tests.e2e_aws.steps.interruption import interrupt_spot_node
from tests.e2e_aws.steps.launches import (
    FLEET_COUNT,
    MAX_FLEET_SECONDS,
    check_dry_runs,
    check_exceeded_quota,
    check_repeated_token,
    measure_fleets,
)
from tests.e2e_aws.steps.nodes import (
    AL2023_AMD64,
    AL2023_ARM64,
    BOTTLEROCKET,
    MAX_TAINT_SECONDS,
    SPOT,
    build_node_check,
)
from tests.e2e_aws.steps.permissions import check_permissions
from tests.e2e_aws.steps.reservations import check_reservation_filters
from tests.e2e_aws.steps.step import Step
from tests.e2e_aws.steps.upkeep import collect_orphan, watch_idle_hour

MAX_STACK_HOURS: Final = 6
NODE_MINUTES: Final = 25
"""At most: ten minutes until the pod runs, fifteen for the removal."""
_NODE_COST: Final = build_instance_cost(1, NODE_MINUTES)
_AFTER_DEPLOYMENT: Final = ("deploy",)
REFUSED_INSTANCE_COST: Final = CostItem(
    description="no instance; if EC2 launched it against the quota, one m8g.48xlarge for one minute", usd=0.15
)

ALL_STEPS: Final[tuple[Step, ...]] = (
    Step(
        id="dry-runs",
        question="What do CreateLaunchTemplate, RunInstances and CreateFleet answer to DryRun?",
        expectation="DryRunOperation; for CreateFleet also that its launch template does not exist",
        run=check_dry_runs,
    ),
    Step(
        id="reservation-filters",
        question="Does DescribeCapacityReservations accept the filters that Joiner sends, and do they select?",
        expectation="each query selects the reservation, a query for another match criterion does not",
        run=check_reservation_filters,
        costs=(CostItem(description="a capacity reservation of 1 m6g.medium for at most 15 minutes", usd=0.012),),
    ),
    Step(
        id="repeated-token",
        question="What does CreateFleet answer to a repeated ClientToken, also after its template was deleted?",
        expectation="any answer, but one instance altogether",
        run=check_repeated_token,
        costs=(build_instance_cost(3, 20, is_small=True),),
    ),
    Step(
        id="fleet-times",
        question=f"How long does CreateFleet take for 1 and for {FLEET_COUNT} instances?",
        expectation=f"below {MAX_FLEET_SECONDS}s, all instances",
        run=measure_fleets,
        costs=(build_instance_cost(1 + FLEET_COUNT, 20, is_small=True),),
    ),
    Step(
        id="exceeded-quota",
        question="Which error does CreateFleet return for an exceeded vCPU quota?",
        expectation="VcpuLimitExceeded and no instance",
        run=check_exceeded_quota,
        costs=(REFUSED_INSTANCE_COST,),
    ),
    Step(
        id="deploy",
        question="Is the stack deployed?",
        expectation="CREATE_COMPLETE, and the API server serves the CRDs",
        run=deploy_stack,
        costs=(
            CostItem(
                description=f"the stack of Joiner for at most {MAX_STACK_HOURS} hours",
                usd=STACK_USD_PER_HOUR * MAX_STACK_HOURS,
            ),
        ),
    ),
    Step(
        id="access-entries",
        question="Which access entries has the cluster after the first deployment?",
        expectation="one of type STANDARD in the group joiner:functions for each function, EC2_LINUX for the nodes",
        run=check_access_entries,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="can-i",
        question="Does the API server allow the functions what their ClusterRole lists, and nothing else?",
        expectation="all permissions of the ClusterRole are allowed, secrets and other writes are not",
        run=check_permissions,
        requires=_AFTER_DEPLOYMENT,
    ),
    *(
        Step(
            id=f"node-{request.name}",
            question=f"Does a pod run on a new {title} node?",
            expectation="a node with this architecture and capacity type joins, and the pod runs within ten minutes",
            run=build_node_check(request),
            costs=(_NODE_COST,),
            requires=_AFTER_DEPLOYMENT,
        )
        for request, title in (
            (AL2023_AMD64, "AL2023 amd64"),
            (AL2023_ARM64, "AL2023 arm64"),
            (BOTTLEROCKET, "Bottlerocket"),
            (SPOT, "Spot"),
        )
    ),
    Step(
        id="spot-interruption",
        question="How many seconds after a Spot interruption by FIS has the node Joiner's taint?",
        expectation=f"at most {MAX_TAINT_SECONDS}s; then the node is removed",
        run=interrupt_spot_node,
        costs=(
            build_instance_cost(2, NODE_MINUTES),  # the interrupted node and its replacement
            CostItem(description="a FIS experiment with one action of 2 minutes", usd=2 * FIS_USD_PER_ACTION_MINUTE),
        ),
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="alarms",
        question="Which alarms are raised after the first deployment?",
        expectation="none ten minutes after the deployment or later",
        run=check_alarms,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="idle-hour",
        question="What happens in an hour without changes?",
        expectation="no instance, no NodeClaim, no error in the journal, no alarm, no dead letter",
        run=watch_idle_hour,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="canary",
        question="Does a new version replace the old one after the canary phase?",
        expectation="UPDATE_COMPLETE, all aliases lead to the new version",
        run=roll_out_next_version,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="orphan",
        question="Does Joiner terminate an instance with its tags that has no NodeClaim?",
        expectation="terminated within ten minutes",
        run=collect_orphan,
        costs=(build_instance_cost(1, NODE_MINUTES, is_small=True),),
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="rollback",
        question="Is a version whose functions fail rolled back?",
        expectation="UPDATE_ROLLBACK_COMPLETE because of the alarm, all aliases lead to the previous version",
        run=roll_back_broken_version,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="destroy",
        question="Is the stack deleted with its nodes?",
        expectation="no stack remains",
        run=destroy_stack,
        requires=_AFTER_DEPLOYMENT,
    ),
    Step(
        id="audit",
        question="What does joiner audit find after the deletion?",
        expectation="no leaked resources except unused launch templates",
        run=audit_leaks,
        requires=("deploy", "destroy"),
    ),
)


def select_steps(ids: Iterable[str]) -> tuple[Step, ...]:
    """Return the steps *ids* and the steps that they require, in order; without *ids* all steps.

    Raises:
        ValueError: there is no such step.
    """
    selected = set(ids)
    unknown = sorted(selected - {step.id for step in ALL_STEPS})
    if unknown:
        raise ValueError(f"unknown step {', '.join(unknown)}: --list shows the steps")
    if not selected:
        return ALL_STEPS
    for step in reversed(ALL_STEPS):
        if step.id in selected:
            selected.update(step.requires)
    return tuple(step for step in ALL_STEPS if step.id in selected)
