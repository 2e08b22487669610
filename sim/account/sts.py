"""STS: who somebody is, and how one becomes a role."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from sim.account.contract import Credentials
from sim.account.identities import Caller, Identities
from sim.account.permits.guard import Guard
from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire
from sim.iam.values import context

FORBIDDEN: Final = 403
_HOUR: Final = 3600


class Sts:
    """Gives out credentials to whom roles trust."""

    def __init__(self, number: str, clock: Clock, identities: Identities, guard: Guard) -> None:
        """Give them out for account *number*."""
        self._number, self._clock, self._identities, self._guard = number, clock, identities, guard
        self.handlers: Mapping[str, Callable[[Caller, Wire], dict[str, Any]]] = {
            "AssumeRole": self._become,
            "GetCallerIdentity": self._who,
        }

    def assume(
        self,
        role_arn: str,
        session: str,
        principals: tuple[str, ...],
        known: Mapping[str, str],
        function_arn: str = "",
    ) -> Credentials:
        """Answer credentials, if the role trusts one of *principals*; it is not asked if there are none.

        Raises:
            ApiError: there is no such role, or it does not trust them.
        """
        name = role_arn.rpartition("/")[2]
        is_trusted = not principals or (
            self._guard.has_role(name) and self._guard.trusts(name, principals, "sts:AssumeRole", context(known))
        )
        if not self._guard.has_role(name) or not is_trusted:
            who = principals[-1] if principals else self._identities.deployer.arn
            text = f"User: {who} is not authorized to perform: sts:AssumeRole on resource: {role_arn}"
            raise ApiError("AccessDenied", text, FORBIDDEN)
        return self._identities.issue(role_arn, session, function_arn)

    def _who(self, caller: Caller, said: Wire) -> dict[str, Any]:
        del said
        return {"UserId": caller.user_id, "Account": self._number, "Arn": caller.arn}

    def _become(self, caller: Caller, said: Wire) -> dict[str, Any]:
        principals = (self._number, f"arn:aws:iam::{self._number}:root", caller.role_arn or caller.arn)
        known = {"sts:ExternalId": said["ExternalId"]} if "ExternalId" in said else {}
        made = self.assume(said["RoleArn"], said["RoleSessionName"], principals, known)
        became = self._identities.caller(made.access_key)
        return {
            "Credentials": {
                "AccessKeyId": made.access_key,
                "SecretAccessKey": made.secret_key,
                "SessionToken": made.session_token,
                "Expiration": self._clock.now() + timedelta(seconds=said.get("DurationSeconds", _HOUR)),
            },
            "AssumedRoleUser": {"AssumedRoleId": became.user_id, "Arn": became.arn},
        }
