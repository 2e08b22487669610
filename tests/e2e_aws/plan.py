"""The plan that is printed first: what each step creates, and the maximum cost."""

from collections.abc import Sequence

from tests.e2e_aws.budget import compute_total_usd
from tests.e2e_aws.environment import NAMESPACE, PREFIX, TAINT_KEY, get_stack_name
from tests.e2e_aws.steps.step import Step


def compute_max_usd(steps: Sequence[Step]) -> float:
    """Return the maximum cost of *steps*."""
    return compute_total_usd(cost for step in steps for cost in step.costs)


def render_plan(steps: Sequence[Step], cluster: str, region: str, idle_minutes: int) -> str:
    """Render what *steps* create on *cluster*, and the cost of each."""
    stack = get_stack_name(cluster or "CLUSTER")
    lines = [
        f"Test of Joiner on cluster {cluster or 'CLUSTER'} in {region or 'REGION'}",
        "",
        f"It creates the stack {stack}, the namespace {NAMESPACE}, and with the prefix {PREFIX} launch templates,",
        f"instances, a role, NodePools and EC2NodeClasses. Their nodes have the taint {TAINT_KEY}.",
        f"Everything is removed at the end, also after a failure. The idle period takes {idle_minutes} minutes.",
        "",
    ]
    for step in steps:
        usd = compute_total_usd(step.costs)
        lines.append(f"  {step.id:20} {f'${usd:.2f}' if step.costs else 'reads':>6}  {step.question}")
        lines += [f"{'':30}creates {cost.description}" for cost in step.costs]
    lines += ["", f"Maximum cost: ${compute_max_usd(steps):.2f} (list prices of us-east-1, and half as much again)"]
    return "\n".join(lines)
