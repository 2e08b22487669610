"""IAM's answer: by the role's policies and boundary, and the policy of the resource, as they are deployed now."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.sqs.models import sqs_backends

from sim.account.identities import Caller
from sim.account.permits.requests import Asking, documents
from sim.http.protocol import ApiError, Call, Environ
from sim.http.queries import Wire
from sim.iam.policy import Policy, Verdict, parse_statement, verdict
from sim.iam.values import Request

FREE: Final = frozenset({("sts", "GetCallerIdentity")})
"""What everybody may who is somebody."""
_FORBIDDEN: Final = 403
_CODES: Final = {
    "ec2": ("UnauthorizedOperation", _FORBIDDEN),
    "dynamodb": ("AccessDeniedException", 400),
    "ecr": ("AccessDeniedException", 400),
    "eks": ("AccessDeniedException", _FORBIDDEN),
    "events": ("AccessDeniedException", 400),
    "lambda": ("AccessDeniedException", _FORBIDDEN),
    "logs": ("AccessDeniedException", 400),
    "pricing": ("AccessDeniedException", 400),
    "scheduler": ("AccessDeniedException", _FORBIDDEN),
    "ssm": ("AccessDeniedException", 400),
}


class Guard:
    """Admits what the caller's role may do."""

    def __init__(self, region: str, number: str, asking: Asking) -> None:
        """Look into IAM of account *number*."""
        self._region, self._number, self._asking = region, number, asking

    def admit(self, call: Call, environ: Environ, caller: Caller, said: Callable[[], Wire]) -> None:
        """Let *call* of *caller* through; *said* answers its parameters.

        Raises:
            ApiError: IAM forbids it, in the service's words.
            UnsupportedPolicyError: a policy says what is not evaluated here.
        """
        if not caller.role_arn or (call.service, call.action) in FREE:
            return
        if not self.has_role(caller.role):
            text = "The security token included in the request is invalid."
            raise ApiError("InvalidClientTokenId", text, _FORBIDDEN)
        for request in self._asking.requests(call, environ, said):
            asked = _of(request, caller, self._number)
            why = self._refusal(asked, caller)
            if why:
                code, status = _CODES.get(call.service, ("AccessDenied", _FORBIDDEN))
                text = f"User: {caller.arn} is not authorized to perform: {asked.action} on resource: {asked.resource}"
                begin = "You are not authorized to perform this operation. " if call.service == "ec2" else ""
                raise ApiError(code, f"{begin}{text} because {why}", status)

    def may(self, caller: Caller, request: Request) -> bool:
        """Whether *caller* would be let through with *request*."""
        return not caller.role_arn or not self._refusal(_of(request, caller, self._number), caller)

    def trusts(self, role: str, principals: tuple[str, ...], action: str, known: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether the trust policy of *role* lets one of *principals*, who all stand for the same, do *action*."""
        document = _document(
            iam_backends[self._number]["aws"].get_role(role).assume_role_policy_document, is_trust=True
        )
        asked = [Request(action=action, resource="*", context=known, principal=one) for one in principals]
        answers = {verdict([document], one) for one in asked}
        return Verdict.ALLOWED in answers and Verdict.DENIED not in answers

    def has_role(self, name: str) -> bool:
        """Whether there is a role called *name*."""
        # Other requests make and delete roles meanwhile: what is looked at is a copy.
        return any(role.name == name for role in list(iam_backends[self._number]["aws"].roles.values()))

    def _refusal(self, request: Request, caller: Caller) -> str:
        """Answer why not; empty if it is allowed."""
        role = iam_backends[self._number]["aws"].get_role(caller.role)
        own = [_document(text) for _, text in sorted(role.policies.items())]
        own += [_document(_default(policy)) for _, policy in sorted(role.managed_policies.items())]
        answers = {verdict(own, request), verdict(self._resource(request.resource), request)}
        if Verdict.DENIED in answers:
            return f"an explicit deny forbids the {request.action} action"
        if Verdict.ALLOWED not in answers:
            return f"no identity-based policy allows the {request.action} action"
        if role.permissions_boundary_arn and not self._within(role.permissions_boundary_arn, request):
            return f"no permissions boundary allows the {request.action} action"
        return ""

    def _within(self, boundary: str, request: Request) -> bool:
        policy = iam_backends[self._number]["aws"].managed_policies.get(boundary)
        return policy is not None and verdict([_document(_default(policy))], request) is Verdict.ALLOWED

    def _resource(self, arn: str) -> list[Policy]:
        """Answer the policies of the bucket or queue itself."""
        service, name = arn.split(":")[2:3], arn.rpartition(":")[2].partition("/")[0]
        if service == ["s3"]:
            bucket = s3_backends[self._number]["aws"].buckets.get(name)
            return [_document(bucket.policy.decode())] if bucket is not None and bucket.policy else []
        if service == ["sqs"]:
            queue = sqs_backends[self._number][self._region].queues.get(name)
            return (
                [_document(queue.policy if isinstance(queue.policy, str) else json.dumps(queue.policy))]
                if queue is not None and queue.policy
                else []
            )
        return []


def _of(request: Request, caller: Caller, number: str) -> Request:
    known = {**request.context, "aws:principalaccount": (number,), "aws:principalarn": (caller.role_arn,)}
    if caller.function_arn:
        known["lambda:sourcefunctionarn"] = (caller.function_arn,)
    return Request(action=request.action, resource=request.resource, context=known, principal=caller.arn)


def _default(policy: Any) -> str:  # noqa: ANN401 - moto has no types here
    return str(next(one.document for one in policy.versions if one.is_default))


@lru_cache(maxsize=4096)
def _document(text: str, *, is_trust: bool = False) -> Policy:
    """Read a policy; in a trust policy the resource is the role, which nobody writes down."""
    anything = {"Resource": "*"} if is_trust else {}
    return tuple(parse_statement({**anything, **one}) for one in documents(json.loads(text)))
