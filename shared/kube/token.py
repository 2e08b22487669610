"""EKS knows who we are by a presigned STS GetCallerIdentity: signed here, sent by the API server.

The signature (AWS Signature Version 4, in the query) covers the cluster's name as header `x-k8s-aws-id`. EKS takes a
token for fifteen minutes after its date, if the credentials behind it live that long.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import digest
from typing import Final, Protocol
from urllib.parse import quote

from shared.errors import Forbidden

LIFETIME: Final = timedelta(minutes=14)

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_EXPIRES_SECONDS: Final = "60"
_PREFIX: Final = "k8s-aws-v1."


class Keys(Protocol):
    """What botocore calls frozen credentials."""

    access_key: str
    secret_key: str
    token: str | None


class Credentials(Protocol):
    """What botocore calls credentials: they renew themselves minutes before they end."""

    def get_frozen_credentials(self) -> Keys:
        """Answer the present keys."""


class Session(Protocol):
    """What is used of a boto3 or botocore session."""

    def get_credentials(self) -> Credentials | None:
        """Answer None if there are none."""


class EksToken:
    """A token for one cluster, made anew when it is 14 minutes old or the credentials have changed."""

    def __init__(self, session: Session, *, cluster: str, region: str, clock: Callable[[], datetime]) -> None:
        """Sign for *cluster* with what *session* is; *clock* answers aware UTC."""
        self._session, self._cluster, self._region, self._clock = session, cluster, region, clock
        self._made: tuple[datetime, str, str] | None = None

    def __call__(self) -> str:
        """Answer a bearer token.

        Raises:
            Forbidden: the session has no credentials.
        """
        credentials, now = self._session.get_credentials(), self._clock()
        if credentials is None:
            raise Forbidden(f"no AWS credentials to sign a token for {self._cluster} with")
        keys = credentials.get_frozen_credentials()
        if self._made is None or now - self._made[0] >= LIFETIME or self._made[1] != keys.access_key:
            token = eks_token(keys, cluster=self._cluster, region=self._region, now=now)
            self._made = (now, keys.access_key, token)
        return self._made[2]

    def renew(self) -> None:
        """Sign anew the next time: the API server did not take the last one."""
        self._made = None


def eks_token(keys: Keys, *, cluster: str, region: str, now: datetime) -> str:
    """Answer the token for *cluster* as of *now* (aware UTC): a presigned URL in base64url without padding."""
    url = presigned_url(keys, cluster=cluster, region=region, now=now)
    return _PREFIX + urlsafe_b64encode(url.encode()).decode().rstrip("=")


def presigned_url(keys: Keys, *, cluster: str, region: str, now: datetime) -> str:
    """Answer the URL of a GetCallerIdentity for *cluster*, signed as of *now* (aware UTC)."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    host, moment = f"sts.{region}.{suffix}", now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/sts/aws4_request"
    parameters = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": _EXPIRES_SECONDS,
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
    }
    if keys.token:
        parameters["X-Amz-Security-Token"] = keys.token
    query = "&".join(f"{name}={quote(parameters[name], safe='-_.~')}" for name in sorted(parameters))
    headers = f"host:{host}\nx-k8s-aws-id:{cluster}\n"
    request = f"GET\n/\n{query}\n{headers}\nhost;x-k8s-aws-id\n{sha256(b'').hexdigest()}"
    text = f"{_ALGORITHM}\n{moment}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    return f"https://{host}/?{query}&X-Amz-Signature={_signature(keys.secret_key, scope, text)}"


def _signature(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = digest(key, part.encode(), "sha256")
    return key.hex()
