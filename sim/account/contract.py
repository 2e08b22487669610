"""What the account and whoever runs its functions say to each other."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """How one call of a function ended."""

    payload: bytes
    """What the handler answered, or Lambda's document about the error."""
    error: str = ""
    """``Unhandled`` if the function failed, ran out of time or could not start; empty if it answered."""
    log: str = ""
    """The end of what it wrote."""
    version: str = "$LATEST"
    """Which one ran: an alias may lead to two."""


Invoker: TypeAlias = Callable[[str, str, bytes], Invocation]
"""Runs a function: its name or ARN, the qualifier (a version, an alias or ""), the payload. Answers when it has ended,
and is called from several threads at once."""
Dispatcher: TypeAlias = Callable[[str, str, bytes], None]
"""Takes an asynchronous call (`InvocationType=Event`) and answers at once; the arguments are those of `Invoker`."""


class NoInvoker(Exception):
    """Nobody runs functions in this account."""


class Throttled(Exception):
    """As many calls of a function run as may; Lambda's Invoke answers 429 TooManyRequestsException."""


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a function, as it is to be run."""

    arn: str
    """With the version, as the function is told it was called."""
    name: str
    version: str
    is_one_of_two: bool = False
    """Whether it was chosen by lot: the alias that was called leads to another one too."""
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
    """Their zip files, in their order."""
    log_format: str = "Text"
    """``Text`` or ``JSON``."""
    reserved_concurrency: int | None = None
    """Calls of all versions together that may run at once; None: nothing is reserved."""
    async_retries: int = 2
    """Of calls that nobody waits for: how often one that failed is made again."""
    max_event_age_seconds: int = 21_600
    """How long one that is throttled is tried."""
    on_failure_arn: str = ""
    """The queue that gets what was given up."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is to AWS, as STS hands it out."""

    access_key: str
    secret_key: str
    session_token: str

    def environment(self) -> dict[str, str]:
        """Answer the variables in which SDKs look for them."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
