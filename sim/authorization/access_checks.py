"""Checks every call of a function before it takes effect: IAM in the account, RBAC in the cluster.

Only the identities of functions are checked: simulated controllers and people do not use the ports.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from shared.errors import Forbidden
from shared.installer.rbac import (
    RbacPermission,
    find_granted_permissions,
    format_permission,
    is_granted,
    read_rbac_manifests,
)
from shared.ports.world import World
from sim.authorization.kubernetes_rbac import build_refusal, get_required_permission
from sim.authorization.template_policies import (
    Template,
    map_function_groups,
    map_function_role_arns,
    map_profile_roles,
    parse_function_policies,
    parse_profile_policies,
    parse_rbac_features,
    parse_resource_policies,
    parse_service_policies,
)
from sim.cloud.cloud import Cloud
from sim.iam.patterns_and_variables import IamRequest, Values
from sim.iam.payer_role import check_role_use
from sim.iam.policy import AccessDecision, Policy, PolicyStatement, evaluate_policies, split_policy
from sim.iam.port_call_requests import PortRequestBuilder
from sim.iam.service_requests import build_address_request, build_key_requests
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID

AWS_PORTS: Final = (
    *("ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket", "topic"),
    *("savings_plans", "zonal_shifts", "payer", "group_table", "event_bus", "remote_write"),
)
LAUNCHING_FUNCTION: Final = "provision"
_MAX_CACHED_DECISIONS: Final = 20_000


class AccessDeniedError(BaseException):
    """A function made a call that its permissions do not allow: the run fails.

    Handlers treat a refused call as one of many faults and continue. A run must not, so this is a BaseException.
    """


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What one function may do."""

    policies: tuple[Policy, ...]
    """Of its role and of resources."""
    permissions: frozenset[RbacPermission]
    """In the cluster."""


class StackAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The identities of a stack."""

    identity_by_function: dict[str, Identity]
    """Of functions, and of the services with a role of their own: `scheduler` and `codedeploy`."""
    role_arn_by_function: dict[str, str]
    role_arn_by_profile: dict[str, str]
    policy_by_profile: dict[str, Policy]
    """The inline policy of each node role, by instance profile."""

    @classmethod
    def parse(cls, template: Template) -> "StackAccess":
        """Return the permissions that *template* and the installed ClusterRoles grant; the result is cached."""
        return _parse_access(json.dumps(template, sort_keys=True))

    def get_role_arn(self, profile: str) -> str:
        """Return the ARN of the role in the instance *profile*; other people's profiles have a role of that name."""
        return self.role_arn_by_profile.get(profile, f"arn:aws:iam::{ACCOUNT_ID}:role/{profile}")


@lru_cache(maxsize=32)
def _parse_access(template_json: str) -> StackAccess:
    template = json.loads(template_json)
    resource_policies, manifests = parse_resource_policies(template), read_rbac_manifests(parse_rbac_features(template))
    groups_by_function = map_function_groups(template)
    return StackAccess(
        identity_by_function={
            function: Identity(
                policies=(policy, *resource_policies),
                permissions=find_granted_permissions(manifests, groups_by_function[function]),
            )
            for function, policy in parse_function_policies(template).items()
        }
        | {
            service: Identity(policies=(policy, *resource_policies), permissions=frozenset())
            for service, policy in parse_service_policies(template).items()
        },
        role_arn_by_function=map_function_role_arns(template),
        role_arn_by_profile=map_profile_roles(template),
        policy_by_profile=parse_profile_policies(template),
    )


class AccessControl:
    """Checks and records the calls of the functions of one stack."""

    def __init__(self, template: Template, cloud: Cloud) -> None:
        """Enforce the permissions of *template* for calls to *cloud* and to the cluster."""
        self.access = StackAccess.parse(template)
        self.denials: list[str] = []
        """Denied calls, oldest first."""
        self.fails_run = True
        """Whether a denied call ends the run; otherwise the function gets the refusal that AWS or Kubernetes sends."""
        self.used_permissions: set[tuple[str, RbacPermission]] = set()
        """Permissions in the cluster that were used, with the function that used each."""
        self.on_iam_request: Callable[[str, str, IamRequest, AccessDecision], None] = _ignore_request
        """Called with function, port call, request and decision for every IAM request."""
        self._cloud = cloud
        self._decisions: dict[tuple[str, str, str, tuple[tuple[str, Values], ...]], AccessDecision] = {}

    @property
    def recent_requests(self) -> tuple[tuple[str, IamRequest], ...]:
        """The last IAM requests, each once, with the functions that made them."""
        return tuple(
            (function, IamRequest(action=action, resource=resource, context=dict(context)))
            for function, action, resource, context in self._decisions
        )

    def can_launch_with_key(self, key: str) -> bool:
        """Return whether `provision` can launch instances with volumes that *key*, an ARN or a key id, encrypts."""
        requests = build_key_requests(key, self._cloud.region, ACCOUNT_ID)
        return {self._decide(LAUNCHING_FUNCTION, request) for request in requests} == {AccessDecision.ALLOWED}

    def can_assign_ipv6_addresses(self, profile: str) -> bool:
        """Return whether nodes with the instance profile *profile* can give pods IPv6 addresses.

        A profile that the stack does not own has the permission.
        """
        policy = self.access.policy_by_profile.get(profile)
        request = build_address_request(self._cloud.region, ACCOUNT_ID)
        return policy is None or evaluate_policies([policy], request) is AccessDecision.ALLOWED

    def is_service_call_allowed(self, owner: str, action: str, resource: str) -> bool:
        """Return whether the role of *owner*, a function or a service, allows a request that a service makes with it.

        Raises:
            AccessDeniedError: it does not, and a denied call ends the run.
        """
        request = IamRequest(action=action, resource=resource)
        decision = self._decide(owner, request)
        self.on_iam_request(owner, "service", request, decision)
        if decision is not AccessDecision.ALLOWED:
            self._deny(f"{owner} lacks {action} on {resource}")
        return decision is AccessDecision.ALLOWED

    def revoke_statement(self, function: str, statement: PolicyStatement) -> None:
        """Take *statement*, which has one action and one resource (`split_policy`), from the role of *function*."""
        identity = self.access.identity_by_function[function]
        policies = tuple(
            tuple(other for other in split_policy(policy) if other != statement) for policy in identity.policies
        )
        identities = self.access.identity_by_function | {function: msgspec.structs.replace(identity, policies=policies)}
        self.access = msgspec.structs.replace(self.access, identity_by_function=identities)
        self._decisions.clear()

    def revoke_permission(self, permission: RbacPermission) -> None:
        """Take *permission* in the cluster from all functions, as a ClusterRole without it would."""
        identities = {
            function: msgspec.structs.replace(identity, permissions=identity.permissions - {permission})
            for function, identity in self.access.identity_by_function.items()
        }
        self.access = msgspec.structs.replace(self.access, identity_by_function=identities)

    def restrict_world(self, world: World, function: str) -> World:
        """Return *world* with a check in front of every port."""
        builder = PortRequestBuilder(
            cloud=self._cloud, settings=world.settings, number=ACCOUNT_ID, get_role_arn=self.access.get_role_arn
        )
        check = partial(self._check_aws_call, function, builder)
        ports = {name: getattr(world, name) for name in AWS_PORTS}
        guards = {name: _GuardedPort(port, name, check) for name, port in ports.items() if port is not None}
        kube = _GuardedPort(world.kube, "kube", partial(self._check_kubernetes_call, function))
        return msgspec.structs.replace(world, **guards, kube=kube)

    def _check_kubernetes_call(
        self, function: str, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> None:
        del options
        method, path = call.partition(".")[2], arguments[0]
        permission = get_required_permission(method, path)
        if permission is None:
            return
        self.used_permissions.add((function, permission))
        if not is_granted(self.access.identity_by_function[function].permissions, permission):
            self._deny(f"{function} lacks {format_permission(permission)}: {path}")
            raise build_refusal(function, method, path, permission)

    def _check_aws_call(
        self,
        function: str,
        builder: PortRequestBuilder,
        call: str,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> None:
        for request in builder.build_requests(call, arguments, options):
            decision = self._decide(function, request)
            self.on_iam_request(function, call, request, decision)
            if decision is not AccessDecision.ALLOWED:
                if request.is_found:
                    self._deny(f"{function} lacks {request.action} on {request.resource}: {dict(request.context)}")
                raise Forbidden(f"UnauthorizedOperation: {function} may not {request.action} {request.resource}")
        if call == "payer.describe_commitments":
            settings, caller_arn = builder.settings, self.access.role_arn_by_function[function]
            role_arn, external_id = settings.commitments_role, settings.commitments_external_id
            check_role_use(self._cloud.payer.role, role_arn, caller_arn, external_id)

    def _decide(self, function: str, request: IamRequest) -> AccessDecision:
        key = (function, request.action, request.resource, tuple(request.context.items()))
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= _MAX_CACHED_DECISIONS:
                self._decisions.clear()
            policies = self.access.identity_by_function[function].policies
            decision = self._decisions[key] = evaluate_policies(policies, request)
        return decision

    def _deny(self, denial: str) -> None:
        self.denials.append(denial)
        if self.fails_run:
            raise AccessDeniedError(denial)


class _GuardedPort:
    """A port with a check before every call."""

    def __init__(
        self, port: object, name: str, check: Callable[[str, tuple[Any, ...], Mapping[str, Any]], None]
    ) -> None:
        self._port, self._name, self._check = port, name, check

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - stands for any port
        bound = getattr(self._port, method)

        def call_method(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 - of any port
            call_arguments = tuple(
                tuple(argument) if isinstance(argument, Iterator) else argument for argument in arguments
            )
            self._check(f"{self._name}.{method}", call_arguments, options)
            return bound(*call_arguments, **options)

        return call_method


def _ignore_request(function: str, call: str, request: IamRequest, decision: AccessDecision) -> None:
    del function, call, request, decision
