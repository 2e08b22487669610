"""The environment of the steps on the emulated AWS: the account and the control plane of a `Stage`."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sim.playground.kubectl import KubectlClient
from tests.e2e.stage import CLUSTER, SCHEDULE_INTERVAL, Stage
from tests.e2e_aws.aws_environment import run_audit
from tests.e2e_aws.environment import Version
from tests.e2e_aws.ledger import LEDGER_NAME, Ledger, LedgerDocument
from tests.e2e_aws.stack.assembly import Deployments

RUN_ID: Final = "embedded"
IDLE_MINUTES: Final = 8
VCPU_QUOTA: Final = 96
"""As in an AWS account, and unlike the emulation's default, the quota is below the largest instance type."""


class EmbeddedEnvironment:
    """The emulation, an implementation of `Environment`."""

    def __init__(self, stage: Stage, stack: ExitStack) -> None:
        """Use the account and the cluster of *stage*; a simulated minute is the interval of the schedules."""
        self.stage = stage
        self.cluster, self.region, self.run_id = CLUSTER, stage.account.region, RUN_ID
        self.minute, self.idle_minutes = SCHEDULE_INTERVAL, IDLE_MINUTES
        self.deployed_at: datetime | None = None
        document = LedgerDocument(cluster=self.cluster, region=self.region, run_id=RUN_ID)
        self.ledger = Ledger(stage.folder / LEDGER_NAME, document)
        self.deployments = Deployments(
            self.cluster,
            RUN_ID,
            folder=stage.folder,
            wait_until=self.wait_until,
            get_environment=stage.build_environment,
        )
        stack.callback(self.deployments.stop)
        stage.account.minute = self.minute
        stage.cloud.pools.set_quota("on-demand", VCPU_QUOTA)
        self.during_update: Callable[[], None] = lambda: None
        """Called once, when the next update of the stack has begun."""

    @property
    def kubectl(self) -> KubectlClient:
        """Access to the cluster with all permissions."""
        return self.stage.kubectl

    def get_client(self, service: str) -> Any:
        """Return the client of *service* with the deployer's credentials."""
        return self.stage.account.get_client(service)

    def get_now(self) -> datetime:
        """Return the current time, aware UTC."""
        return datetime.now(UTC)

    def wait_until(self, condition: Callable[[], bool], timeout: timedelta) -> bool:
        """Let time pass until *condition* holds, at most for *timeout*; return whether it holds."""

        def check_condition() -> bool:
            self.stage.check_processes()
            if self.stage.get_stack_status() == "UPDATE_IN_PROGRESS":
                during_update, self.during_update = self.during_update, lambda: None
                during_update()
            return condition()

        return self.stage.grounds.drive.run(check_condition, timeout)

    def deploy(self, version: Version) -> str:
        """Run `cdk deploy` with *version*; a new stack's schedules fire at once, as on AWS."""
        output = self.deployments.deploy(version)
        if version == "first":
            self.stage.fire_all_schedules()
        return output

    def destroy(self) -> str:
        """Run `cdk destroy`."""
        return self.deployments.destroy()

    def run_audit(self) -> dict[str, Any]:
        """Run `joiner audit` against the account and the control plane."""
        kubeconfig = self.stage.folder / "kubeconfig"
        kubeconfig.write_text(self.stage.build_kubeconfig(), encoding="utf-8")
        return run_audit(self.cluster, self.region, kubeconfig, self.stage.build_environment())
