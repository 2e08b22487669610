"""What steps may use: clients, the cluster's API, the CDK and time. The same steps run on AWS and on the emulation."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol, TypeAlias

from sim.playground.kubectl import KubectlClient
from tests.e2e_aws.ledger import Ledger

PREFIX: Final = "joiner-e2e-"
"""Prefix of all names that the test creates."""
RUN_TAG: Final = "joiner-e2e"
"""Key of the tag on everything that the test creates in the account; its value is the id of the run."""
TAINT_KEY: Final = "joiner-e2e"
"""Key of the taint on all nodes of the test: pods of the cluster do not run there."""
NAMESPACE: Final = "joiner-e2e"
Version: TypeAlias = Literal["first", "next", "broken"]
"""What is deployed: this checkout, a version with another constant, a version whose functions fail."""


class Environment(Protocol):
    """An account with a cluster. `AwsEnvironment` and `EmbeddedEnvironment` implement it."""

    cluster: str
    region: str
    run_id: str
    minute: timedelta
    """How long a minute of schedules, alarms and deployments lasts: on AWS a minute, in the emulation less."""
    idle_minutes: int
    ledger: Ledger
    deployed_at: datetime | None
    """When the first deployment was complete; None: not deployed."""

    @property
    def kubectl(self) -> KubectlClient:
        """Access to the cluster with all permissions."""

    def get_client(self, service: str) -> Any:
        """Return the boto3 client of *service*."""

    def get_now(self) -> datetime:
        """Return the current time, aware UTC."""

    def wait_until(self, condition: Callable[[], bool], timeout: timedelta) -> bool:
        """Wait until *condition* holds, at most for *timeout*; return whether it holds."""

    def deploy(self, version: Version) -> str:
        """Run `cdk deploy` with *version*; return "" if it succeeded, else the end of its output."""

    def destroy(self) -> str:
        """Run `cdk destroy`; return "" if it succeeded, else the end of its output."""

    def run_audit(self) -> dict[str, Any]:
        """Return the document of `joiner audit -o json`."""


def get_stack_name(cluster: str) -> str:
    """Return the name of the test's stack.

    >>> get_stack_name("prod_eu")
    'joiner-e2e-prod-eu'
    """
    return PREFIX + cluster.replace("_", "-")


def wait_minutes(environment: Environment, minutes: float) -> None:
    """Wait *minutes* of the environment."""
    environment.wait_until(lambda: False, environment.minute * minutes)
