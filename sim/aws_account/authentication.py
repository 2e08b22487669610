"""EKS authentication: the IAM principal of a token, and its user name and groups in the cluster.

A token is the presigned URL of a GetCallerIdentity call, for one cluster. EKS sends it to STS and trusts the response;
here the signature is computed and compared. Then the access entry of the role gives the user name and the groups. A
role without an access entry is rejected.
"""

import re
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from shared.errors import NotFound
from sim.aws_account.function_runtime import Credentials
from sim.aws_account.identities import Caller
from sim.aws_account.services.access_entries import NODE_TYPES, AccessEntry, AccessEntryApi
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock

TokenReview: TypeAlias = dict[str, Any]

AUTHENTICATOR_PREFIX: Final = "k8s-aws-v1."
ADMIN_POLICY: Final = "AmazonEKSClusterAdminPolicy"
MASTERS_GROUP: Final = "system:masters"
TOKEN_TTL: Final = timedelta(minutes=15)
_STS_HOST_PATTERN: Final = re.compile(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")
_SIGNED_HEADERS: Final = {"host", "x-k8s-aws-id"}
_ALLOWED_QUERY_PARAMETERS: Final = frozenset(
    {
        *("Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"),
        *("X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders"),
    }
)
_MAX_CLOCK_SKEW: Final = timedelta(minutes=5)


class NotLetIn(Exception):
    """The token is invalid, or its principal has no access entry; the message says why."""


class Authenticator:
    """The authentication webhook of the API server for one cluster: it reviews tokens."""

    def __init__(
        self,
        cloud: Cloud,
        clock: Clock,
        access_entries: AccessEntryApi,
        find_credentials: Callable[[str], Credentials | None],
        find_caller: Callable[[str], Caller],
    ) -> None:
        """Look up credentials with *find_credentials* and their callers with *find_caller*, by access key."""
        self._cloud, self._clock, self._access_entries = cloud, clock, access_entries
        self._find_credentials, self._find_caller = find_credentials, find_caller

    def review_token(self, token_review: Mapping[str, Any]) -> TokenReview:
        """Return *token_review* (authentication.k8s.io/v1) with its status."""
        try:
            user = self.authenticate_token(token_review["spec"]["token"])
            status: TokenReview = {"authenticated": True, "user": user}
        except NotLetIn as error:
            status = {"authenticated": False, "error": str(error)}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}

    def authenticate_token(self, token: str) -> dict[str, Any]:
        """Return the user of *token* in the form of a TokenReview.

        Raises:
            NotLetIn: the token is invalid, or its principal has no access to the cluster.
        """
        caller, access_key = self._verify_signature(token)
        cluster = self._cloud.facts.name
        entry = self._access_entries.find_entry(cluster, caller.role_arn or caller.arn)
        if entry is None:
            raise NotLetIn(f"{caller.role_arn or caller.arn} has no access entry for {cluster}")
        account_id, user_id = caller.arn.split(":")[4], caller.user_id.partition(":")[0]
        extra = {
            "accessKeyId": access_key,
            "arn": caller.arn,
            "canonicalArn": caller.role_arn or caller.arn,
            "principalId": user_id,
            "sessionName": caller.session_name,
        }
        return {
            "username": self._format_username(entry, caller),
            "uid": f"aws-iam-authenticator:{account_id}:{user_id}",
            "groups": list_kubernetes_groups(entry),
            "extra": {key: [value] for key, value in extra.items()},
        }

    def _verify_signature(self, token: str) -> tuple[Caller, str]:
        url, query = _decode_token(token)
        signed_at = _parse_timestamp(query["X-Amz-Date"])
        now = self._clock.get_time()
        if not signed_at - _MAX_CLOCK_SKEW <= now < signed_at + TOKEN_TTL:
            raise NotLetIn(f"the token is of {signed_at}, and it is {now}")
        access_key, region = _parse_credential(query["X-Amz-Credential"])
        credentials = self._find_credentials(access_key)
        if credentials is None:
            raise NotLetIn(f"the access key {access_key} is not known")
        if query.get("X-Amz-Security-Token", "") != credentials.session_token:
            raise NotLetIn("the session token is another one")
        cluster = self._cloud.facts.name
        if compute_signature(url, credentials, cluster, region, query["X-Amz-Date"]) != query["X-Amz-Signature"]:
            raise NotLetIn(f"the signature is none of {access_key} for the cluster {cluster}")
        return self._find_caller(access_key), access_key

    def _format_username(self, entry: AccessEntry, caller: Caller) -> str:
        username = entry.username.replace("{{SessionName}}", caller.session_name.replace("@", "-"))
        username = username.replace("{{SessionNameRaw}}", caller.session_name)
        username = username.replace("{{AccountID}}", caller.arn.split(":")[4])
        if entry.type not in NODE_TYPES:
            return username
        try:
            instance = self._cloud.instances.describe(caller.session_name)
            return username.replace("{{EC2PrivateDNSName}}", instance.private_dns_name)
        except NotFound as error:
            raise NotLetIn(f"a node's session is called as its instance: {error}") from error


def list_kubernetes_groups(entry: AccessEntry) -> list[str]:
    """Return the Kubernetes groups of a principal with *entry*."""
    is_admin = any(
        arn.endswith(f"/{ADMIN_POLICY}") and scope.get("type") == "cluster" for arn, scope in entry.policies.items()
    )
    return [*entry.groups, *([MASTERS_GROUP] if is_admin else [])]


def compute_signature(url: str, credentials: Credentials, cluster: str, region: str, timestamp: str) -> str:
    """Return the valid signature of *url*, computed by botocore."""
    signer = SigV4QueryAuth(BotocoreCredentials(credentials.access_key, credentials.secret_key), "sts", region)
    unsigned_url = re.sub(r"&X-Amz-Signature=[0-9a-f]+", "", url)
    request = AWSRequest(method="GET", url=unsigned_url, headers={"x-k8s-aws-id": cluster})
    request.context["timestamp"] = timestamp
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


def _decode_token(token: str) -> tuple[str, dict[str, str]]:
    """Return the URL in *token* and its query parameters.

    Raises:
        NotLetIn: the token is malformed, or is not the call that EKS requires.
    """
    if not token.startswith(AUTHENTICATOR_PREFIX):
        raise NotLetIn(f"a token of EKS begins with {AUTHENTICATOR_PREFIX}")
    text = token.removeprefix(AUTHENTICATOR_PREFIX)
    try:
        url = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:
        raise NotLetIn(f"the token is no base64: {error}") from error
    parts = urlsplit(url)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    if parts.scheme != "https" or not _STS_HOST_PATTERN.fullmatch(parts.netloc) or parts.path != "/":
        raise NotLetIn(f"https://{parts.netloc}{parts.path} is not STS")
    if query.get("Action") != "GetCallerIdentity":
        raise NotLetIn(f"{query.get('Action')} is not GetCallerIdentity")
    if unknown := sorted(query.keys() - _ALLOWED_QUERY_PARAMETERS):
        raise NotLetIn(f"{', '.join(unknown)} does not belong there")
    if missing := sorted(_ALLOWED_QUERY_PARAMETERS - {"X-Amz-Security-Token"} - query.keys()):
        raise NotLetIn(f"{', '.join(missing)} is missing")
    if set(query["X-Amz-SignedHeaders"].split(";")) != _SIGNED_HEADERS:
        raise NotLetIn("the cluster's name, as header x-k8s-aws-id, is not signed")
    return url, query


def _parse_timestamp(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise NotLetIn(f"X-Amz-Date {text} is no instant") from error


def _parse_credential(credential: str) -> tuple[str, str]:
    parts = credential.split("/")
    if parts[3:] != ["sts", "aws4_request"]:
        raise NotLetIn(f"{credential} is signed for another service")
    return parts[0], parts[2]
