"""Callers by access key: role sessions with temporary STS credentials; all other keys belong to the deployer."""

from hashlib import sha256
from threading import Lock
from typing import Final

import msgspec

from sim.aws_account.function_runtime import Credentials
from sim.aws_http.protocol import ApiError

TEMPORARY_KEY_PREFIX: Final = "ASIA"
"""The prefix of the access keys of role sessions."""
_HTTP_FORBIDDEN: Final = 403


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a request: a role session, or the deployer."""

    arn: str
    """The ARN, as GetCallerIdentity returns it."""
    user_id: str
    role_arn: str = ""
    """Empty: the caller is the deployer, which has all permissions."""
    function_arn: str = ""
    """The ARN of the function whose code makes the call; empty for other callers."""

    @property
    def role_name(self) -> str:
        """The name of the role."""
        return self.role_arn.rpartition("/")[2]

    @property
    def session_name(self) -> str:
        """The name of the session."""
        return self.arn.rpartition("/")[2]


class CredentialStore:
    """The temporary credentials that this account issued."""

    def __init__(self, account_id: str) -> None:
        """Issue credentials for roles of the account *account_id*."""
        self._account_id = account_id
        self._issued: dict[str, tuple[Credentials, Caller]] = {}
        self._lock = Lock()
        self.deployer = Caller(arn=f"arn:aws:iam::{account_id}:user/deployer", user_id="AIDADEPLOYER")

    def issue_credentials(self, role_arn: str, session: str, function_arn: str = "") -> Credentials:
        """Return new credentials of the role for *session*; the trust policy is not checked here."""
        role_name = role_arn.rpartition("/")[2]
        with self._lock:
            digest = sha256(f"{role_arn}/{session}/{len(self._issued)}".encode()).hexdigest()
            access_key = f"{TEMPORARY_KEY_PREFIX}{digest[:16].upper()}"
            credentials = Credentials(access_key=access_key, secret_key=digest[16:56], session_token=f"token{digest}")
            caller = Caller(
                arn=f"arn:aws:sts::{self._account_id}:assumed-role/{role_name}/{session}",
                user_id=f"AROA{sha256(role_name.encode()).hexdigest()[:16].upper()}:{session}",
                role_arn=role_arn,
                function_arn=function_arn,
            )
            self._issued[access_key] = credentials, caller
        return credentials

    def get_caller(self, access_key: str) -> Caller:
        """Return the caller with *access_key*; the deployer if the key is not a temporary one.

        Raises:
            ApiError: the key is temporary, and was not issued here.
        """
        if access_key in self._issued:
            return self._issued[access_key][1]
        if access_key.startswith(TEMPORARY_KEY_PREFIX):
            message = "The security token included in the request is invalid."
            raise ApiError("InvalidClientTokenId", message, _HTTP_FORBIDDEN)
        return self.deployer

    def find_credentials(self, access_key: str) -> Credentials | None:
        """Return the credentials with *access_key*, None if they were not issued here."""
        issued = self._issued.get(access_key)
        return None if issued is None else issued[0]
