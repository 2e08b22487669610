"""Who calls: STS's temporary credentials, and the deployer, who is everybody else."""

from hashlib import sha256
from threading import Lock
from typing import Final

import msgspec

from sim.account.contract import Credentials
from sim.http.protocol import ApiError

TEMPORARY: Final = "ASIA"
"""How the keys of roles begin."""
_FORBIDDEN: Final = 403


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody: a session of a role, or the deployer."""

    arn: str
    """As GetCallerIdentity answers it."""
    user_id: str
    role_arn: str = ""
    """Empty: the deployer, who may do everything."""
    function_arn: str = ""
    """Of the function whose code calls, if it is one."""

    @property
    def role(self) -> str:
        """Answer the role's name."""
        return self.role_arn.rpartition("/")[2]

    @property
    def session(self) -> str:
        """Answer what the session is called."""
        return self.arn.rpartition("/")[2]


class Identities:
    """The keys that this account gave out."""

    def __init__(self, number: str) -> None:
        """Give out keys for roles of account *number*."""
        self._number = number
        self._issued: dict[str, tuple[Credentials, Caller]] = {}
        self._lock = Lock()
        self.deployer = Caller(arn=f"arn:aws:iam::{number}:user/deployer", user_id="AIDADEPLOYER")

    def issue(self, role_arn: str, session: str, function_arn: str = "") -> Credentials:
        """Answer new credentials of the role for *session*; who may have them is for others to say."""
        name = role_arn.rpartition("/")[2]
        with self._lock:
            digest = sha256(f"{role_arn}/{session}/{len(self._issued)}".encode()).hexdigest()
            key = f"{TEMPORARY}{digest[:16].upper()}"
            made = Credentials(access_key=key, secret_key=digest[16:56], session_token=f"token{digest}")
            caller = Caller(
                arn=f"arn:aws:sts::{self._number}:assumed-role/{name}/{session}",
                user_id=f"AROA{sha256(name.encode()).hexdigest()[:16].upper()}:{session}",
                role_arn=role_arn,
                function_arn=function_arn,
            )
            self._issued[key] = made, caller
        return made

    def caller(self, access_key: str) -> Caller:
        """Answer whose *access_key* is; of one that looks made up, the deployer.

        Raises:
            ApiError: it is temporary, and nobody has got it here.
        """
        if access_key in self._issued:
            return self._issued[access_key][1]
        if access_key.startswith(TEMPORARY):
            text = "The security token included in the request is invalid."
            raise ApiError("InvalidClientTokenId", text, _FORBIDDEN)
        return self.deployer

    def credentials(self, access_key: str) -> Credentials | None:
        """Answer the credentials with *access_key*; None if nobody has got them here."""
        found = self._issued.get(access_key)
        return None if found is None else found[0]
