"""Two stacks, the usual one and one with everything chosen, and what is looked for in them."""

from typing import Any

from infra.application import application
from tests.infra.policies import Template, several, statements

FUNCTIONS = {"provision", "lifecycle", "disrupt", "interrupt", "catalog"}
ALL = FUNCTIONS | {"installer"}
FOLLOWED_UP = FUNCTIONS - {"interrupt"}
"""Whoever works only when EC2 announces something is woken by nobody else."""
TICKS = {
    "provision": "rate(1 minute)",
    "lifecycle": "rate(1 minute)",
    "disrupt": "rate(1 minute)",
    "catalog": "rate(5 minutes)",
}
ANNOUNCED = {
    ("aws.health", "AWS Health Event"),
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
PRIVATE = {
    "joiner:cluster": "prod",
    "joiner:network": "private",
    "joiner:subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "joiner:security-groups": "sg-0123456789abcdef0",
    "joiner:node-roles": "KarpenterNodeRole-prod",
    "joiner:ssm-parameters": "/images/golden",
    "joiner:windows": "true",
    "joiner:permissions-boundary": "arn:aws:iam::111122223333:policy/limits",
    "joiner:alarm-topic": "arn:aws:sns:us-east-1:111122223333:pager",
    "joiner:report-topic": "arn:aws:sns:us-east-1:111122223333:costs",
    "joiner:mode": "plan",
    "joiner:log-days": "7",
    "joiner:price-age-alarm-hours": "0",
}


def synthesis(outdir: str, context: dict[str, object]) -> Template:
    assembly = application(bundle=False, outdir=outdir, context=context).synth()  # raises where cdk-nag objects
    template: Template = assembly.stacks[0].template
    return template


def allowed(template: Template, action: str) -> set[str]:
    return {function for function, statement in statements(template) if action in several(statement["Action"])}


def statement(template: Template, function: str, sid: str) -> dict[str, Any]:
    [found] = [each for owner, each in statements(template) if owner == function and each.get("Sid") == sid]
    return found
