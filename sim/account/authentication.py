"""EKS's way in: whose a token is, and as what the cluster lets that one in.

A token is the presigned URL of a GetCallerIdentity, for one cluster. EKS sends it to STS and believes the answer;
here the signature is computed anew. Then the role's access entry says user and groups. A role without one stays out.
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
from botocore.credentials import Credentials as Keys

from shared.errors import Gone
from sim.account.access_entries import NODE_TYPES, AccessEntries, Entry
from sim.account.contract import Credentials
from sim.account.identities import Caller
from sim.clock import Clock
from sim.cloud.cloud import Cloud

Review: TypeAlias = dict[str, Any]

PREFIX: Final = "k8s-aws-v1."
ADMIN: Final = "AmazonEKSClusterAdminPolicy"
MASTERS: Final = "system:masters"
LIFETIME: Final = timedelta(minutes=15)
_HOST: Final = re.compile(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")
_SIGNED: Final = {"host", "x-k8s-aws-id"}
_KNOWN: Final = frozenset(
    {
        *("Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires"),
        *("X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders"),
    }
)
_SKEW: Final = timedelta(minutes=5)


class NotLetIn(Exception):
    """The token stands for nobody, or for somebody who has no access entry; the message says why."""


class Authenticator:
    """Answers the API server's TokenReviews for one cluster."""

    def __init__(
        self,
        cloud: Cloud,
        clock: Clock,
        entries: AccessEntries,
        keys: Callable[[str], Credentials | None],
        caller: Callable[[str], Caller],
    ) -> None:
        """Know the keys that *keys* answers, and whose they are by *caller*."""
        self._cloud, self._clock, self._entries, self._keys, self._caller = cloud, clock, entries, keys, caller

    def review(self, asked: Mapping[str, Any]) -> Review:
        """Answer a TokenReview (authentication.k8s.io/v1)."""
        try:
            status: Review = {"authenticated": True, "user": self.user(asked["spec"]["token"])}
        except NotLetIn as error:
            status = {"authenticated": False, "error": str(error)}
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}

    def user(self, token: str) -> dict[str, Any]:
        """Answer the user that *token* stands for, as a TokenReview has it.

        Raises:
            NotLetIn: nobody, or nobody whom the cluster lets in.
        """
        caller, access_key = self._signer(token)
        cluster = self._cloud.facts.name
        entry = self._entries.entry(cluster, caller.role_arn or caller.arn)
        if entry is None:
            raise NotLetIn(f"{caller.role_arn or caller.arn} has no access entry for {cluster}")
        number, user_id = caller.arn.split(":")[4], caller.user_id.partition(":")[0]
        said = {
            "accessKeyId": access_key,
            "arn": caller.arn,
            "canonicalArn": caller.role_arn or caller.arn,
            "principalId": user_id,
            "sessionName": caller.session,
        }
        return {
            "username": self._named(entry, caller),
            "uid": f"aws-iam-authenticator:{number}:{user_id}",
            "groups": groups_of(entry),
            "extra": {key: [value] for key, value in said.items()},
        }

    def _signer(self, token: str) -> tuple[Caller, str]:
        url, asked = _parsed(token)
        moment = _instant(asked["X-Amz-Date"])
        now = self._clock.now()
        if not moment - _SKEW <= now < moment + LIFETIME:
            raise NotLetIn(f"the token is of {moment}, and it is {now}")
        access_key, region = _scope(asked["X-Amz-Credential"])
        keys = self._keys(access_key)
        if keys is None:
            raise NotLetIn(f"the access key {access_key} is not known")
        if asked.get("X-Amz-Security-Token", "") != keys.session_token:
            raise NotLetIn("the session token is another one")
        if signature(url, keys, self._cloud.facts.name, region, asked["X-Amz-Date"]) != asked["X-Amz-Signature"]:
            raise NotLetIn(f"the signature is none of {access_key} for the cluster {self._cloud.facts.name}")
        return self._caller(access_key), access_key

    def _named(self, entry: Entry, caller: Caller) -> str:
        name = entry.username.replace("{{SessionName}}", caller.session.replace("@", "-"))
        name = name.replace("{{SessionNameRaw}}", caller.session).replace("{{AccountID}}", caller.arn.split(":")[4])
        if entry.type not in NODE_TYPES:
            return name
        try:
            return name.replace("{{EC2PrivateDNSName}}", self._cloud.instance(caller.session).private_dns_name)
        except Gone as error:
            raise NotLetIn(f"a node's session is called as its instance: {error}") from error


def groups_of(entry: Entry) -> list[str]:
    """Answer the groups that EKS puts a principal with *entry* into."""
    is_admin = any(
        arn.endswith(f"/{ADMIN}") and scope.get("type") == "cluster" for arn, scope in entry.policies.items()
    )
    return [*entry.groups, *([MASTERS] if is_admin else [])]


def signature(url: str, keys: Credentials, cluster: str, region: str, moment: str) -> str:
    """Answer the signature that *url* must have, computed by botocore."""
    signer = SigV4QueryAuth(Keys(keys.access_key, keys.secret_key), "sts", region)
    bare = re.sub(r"&X-Amz-Signature=[0-9a-f]+", "", url)
    request = AWSRequest(method="GET", url=bare, headers={"x-k8s-aws-id": cluster})
    request.context["timestamp"] = moment
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


def _parsed(token: str) -> tuple[str, dict[str, str]]:
    """Answer the URL in *token* and what it says.

    Raises:
        NotLetIn: it is none, or not of the call that EKS wants.
    """
    if not token.startswith(PREFIX):
        raise NotLetIn(f"a token of EKS begins with {PREFIX}")
    text = token.removeprefix(PREFIX)
    try:
        url = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:
        raise NotLetIn(f"the token is no base64: {error}") from error
    parts = urlsplit(url)
    asked = {key: some[0] for key, some in parse_qs(parts.query).items()}
    if parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or parts.path != "/":
        raise NotLetIn(f"https://{parts.netloc}{parts.path} is not STS")
    if asked.get("Action") != "GetCallerIdentity":
        raise NotLetIn(f"{asked.get('Action')} is not GetCallerIdentity")
    if unknown := sorted(asked.keys() - _KNOWN):
        raise NotLetIn(f"{', '.join(unknown)} does not belong there")
    if missing := sorted(_KNOWN - {"X-Amz-Security-Token"} - asked.keys()):
        raise NotLetIn(f"{', '.join(missing)} is missing")
    if set(asked["X-Amz-SignedHeaders"].split(";")) != _SIGNED:
        raise NotLetIn("the cluster's name, as header x-k8s-aws-id, is not signed")
    return url, asked


def _instant(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise NotLetIn(f"X-Amz-Date {text} is no instant") from error


def _scope(credential: str) -> tuple[str, str]:
    parts = credential.split("/")
    if parts[3:] != ["sts", "aws4_request"]:
        raise NotLetIn(f"{credential} is signed for another service")
    return parts[0], parts[2]
