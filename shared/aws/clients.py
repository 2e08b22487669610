"""Construction of AWS clients: region, endpoint, timeouts and retries.

There are two retry modes. Every connection has a short timeout, so that a Lambda function has time left to report it:

* ``patient``: reads, and writes that may be repeated. botocore's adaptive retries, which slow down when AWS
  throttles; four attempts.
* ``once``: writes that take effect only under a condition, and CreateFleet. A second attempt would hide the outcome
  of the first: a conditional write would be rejected because of its own earlier success. The caller sees the
  timeout, and the next run repeats the same call with the same token. So that it does not meet a connection that AWS
  closed while it was idle, an invocation closes connections that were idle for long (`shared.production_world`).
"""

import re
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, Literal

import msgspec
from boto3.session import Session
from botocore.config import Config

from shared.aws.errors import translate_errors

RetryMode = Literal["patient", "once"]

SESSION_SECONDS: Final = 900
"""The shortest session that AssumeRole allows: a longer one would only keep credentials for longer."""
_MAX_SESSION_NAME_LENGTH: Final = 64
_OTHER_CHARACTERS: Final = re.compile(r"[^0-9A-Za-z_+=,.@-]")
_CONNECT_TIMEOUT_SECONDS: Final = 3
_READ_TIMEOUT_SECONDS: Final = 10
_FLEET_READ_TIMEOUT_SECONDS: Final = 30
"""Read timeout of CreateFleet, which responds only after the instances are started."""


class TemporaryCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of an assumed role."""

    access_key_id: str
    secret_access_key: str
    session_token: str


class Clients:
    """The boto3 clients of one account, each built on first use and cached; safe to share between threads."""

    def __init__(self, region: str, *, endpoint_url: str = "", credentials: TemporaryCredentials | None = None) -> None:
        """Build clients for *region*; they call *endpoint_url* instead of AWS if it is given (the embedded cloud).

        *credentials* are used instead of those of the environment.
        """
        self.region, self._credentials = region, credentials
        self._endpoint_url = endpoint_url or None
        self._client_by_key: dict[tuple[str, str, RetryMode], Any] = {}
        self._session: Session | None = None
        self._call_counts: Counter[str] = Counter()
        self._lock, self._count_lock = Lock(), Lock()

    def get_retrying_client(self, service: str, region: str = "") -> Any:  # noqa: ANN401 - boto3 has no types
        """Return the client of *service* for calls that may be repeated; *region* overrides the default region."""
        return self._get_client(service, region or self.region, "patient")

    def get_single_attempt_client(self, service: str) -> Any:  # noqa: ANN401 - boto3 has no types
        """Return the client of *service* for calls that are attempted exactly once."""
        return self._get_client(service, self.region, "once")

    def get_call_counts(self) -> Mapping[str, int]:
        """Return the number of calls sent so far by operation like ``ec2:DescribeInstances``; retries count."""
        with self._count_lock:
            return dict(sorted(self._call_counts.items()))

    def build_assumed_clients(self, credentials: TemporaryCredentials) -> "Clients":
        """Return clients with *credentials* of an assumed role; their calls are counted here too."""
        clients = Clients(self.region, endpoint_url=self._endpoint_url or "", credentials=credentials)
        clients._call_counts, clients._count_lock = self._call_counts, self._count_lock
        return clients

    def close_idle_connections(self) -> None:
        """Close the connections that no call uses; the next call opens a new one."""
        with self._lock:
            for client in self._client_by_key.values():
                client.close()

    def get_session(self) -> Session:
        """Return the boto3 session of all clients, with its credentials and its data about regions."""
        with self._lock:
            return self._ensure_session()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for client in self._client_by_key.values():
                client.close()
            self._client_by_key.clear()

    def _get_client(self, service: str, region: str, retry_mode: RetryMode) -> Any:  # noqa: ANN401 - boto3 has no types
        key = (service, region, retry_mode)
        with self._lock:
            if key not in self._client_by_key:
                client = self._ensure_session().client(
                    service,
                    region_name=region,
                    endpoint_url=self._endpoint_url,
                    config=_build_config(service, retry_mode),
                )
                client.meta.events.register("before-send", self._count_call)
                self._client_by_key[key] = client
            return self._client_by_key[key]

    def _ensure_session(self) -> Session:
        if self._session is None:
            keys = self._credentials
            options = (
                {
                    "aws_access_key_id": keys.access_key_id,
                    "aws_secret_access_key": keys.secret_access_key,
                    "aws_session_token": keys.session_token,
                }
                if keys is not None
                else {}
            )
            self._session = Session(region_name=self.region, **options)
        return self._session

    def _count_call(self, event_name: str, **_: object) -> None:
        service, operation = event_name.split(".")[1:]
        with self._count_lock:
            self._call_counts[f"{service}:{operation}"] += 1


def assume_role(clients: Clients, role_arn: str, external_id: str, session: str) -> TemporaryCredentials:
    """Call AssumeRole with *external_id* ("": none); CloudTrail shows *session*, as far as its characters are allowed.

    The call goes to the regional endpoint of AWS STS.

    Raises:
        Fault: the role cannot be assumed; the message names it.
    """
    external_ids = {"ExternalId": external_id} if external_id else {}
    with translate_errors(f"sts:AssumeRole {role_arn}"):
        response = clients.get_retrying_client("sts").assume_role(
            RoleArn=role_arn,
            RoleSessionName=_OTHER_CHARACTERS.sub("-", session)[:_MAX_SESSION_NAME_LENGTH],
            DurationSeconds=SESSION_SECONDS,
            **external_ids,
        )
    credentials = response["Credentials"]
    return TemporaryCredentials(
        access_key_id=credentials["AccessKeyId"],
        secret_access_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
    )


def _build_config(service: str, retry_mode: RetryMode) -> Config:
    """Build the timeouts and retries; ``total_max_attempts`` includes the first attempt, ``max_attempts`` does not."""
    adaptive_retries, no_retries = (
        {"mode": "adaptive", "total_max_attempts": 4},
        {"mode": "standard", "total_max_attempts": 1},
    )
    return Config(
        connect_timeout=_CONNECT_TIMEOUT_SECONDS,
        read_timeout=_FLEET_READ_TIMEOUT_SECONDS if (service, retry_mode) == ("ec2", "once") else _READ_TIMEOUT_SECONDS,
        retries=adaptive_retries if retry_mode == "patient" else no_retries,
        tcp_keepalive=True,
    )
