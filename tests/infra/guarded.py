"""The embedded world with IAM and RBAC in it.

What a function's role does not allow, in AWS or in the cluster, is refused, and what is asked is kept.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
import yaml

from infra.installer import manifests
from infra.node_role import FUNCTIONS_GROUP
from shared.errors import Forbidden
from shared.ports import World
from shared.report.costs import Ledger, day_of
from shared.report.days import day
from shared.report.ledger import PREFIX
from shared.settings import Settings
from sim.embedded import Embedded
from sim.iam.calls import Account
from sim.iam.policy import Verdict, verdict
from sim.iam.rbac import Right, granted, is_granted, right_for
from sim.iam.values import Request
from sim.lambdas.intrinsics import ACCOUNT, Resolver
from tests.infra.policies import Template, policies, resource_policies, resources

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


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request of one function, and what became of it."""

    function: str
    call: str
    request: Request
    verdict: Verdict


class Guarded(Embedded):
    """Remembers each request once, with the function that made it."""

    def __init__(self, template: Template) -> None:
        """Deploy *template*."""
        self.template = template
        self._policies, self._others = policies(template), resource_policies(template)
        self._profiles = profiles(template)
        self._asked: dict[tuple[object, ...], Asked] = {}
        self._rights = granted(json.loads(manifests()), FUNCTIONS_GROUP)
        self.rights: set[Right] = set()
        """What was done in the cluster."""
        super().__init__(template=template)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """What was asked, in the order of first questions."""
        return tuple(self._asked.values())

    def _world(self, function: str, environment: dict[str, str]) -> World:
        world = super()._world(function, environment)
        settings = Settings.from_environment(environment)
        account = Account(
            cloud=self.cloud, settings=settings, number=ACCOUNT, role_of=lambda profile: self._profiles[profile]
        )

        def ask(call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
            for request in account.requests(call, arguments, options):
                self._ask(function, call, request)

        ports = {name: getattr(world, name) for name in PORTS}
        guards = {name: Guard(port, name, ask) for name, port in ports.items() if port is not None}
        return msgspec.structs.replace(world, **guards, kube=Guard(world.kube, "kube", self._admit))

    def _admit(self, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        del options
        right = right_for(call.partition(".")[2], arguments[0])
        self.rights.add(right)
        if not is_granted(self._rights, right):
            raise Forbidden(f"{' '.join(right)} is not granted")

    def _ask(self, function: str, call: str, request: Request) -> None:
        key = (function, call, request.action, request.resource, tuple(sorted(request.context.items())))
        if key not in self._asked:
            answer = verdict([self._policies[function], *self._others], request)
            self._asked[key] = Asked(function=function, call=call, request=request, verdict=answer)
        if self._asked[key].verdict is not Verdict.ALLOWED:
            raise Forbidden(f"{function} may not {request.action} {request.resource}")


class Guard:
    """A port with a question before every call."""

    def __init__(self, port: object, name: str, ask: Callable[[str, tuple[Any, ...], Mapping[str, Any]], None]) -> None:
        """Ask *ask* for each call of *port*, as ``ec2.create_fleet``."""
        self._port, self._name, self._ask = port, name, ask

    def __getattr__(self, method: str) -> Any:
        bound = getattr(self._port, method)

        def call(*arguments: Any, **options: Any) -> object:
            kept = tuple(tuple(one) if isinstance(one, Iterator) else one for one in arguments)
            self._ask(f"{self._name}.{method}", kept, options)
            return bound(*kept, **options)

        return call


def profiles(template: Template) -> dict[str, str]:
    """Answer the role's ARN of each instance profile, by the profile's name."""
    resolver = Resolver(template)
    arns = {resolver.ref(key): resolver.arn(key) for key in resources(template, "AWS::IAM::Role")}
    found = resources(template, "AWS::IAM::InstanceProfile").items()
    return {resolver.ref(key): arns[profile["Roles"][0]] for key, profile in found}


def short_life(template: Template) -> Guarded:
    """Answer a world in which pods came, one instance was taken back, pods went; costs were billed and told of."""
    world = Guarded(template)
    yesterday = day_of(world.clock.now()) - timedelta(days=1)
    report = day(Ledger(since=yesterday, until=yesterday + timedelta(days=1)), world.cluster_name)
    world.bucket.put(f"{PREFIX}{report.day}.json", msgspec.json.encode(report))
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
    world.run(timedelta(minutes=50))
    return world
