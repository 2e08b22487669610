"""The interface between the account and the code that runs its functions."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from sim.lambda_runtime.async_retry import DEFAULT_ASYNC_RETRIES
from sim.time.virtual_clock import Clock


class InvocationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one invocation of a function."""

    payload: bytes
    """The response of the handler, or Lambda's JSON document about the error."""
    error: str = ""
    """``Unhandled`` if the function failed, timed out or could not start; empty if it succeeded."""
    log: str = ""
    """The tail of the log output."""
    version: str = "$LATEST"
    """The executed version: an alias may route to two versions."""


Invoker: TypeAlias = Callable[[str, str, bytes], InvocationResult]
"""Runs a function: its name or ARN, the qualifier (a version, an alias or ""), the payload.

Returns when the invocation has ended; called from several threads at once.
"""
Dispatcher: TypeAlias = Callable[[str, str, bytes], None]
"""Takes an asynchronous invocation (`InvocationType=Event`) and returns immediately; the arguments are those of
`Invoker`.
"""


class NoInvoker(Exception):
    """No invoker is set: the functions of this account cannot run."""


class Throttled(Exception):
    """The concurrency limit of a function is reached; Lambda's Invoke responds 429 TooManyRequestsException."""


class DeployedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a function with everything that is needed to run it."""

    arn: str
    """The ARN with the qualifier, as the function sees it in `invoked_function_arn`."""
    name: str
    version: str
    is_weighted_choice: bool = False
    """Whether the version was chosen by weight: the invoked alias routes to a second version as well."""
    handler: str
    environment: dict[str, str]
    memory_mb: int
    timeout_seconds: int
    role_arn: str
    log_group: str
    code_sha256: str
    code: bytes = msgspec.field(default=b"")
    """The zip file."""
    layers: tuple[bytes, ...] = ()
    """The zip files of the layers, in their order."""
    log_format: str = "Text"
    """``Text`` or ``JSON``."""
    reserved_concurrency: int | None = None
    """The concurrent executions of all versions together; None: no reserved concurrency."""
    async_retries: int = DEFAULT_ASYNC_RETRIES
    """How often a failed asynchronous invocation is retried."""
    max_event_age_seconds: int = 21_600
    """How long a throttled asynchronous invocation is retried."""
    on_failure_arn: str = ""
    """The ARN of the queue that gets failed asynchronous invocations (on-failure destination or dead-letter queue)."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Temporary AWS credentials, as STS issues them."""

    access_key: str
    secret_key: str
    session_token: str

    def build_environment(self) -> dict[str, str]:
        """Return the environment variables in which SDKs look for credentials."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }


class ClientFactory(Protocol):
    """Creates boto3 clients of an account."""

    def get_client(self, service: str, credentials: Credentials = ...) -> Any:  # noqa: ANN401 - boto3's
        """Return a client of *service* with *credentials*, by default those of the deployer."""


class AccountServices(ClientFactory, Protocol):
    """The account that the simulated services belong to."""

    region: str
    account_id: str
    clock: Clock
