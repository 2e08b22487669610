"""IAM authorization with the role's policies, its permissions boundary and the resource policy, as deployed now."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.sqs.models import sqs_backends

from sim.aws_account.iam_checks.iam_requests import ApiRequestBuilder, list_statements
from sim.aws_account.identities import Caller
from sim.aws_http.protocol import ApiCall, ApiDict, ApiError, Environ
from sim.iam.patterns_and_variables import IamRequest
from sim.iam.policy import AccessDecision, Policy, evaluate_policies, parse_statement

ALWAYS_ALLOWED_CALLS: Final = frozenset({("sts", "GetCallerIdentity")})
"""The calls that every authenticated caller may make."""
_HTTP_FORBIDDEN: Final = 403
_ERROR_BY_SERVICE: Final = {
    "ec2": ("UnauthorizedOperation", _HTTP_FORBIDDEN),
    "dynamodb": ("AccessDeniedException", 400),
    "ecr": ("AccessDeniedException", 400),
    "eks": ("AccessDeniedException", _HTTP_FORBIDDEN),
    "events": ("AccessDeniedException", 400),
    "lambda": ("AccessDeniedException", _HTTP_FORBIDDEN),
    "logs": ("AccessDeniedException", 400),
    "pricing": ("AccessDeniedException", 400),
    "scheduler": ("AccessDeniedException", _HTTP_FORBIDDEN),
    "ssm": ("AccessDeniedException", 400),
}


class IamAuthorizer:
    """Authorizes API calls with the policies of the caller's role."""

    def __init__(self, region: str, account_id: str, request_builder: ApiRequestBuilder) -> None:
        """Authorize with IAM of the account *account_id*."""
        self._region, self._account_id, self._request_builder = region, account_id, request_builder

    def authorize(self, call: ApiCall, environ: Environ, caller: Caller, get_parameters: Callable[[], ApiDict]) -> None:
        """Check whether *caller* may make *call*; *get_parameters* returns the parameters of the call.

        Raises:
            ApiError: IAM denies the call; code and message are those of the service.
            UnsupportedPolicyError: a policy has an element that is not evaluated here.
        """
        if not caller.role_arn or (call.service, call.action) in ALWAYS_ALLOWED_CALLS:
            return
        if not self.has_role(caller.role_name):
            message = "The security token included in the request is invalid."
            raise ApiError("InvalidClientTokenId", message, _HTTP_FORBIDDEN)
        for request in self._request_builder.build_requests(call, environ, get_parameters):
            principal_request = _build_principal_request(request, caller, self._account_id)
            denial_reason = self._find_denial_reason(principal_request, caller)
            if denial_reason:
                code, status = _ERROR_BY_SERVICE.get(call.service, ("AccessDenied", _HTTP_FORBIDDEN))
                message = (
                    f"User: {caller.arn} is not authorized to perform: {principal_request.action} "
                    f"on resource: {principal_request.resource}"
                )
                prefix = "You are not authorized to perform this operation. " if call.service == "ec2" else ""
                raise ApiError(code, f"{prefix}{message} because {denial_reason}", status)

    def is_allowed(self, caller: Caller, request: IamRequest) -> bool:
        """Return whether IAM allows *request* of *caller*."""
        return not caller.role_arn or not self._find_denial_reason(
            _build_principal_request(request, caller, self._account_id), caller
        )

    def is_trusted(
        self, role: str, principals: tuple[str, ...], action: str, context_keys: Mapping[str, tuple[str, ...]]
    ) -> bool:
        """Return whether the trust policy of *role* allows *action* to *principals*.

        All of which name the same caller.
        """
        document = _parse_policy_text(
            iam_backends[self._account_id]["aws"].get_role(role).assume_role_policy_document, is_trust=True
        )
        requests = [
            IamRequest(action=action, resource="*", context=context_keys, principal=principal)
            for principal in principals
        ]
        decisions = {evaluate_policies([document], principal_request) for principal_request in requests}
        return AccessDecision.ALLOWED in decisions and AccessDecision.DENIED not in decisions

    def has_role(self, name: str) -> bool:
        """Return whether there is a role with the name *name*."""
        # Iterate over a copy: other threads create and delete roles.
        return any(role.name == name for role in list(iam_backends[self._account_id]["aws"].roles.values()))

    def _find_denial_reason(self, request: IamRequest, caller: Caller) -> str:
        """Return why *request* is denied, empty if it is allowed."""
        role = iam_backends[self._account_id]["aws"].get_role(caller.role_name)
        identity_policies = [_parse_policy_text(text) for _, text in sorted(role.policies.items())]
        identity_policies += [
            _parse_policy_text(_get_default_version(policy)) for _, policy in sorted(role.managed_policies.items())
        ]
        decisions = {
            evaluate_policies(identity_policies, request),
            evaluate_policies(self._load_resource_policies(request.resource), request),
        }
        if AccessDecision.DENIED in decisions:
            return f"an explicit deny forbids the {request.action} action"
        if AccessDecision.ALLOWED not in decisions:
            return f"no identity-based policy allows the {request.action} action"
        if role.permissions_boundary_arn and not self._is_within_boundary(role.permissions_boundary_arn, request):
            return f"no permissions boundary allows the {request.action} action"
        return ""

    def _is_within_boundary(self, boundary: str, request: IamRequest) -> bool:
        policy = iam_backends[self._account_id]["aws"].managed_policies.get(boundary)
        return (
            policy is not None
            and evaluate_policies([_parse_policy_text(_get_default_version(policy))], request) is AccessDecision.ALLOWED
        )

    def _load_resource_policies(self, arn: str) -> list[Policy]:
        """Return the policy of the bucket or queue with the ARN *arn*."""
        service, name = arn.split(":")[2:3], arn.rpartition(":")[2].partition("/")[0]
        if service == ["s3"]:
            bucket = s3_backends[self._account_id]["aws"].buckets.get(name)
            return [_parse_policy_text(bucket.policy.decode())] if bucket is not None and bucket.policy else []
        if service == ["sqs"]:
            queue = sqs_backends[self._account_id][self._region].queues.get(name)
            return (
                [_parse_policy_text(queue.policy if isinstance(queue.policy, str) else json.dumps(queue.policy))]
                if queue is not None and queue.policy
                else []
            )
        return []


def _build_principal_request(request: IamRequest, caller: Caller, account_id: str) -> IamRequest:
    context_keys = {**request.context, "aws:principalaccount": (account_id,), "aws:principalarn": (caller.role_arn,)}
    if caller.function_arn:
        context_keys["lambda:sourcefunctionarn"] = (caller.function_arn,)
    return IamRequest(action=request.action, resource=request.resource, context=context_keys, principal=caller.arn)


def _get_default_version(policy: Any) -> str:  # noqa: ANN401 - moto has no types here
    return str(next(version.document for version in policy.versions if version.is_default))


@lru_cache(maxsize=4096)
def _parse_policy_text(text: str, *, is_trust: bool = False) -> Policy:
    """Parse a policy document.

    A statement of a trust policy has no resource, because the resource is the role itself.
    """
    default_elements = {"Resource": "*"} if is_trust else {}
    return tuple(parse_statement({**default_elements, **statement}) for statement in list_statements(json.loads(text)))
