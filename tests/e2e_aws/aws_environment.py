"""The environment on AWS: boto3 with the caller's credentials, an EKS token, the CDK CLI, and real time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import boto3
import msgspec

from shared.aws.partitions import build_regional_host
from shared.errors import Throttled, Unreachable
from shared.kubernetes.client import KubeClient
from shared.kubernetes.eks_token import EksToken
from sim.playground.kubectl import KubectlClient
from tests.e2e_aws.environment import Version, get_stack_name
from tests.e2e_aws.ledger import Ledger
from tests.e2e_aws.stack.assembly import Deployments

POLL_INTERVAL_SECONDS: Final = 2
JOINER: Final = Path(sys.executable).with_name("joiner")


class AwsEnvironment:
    """An account on AWS, an implementation of `Environment`."""

    def __init__(self, cluster: str, region: str, run_id: str, *, ledger: Ledger, folder: Path) -> None:
        """Make no call yet; keep assemblies and logs in *folder*."""
        self.cluster, self.region, self.run_id, self.ledger = cluster, region, run_id, ledger
        self.minute, self.idle_minutes = timedelta(minutes=1), 60
        self.deployed_at: datetime | None = None
        self._session, self._clients, self._folder = boto3.Session(region_name=region), dict[str, Any](), folder
        self._deployments = Deployments(
            cluster, run_id, folder=folder, wait_until=self.wait_until, get_environment=self._build_variables
        )

    @cached_property
    def kubectl(self) -> KubectlClient:
        """The cluster's API, with a token of the caller's credentials."""
        facts = self._describe_cluster()
        token = self._build_token()
        return KubectlClient(
            KubeClient(
                facts["endpoint"],
                certificate_authority=facts["certificateAuthority"]["data"],
                token=token,
                renew=token.renew,
            )
        )

    def get_client(self, service: str) -> Any:
        """Return the client of *service*; it is cached."""
        if service not in self._clients:
            self._clients[service] = self._session.client(service)
        return self._clients[service]

    def get_now(self) -> datetime:
        """Return the current time, aware UTC."""
        return datetime.now(UTC)

    def wait_until(self, condition: Callable[[], bool], timeout: timedelta) -> bool:
        """Check *condition* every two seconds, at most for *timeout*; return whether it holds.

        If the API server does not respond, the condition does not hold yet.
        """

        def is_met() -> bool:
            try:
                return condition()
            except (Throttled, Unreachable):
                return False

        end = time.monotonic() + timeout.total_seconds()
        while not is_met():
            seconds = end - time.monotonic()
            if seconds <= 0:
                return False
            time.sleep(min(seconds, POLL_INTERVAL_SECONDS))
        return True

    def deploy(self, version: Version) -> str:
        """Run `cdk deploy` with *version*."""
        return self._deployments.deploy(version)

    def destroy(self) -> str:
        """Run `cdk destroy`."""
        return self._deployments.destroy()

    def stop(self) -> None:
        """End the processes that are still running."""
        self._deployments.stop()

    def run_audit(self) -> dict[str, Any]:
        """Run `joiner audit` with a kubeconfig for this cluster."""
        kubeconfig = self._folder / "kubeconfig.json"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(self._build_kubeconfig()), encoding="utf-8")
        try:
            return run_audit(self.cluster, self.region, kubeconfig, self._build_variables())
        finally:
            kubeconfig.unlink()

    def _describe_cluster(self) -> dict[str, Any]:
        return dict(self.get_client("eks").describe_cluster(name=self.cluster)["cluster"])

    def _build_token(self) -> EksToken:
        session = self._session._session  # noqa: SLF001 - the botocore session, which knows the partitions
        host = build_regional_host(session, "sts", self.region)
        return EksToken(self._session, cluster=self.cluster, region=self.region, host=host, clock=self.get_now)

    def _build_variables(self) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return variables | {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}

    def _build_kubeconfig(self) -> dict[str, Any]:
        facts = self._describe_cluster()
        server = {
            "server": facts["endpoint"],
            "certificate-authority-data": facts["certificateAuthority"]["data"],
        }
        arn = facts["arn"]
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": arn, "cluster": server}],
            "users": [{"name": arn, "user": {"token": self._build_token()()}}],
            "contexts": [{"name": arn, "context": {"cluster": arn, "user": arn}}],
            "current-context": arn,
        }


def run_audit(cluster: str, region: str, kubeconfig: Path, variables: dict[str, str]) -> dict[str, Any]:
    """Return the document of `joiner audit -o json` for the test's stack.

    Raises:
        OSError: the command printed no document.
    """
    words = ["audit", "--cluster", cluster, "--region", region, "--stack", get_stack_name(cluster), "-o", "json"]
    command = [str(JOINER), *words, "--kubeconfig", str(kubeconfig)]
    completed = subprocess.run(command, capture_output=True, env=variables, check=False)
    try:
        report: dict[str, Any] = msgspec.json.decode(completed.stdout)
    except msgspec.DecodeError:
        raise OSError(f"joiner audit: {completed.stderr.decode(errors='replace')[-500:]}") from None
    return report
