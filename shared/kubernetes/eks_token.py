"""EKS bearer tokens: a presigned STS GetCallerIdentity request, signed here and sent by the API server.

The signature (AWS Signature Version 4, in the query) covers the cluster's name as header `x-k8s-aws-id`. EKS accepts a
token for fifteen minutes after its date, if the credentials that signed it are valid for so long.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import digest
from typing import Final, Protocol
from urllib.parse import quote

from shared.errors import Forbidden

TOKEN_TTL: Final = timedelta(minutes=14)

_SIGNATURE_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_EXPIRES_SECONDS: Final = "60"
_AUTHENTICATOR_PREFIX: Final = "k8s-aws-v1."


class Keys(Protocol):
    """Frozen credentials of botocore."""

    access_key: str
    secret_key: str
    token: str | None


class Credentials(Protocol):
    """Credentials of botocore, which renew themselves minutes before they expire."""

    def get_frozen_credentials(self) -> Keys:
        """Return the current keys."""


class Session(Protocol):
    """The part of a boto3 or botocore session that is used here."""

    def get_credentials(self) -> Credentials | None:
        """Return the session's credentials, None if there are none."""


class EksToken:
    """A bearer token for one cluster, signed again after 14 minutes or if the credentials have changed."""

    def __init__(
        self, session: Session, *, cluster: str, region: str, host: str, clock: Callable[[], datetime]
    ) -> None:
        """Sign for *cluster* with the credentials of *session*.

        Args:
            session: The session with the credentials.
            cluster: Name of the cluster.
            region: Region of the cluster.
            host: Host name of STS in *region*: it depends on the partition.
            clock: Returns aware UTC.
        """
        self._session, self._clock = session, clock
        self._cluster, self._region, self._host = cluster, region, host
        self._cached_token: tuple[datetime, str, str] | None = None

    def __call__(self) -> str:
        """Return a bearer token.

        Raises:
            Forbidden: the session has no credentials.
        """
        credentials, now = self._session.get_credentials(), self._clock()
        if credentials is None:
            raise Forbidden(f"no AWS credentials to sign a token for {self._cluster} with")
        keys = credentials.get_frozen_credentials()
        cached = self._cached_token  # another thread may renew it meanwhile
        if cached is None or now - cached[0] >= TOKEN_TTL or cached[1] != keys.access_key:
            token = build_eks_token(keys, cluster=self._cluster, region=self._region, host=self._host, now=now)
            self._cached_token = cached = (now, keys.access_key, token)
        return cached[2]

    def renew(self) -> None:
        """Discard the cached token, because the API server rejected it; the next call signs a new one."""
        self._cached_token = None


def build_eks_token(keys: Keys, *, cluster: str, region: str, host: str, now: datetime) -> str:
    """Return the token for *cluster* as of *now* (aware UTC): a presigned URL in base64url without padding."""
    url = build_presigned_url(keys, cluster=cluster, region=region, host=host, now=now)
    return _AUTHENTICATOR_PREFIX + urlsafe_b64encode(url.encode()).decode().rstrip("=")


def build_presigned_url(keys: Keys, *, cluster: str, region: str, host: str, now: datetime) -> str:
    """Return the URL of a GetCallerIdentity request to *host* for *cluster*, signed as of *now* (aware UTC)."""
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/sts/aws4_request"
    parameters = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": _SIGNATURE_ALGORITHM,
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
    text = f"{_SIGNATURE_ALGORITHM}\n{moment}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    return f"https://{host}/?{query}&X-Amz-Signature={_compute_signature(keys.secret_key, scope, text)}"


def _compute_signature(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = digest(key, part.encode(), "sha256")
    return key.hex()
