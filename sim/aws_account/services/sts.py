"""STS: the identity of a caller, and AssumeRole."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from sim.aws_account.function_runtime import Credentials
from sim.aws_account.iam_checks.authorizer import IamAuthorizer
from sim.aws_account.identities import Caller, CredentialStore
from sim.aws_http.protocol import ApiDict, ApiError
from sim.iam.patterns_and_variables import build_context
from sim.time.virtual_clock import Clock

HTTP_FORBIDDEN: Final = 403
_DEFAULT_DURATION_SECONDS: Final = 3600


class StsApi:
    """The STS API calls: issues credentials of roles to the principals that the roles trust."""

    def __init__(
        self, account_id: str, clock: Clock, credential_store: CredentialStore, authorizer: IamAuthorizer
    ) -> None:
        """Issue credentials for the account *account_id*."""
        self._account_id, self._clock = account_id, clock
        self.find_other_account: Callable[[str], StsApi | None] = lambda _: None
        """Finds another account of the organization by its number; without an organization, there is none."""
        self.credential_store, self._authorizer = credential_store, authorizer
        self.handlers: Mapping[str, Callable[[Caller, ApiDict], dict[str, Any]]] = {
            "AssumeRole": self._assume_role,
            "GetCallerIdentity": self._get_caller_identity,
        }

    def assume_role(
        self,
        role_arn: str,
        session: str,
        principals: tuple[str, ...],
        context_keys: Mapping[str, str],
        function_arn: str = "",
    ) -> Credentials:
        """Return credentials of the role if it trusts one of *principals*; an empty tuple skips the trust policy.

        Raises:
            ApiError: there is no such role, or it does not trust the principals.
        """
        role_name = role_arn.rpartition("/")[2]
        is_trusted = not principals or (
            self._authorizer.has_role(role_name)
            and self._authorizer.is_trusted(role_name, principals, "sts:AssumeRole", build_context(context_keys))
        )
        if not self._authorizer.has_role(role_name) or not is_trusted:
            raise _build_denial(principals[-1] if principals else self.credential_store.deployer.arn, role_arn)
        return self.credential_store.issue_credentials(role_arn, session, function_arn)

    def _get_caller_identity(self, caller: Caller, request: ApiDict) -> dict[str, Any]:
        del request
        return {"UserId": caller.user_id, "Account": self._account_id, "Arn": caller.arn}

    def _assume_role(self, caller: Caller, request: ApiDict) -> dict[str, Any]:
        principals = (self._account_id, f"arn:aws:iam::{self._account_id}:root", caller.role_arn or caller.arn)
        context_keys = {"sts:ExternalId": request["ExternalId"]} if "ExternalId" in request else {}
        issuer = self._find_account(request["RoleArn"], caller)
        credentials = issuer.assume_role(request["RoleArn"], request["RoleSessionName"], principals, context_keys)
        assumed_caller = issuer.credential_store.get_caller(credentials.access_key)
        duration = timedelta(seconds=request.get("DurationSeconds", _DEFAULT_DURATION_SECONDS))
        return {
            "Credentials": {
                "AccessKeyId": credentials.access_key,
                "SecretAccessKey": credentials.secret_key,
                "SessionToken": credentials.session_token,
                "Expiration": self._clock.get_time() + duration,
            },
            "AssumedRoleUser": {"AssumedRoleId": assumed_caller.user_id, "Arn": assumed_caller.arn},
        }

    def _find_account(self, role_arn: str, caller: Caller) -> "StsApi":
        """Return the account of the role.

        Raises:
            ApiError: there is no such account; AWS does not say whether it is the account or the role.
        """
        number = role_arn.split(":")[4]
        account = self if number == self._account_id else self.find_other_account(number)
        if account is None:
            raise _build_denial(caller.role_arn or caller.arn, role_arn)
        return account


def _build_denial(principal: str, role_arn: str) -> ApiError:
    message = f"User: {principal} is not authorized to perform: sts:AssumeRole on resource: {role_arn}"
    return ApiError("AccessDenied", message, HTTP_FORBIDDEN)
