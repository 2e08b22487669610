"""The embedded world with IAM and RBAC.

Calls that a function's role does not allow, in AWS or in the cluster, are refused, and all requests are recorded.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
import yaml

from infra.functions.installer import build_manifests
from infra.iam.node_role import FUNCTIONS_GROUP
from shared.errors import Forbidden
from shared.ports.world import World
from shared.report.costs.cost_ledger import CostLedger, get_day_start
from shared.report.costs.daily_report import build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX
from shared.settings import Settings
from sim.iam.patterns_and_variables import IamRequest
from sim.iam.policy import AccessDecision, evaluate_policies
from sim.iam.port_call_requests import PortRequestBuilder
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID, IntrinsicResolver
from sim.world.embedded_world import EmbeddedWorld
from tests.infra.policies import Template, get_resources, parse_function_policies, parse_resource_policies
from tests.infra.rbac import RbacPermission, find_granted_permissions, get_required_permission, is_granted

PORTS: Final = ("ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket", "topic")
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
        """Deploy *template*."""
        self.template = template
        self._policies, self._resource_policies = parse_function_policies(template), parse_resource_policies(template)
        self._profiles = map_profile_roles(template)
        self._recorded: dict[tuple[object, ...], RecordedRequest] = {}
        self._rights = find_granted_permissions(json.loads(build_manifests()), FUNCTIONS_GROUP)
        self.rights: set[RbacPermission] = set()
        """Permissions that were used in the cluster."""
        super().__init__(template=template)

    @property
    def recorded_requests(self) -> tuple[RecordedRequest, ...]:
        """The requests, in the order of their first occurrence."""
        return tuple(self._recorded.values())

    def _build_world(self, function: str, environment: dict[str, str]) -> World:
        world = super()._build_world(function, environment)
        settings = Settings.from_environment(environment)
        account = PortRequestBuilder(
            cloud=self.cloud, settings=settings, number=ACCOUNT_ID, get_role_arn=lambda profile: self._profiles[profile]
        )

        def check(call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
            for request in account.build_requests(call, arguments, options):
                self._check_request(function, call, request)

        ports = {name: getattr(world, name) for name in PORTS}
        guards = {name: Guard(port, name, check) for name, port in ports.items() if port is not None}
        return msgspec.structs.replace(world, **guards, kube=Guard(world.kube, "kube", self._check_permission))

    def _check_permission(self, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        del options
        right = get_required_permission(call.partition(".")[2], arguments[0])
        self.rights.add(right)
        if not is_granted(self._rights, right):
            raise Forbidden(f"{' '.join(right)} is not granted")

    def _check_request(self, function: str, call: str, request: IamRequest) -> None:
        key = (function, call, request.action, request.resource, tuple(sorted(request.context.items())))
        if key not in self._recorded:
            answer = evaluate_policies([self._policies[function], *self._resource_policies], request)
            self._recorded[key] = RecordedRequest(function=function, call=call, request=request, verdict=answer)
        if self._recorded[key].verdict is not AccessDecision.ALLOWED:
            raise Forbidden(f"{function} may not {request.action} {request.resource}")


class Guard:
    """A port with a check before every call."""

    def __init__(self, port: object, name: str, ask: Callable[[str, tuple[Any, ...], Mapping[str, Any]], None]) -> None:
        """Call *ask* before each call of *port*, with a name such as ``ec2.create_fleet``."""
        self._port, self._name, self._ask = port, name, ask

    def __getattr__(self, method: str) -> Any:
        bound = getattr(self._port, method)

        def call(*arguments: Any, **options: Any) -> object:
            call_arguments = tuple(
                tuple(argument) if isinstance(argument, Iterator) else argument for argument in arguments
            )
            self._ask(f"{self._name}.{method}", call_arguments, options)
            return bound(*call_arguments, **options)

        return call


def map_profile_roles(template: Template) -> dict[str, str]:
    """Return the role's ARN of each instance profile, by the profile's name."""
    resolver = IntrinsicResolver(template)
    arns = {resolver.resolve_ref(key): resolver.get_arn(key) for key in get_resources(template, "AWS::IAM::Role")}
    instance_profiles = get_resources(template, "AWS::IAM::InstanceProfile").items()
    return {resolver.resolve_ref(key): arns[profile["Roles"][0]] for key, profile in instance_profiles}


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
