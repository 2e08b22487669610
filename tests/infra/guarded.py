"""A short life of a cluster in which all requests of the functions are recorded, allowed or not."""

from datetime import timedelta
from typing import Final

import msgspec
import yaml

from shared.installer.rbac import RbacPermission
from shared.report.costs.cost_ledger import CostLedger, get_day_start
from shared.report.costs.daily_report import build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX
from sim.authorization.template_policies import Template
from sim.iam.patterns_and_variables import IamRequest
from sim.iam.policy import AccessDecision
from sim.world.embedded_world import EmbeddedWorld

MANIFESTS: Final = """
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


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of one function, and the decision about it."""

    function: str
    call: str
    request: IamRequest
    verdict: AccessDecision


class Guarded(EmbeddedWorld):
    """Records each request once, with the function that made it."""

    def __init__(self, template: Template) -> None:
        """Deploy *template*; a denied call does not end the run, so that all denials are seen."""
        self.template = template
        self._recorded: dict[tuple[object, ...], RecordedRequest] = {}
        super().__init__(template=template)
        self.access_control.fails_run = False
        self.access_control.on_iam_request = self._record_request

    @property
    def recorded_requests(self) -> tuple[RecordedRequest, ...]:
        """The requests, in the order of their first occurrence."""
        return tuple(self._recorded.values())

    @property
    def used_permissions(self) -> set[RbacPermission]:
        """The permissions that were used in the cluster."""
        return {permission for _, permission in self.access_control.used_permissions}

    def _record_request(self, function: str, call: str, request: IamRequest, decision: AccessDecision) -> None:
        key = (function, call, request.action, request.resource, tuple(sorted(request.context.items())))
        self._recorded.setdefault(key, RecordedRequest(function=function, call=call, request=request, verdict=decision))


def run_short_life(template: Template) -> Guarded:
    """Run a world in which pods come and go and one instance is interrupted; costs are billed and reported."""
    world = Guarded(template)
    yesterday = get_day_start(world.clock.get_time()) - timedelta(days=1)
    report = build_daily_report(CostLedger(since=yesterday, until=yesterday + timedelta(days=1)), world.cluster_name)
    world.bucket.put(f"{COSTS_PREFIX}{report.day}.json", msgspec.json.encode(report))
    manifests = list(yaml.safe_load_all(MANIFESTS))
    world.apply(manifests)
    world.run(timedelta(minutes=10))
    [instance, *_] = world.list_active_instances()
    warning = "EC2 Spot Instance Interruption Warning"
    world.runtime.put_event(
        {"source": "aws.ec2", "detail-type": warning, "detail": {"instance-id": instance.instance_id}}
    )
    world.run(timedelta(minutes=10))
    manifests[-1]["spec"]["replicas"] = 0
    world.apply(manifests[-1:])
    world.run(timedelta(minutes=50))
    return world
