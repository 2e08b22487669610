"""The policies allow what the functions do: a cluster's short life in the embedded world, call by call.

The simulated cloud asks nobody for permission, so each call is held against the role of the function that made it.
"""

from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml

from shared.ports import World
from sim.embedded import Embedded
from sim.faults import Call
from sim.lambdas.template import synthesised
from tests.infra.policies import several, statements

NEEDS = {
    "ec2.create_fleet": ["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"],
    "ec2.terminate_instances": ["ec2:TerminateInstances"],
    "ec2.describe_instances": ["ec2:DescribeInstances"],
    "ec2.describe_instance": ["ec2:DescribeInstances"],
    "ec2.create_tags": ["ec2:CreateTags"],
    "ec2.ensure_launch_template": ["ec2:DescribeLaunchTemplates", "ec2:CreateLaunchTemplate", "ec2:CreateTags"],
    "ec2.launch_templates": ["ec2:DescribeLaunchTemplates"],
    "ec2.delete_launch_template": ["ec2:DeleteLaunchTemplate"],
    "ec2.instance_types": ["ec2:DescribeInstanceTypes"],
    "ec2.offerings": ["ec2:DescribeInstanceTypeOfferings"],
    "ec2.spot_prices": ["ec2:DescribeSpotPriceHistory"],
    "ec2.subnets": ["ec2:DescribeSubnets"],
    "ec2.security_groups": ["ec2:DescribeSecurityGroups"],
    "ec2.images": ["ec2:DescribeImages"],
    "ec2.capacity_reservations": ["ec2:DescribeCapacityReservations"],
    "ec2.placement_group": ["ec2:DescribePlacementGroups"],
    "ec2.refusals": [
        "ec2:CreateFleet",
        "ec2:RunInstances",
        "ec2:CreateLaunchTemplate",
        "ec2:CreateTags",
        "iam:PassRole",
    ],
    "parameters.parameter": ["ssm:GetParameter"],
    "prices.on_demand": ["pricing:GetProducts"],
    "eks.cluster": ["eks:DescribeCluster"],
    "mailbox.send": ["sqs:SendMessage"],
    "table.read": ["dynamodb:GetItem"],
    "table.rows": ["dynamodb:Query"],
    "table.write": ["dynamodb:PutItem", "dynamodb:ConditionCheckItem"],
    "table.remove": ["dynamodb:DeleteItem"],
    "bucket.put": ["s3:PutObject"],
    "bucket.get": ["s3:GetObject"],
    "bucket.keys": ["s3:ListBucket"],
}
MANIFESTS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: joiner-node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: "*"}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: "*"}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1m}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: 500m, memory: 512Mi}}}]
"""


class Watched(Embedded):
    """Remembers who called what: function, ``port.method``, first argument."""

    def __init__(self, template: dict[str, Any]) -> None:
        """Deploy *template*."""
        self.calls: set[tuple[str, str, str]] = set()
        self._caller = ""
        super().__init__(template=template, tap=self._note)

    def _world(self, function: str, environment: dict[str, str]) -> World:
        self._caller = function
        return super()._world(function, environment)

    def _note(self, call: Call) -> None:
        if call.when == "before" and call.port != "kube":
            detail = call.detail if call.port == "bucket" else ""
            self.calls.add((self._caller, f"{call.port}.{call.method}", detail))


@pytest.fixture(scope="module")
def calls() -> set[tuple[str, str, str]]:
    """Pods come, an instance is announced to go, pods go."""
    world = Watched(synthesised())
    manifests = list(yaml.safe_load_all(MANIFESTS))
    world.apply(manifests)
    world.run(timedelta(minutes=10))
    [instance, *_] = world.living()
    warning = "EC2 Spot Instance Interruption Warning"
    world.runtime.put_event(
        {"source": "aws.ec2", "detail-type": warning, "detail": {"instance-id": instance.instance_id}}
    )
    world.run(timedelta(minutes=10))
    manifests[-1]["spec"]["replicas"] = 0
    world.apply(manifests[-1:])
    world.run(timedelta(minutes=10))
    return world.calls


@pytest.fixture(scope="module")
def grants() -> set[tuple[str, str, str]]:
    """Answer function, action and resource of every statement."""
    return {
        (function, action, arn)
        for function, statement in statements(synthesised())
        for action in several(statement["Action"])
        for arn in several(statement["Resource"])
    }


def test_every_call_of_every_function_is_allowed(
    calls: set[tuple[str, str, str]], grants: set[tuple[str, str, str]]
) -> None:
    refused = sorted(
        (function, method, detail, action)
        for function, method, detail in calls
        for action in NEEDS[method]
        if not any(
            (function, action) == grant[:2] and (action[:3] != "s3:" or _covers(grant[2], action, detail))
            for grant in grants
        )
    )
    assert refused == []


def _covers(arn: str, action: str, key: str) -> bool:
    return action == "s3:ListBucket" or fnmatchcase(f"{arn.partition('/')[0]}/{key}", arn)


def test_the_short_life_had_everything_in_it(calls: set[tuple[str, str, str]]) -> None:
    made = {(function, method) for function, method, _ in calls}
    assert made >= {
        ("provision", "ec2.create_fleet"),
        ("lifecycle", "ec2.create_tags"),
        ("lifecycle", "ec2.terminate_instances"),
        ("interrupt", "bucket.put"),
        ("disrupt", "bucket.get"),
        ("catalog", "prices.on_demand"),
    }
