"""Two stacks, the default one and one with every setting changed, and queries on them."""

from collections.abc import Mapping
from typing import Any

from infra.settings.load import load_options
from infra.stack.application import build_application
from sim.authorization.template_policies import Template, iterate_statements
from tests.infra.policies import as_list

FUNCTIONS = {"provision", "lifecycle", "disrupt", "interrupt", "catalog", "watch"}
ALL = FUNCTIONS | {"installer"}
FOLLOWED_UP = FUNCTIONS - {"interrupt"}
"""A function that reacts only to announcements of EC2 is woken by no other function."""
TICKS = {
    "provision": "rate(1 minute)",
    "lifecycle": "rate(1 minute)",
    "disrupt": "rate(1 minute)",
    "catalog": "rate(5 minutes)",
    "watch": "rate(1 minute)",
}
ANNOUNCED = {
    ("aws.health", "AWS Health Event"),
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
PRIVATE = {
    "cluster": "prod",
    "network": "private",
    "subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "security-groups": "sg-0123456789abcdef0",
    "node-roles": "KarpenterNodeRole-prod",
    "ssm-parameters": "/images/golden",
    "windows": "true",
    "permissions-boundary": "arn:aws:iam::111122223333:policy/limits",
    "alarm-topic": "arn:aws:sns:us-east-1:111122223333:pager",
    "report-topic": "arn:aws:sns:us-east-1:111122223333:costs",
    "mode": "plan",
    "log-days": "7",
    "price-age-alarm-hours": "0",
}


def synthesize_stack(outdir: str, settings: Mapping[str, object]) -> Template:
    assembly = build_application(
        bundle=False, outdir=outdir, clusters=[load_options({"cluster": "demo", **settings})]
    ).synth()  # raises an error if cdk-nag objects
    template: Template = assembly.stacks[0].template
    return template


def list_allowed_functions(template: Template, action: str) -> set[str]:
    return {function for function, statement in iterate_statements(template) if action in as_list(statement["Action"])}


def find_statement(template: Template, function: str, sid: str) -> dict[str, Any]:
    [matching_statement] = [
        candidate
        for owner, candidate in iterate_statements(template)
        if owner == function and candidate.get("Sid") == sid
    ]
    return matching_statement
