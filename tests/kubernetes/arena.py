"""A playground on its own control plane, and the measurements of its tests.

The cloud is embedded, its instances join and end ten times as fast as real ones, and the schedules are invoked every
five seconds; all else is as in a deployment: the deployed handlers with their permissions, kube-scheduler,
kube-controller-manager, and kwok instead of the kubelets.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import pytest

from shared.errors import Fault
from shared.model.core.labels import ZONE
from shared.model.core.units import parse_quantity
from sim.playground.kubectl import NODE_CLAIMS_PATH, NODES_PATH, PODS_PATH, KubectlClient
from sim.playground.playground import Playground
from sim.playground.reporter import PlaygroundReporter
from sim.scenarios.runner import TimelineEntry
from sim.scenarios.scenario import ManagedNode
from sim.time.real_clock import RealTimeClock
from sim.world.measurements import is_finished, is_running
from tests.controlplane.binaries import KUBECTL, ensure_programs
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.manifests import Object, make_daemon_set, make_node_class

ONE_SECOND: Final = timedelta(seconds=1)
ONE_MINUTE: Final = timedelta(minutes=1)
SCHEDULE_PERIOD: Final = 5 * ONE_SECOND
MAX_WAIT: Final = 15 * ONE_MINUTE
"""Limit of real time for every wait: no host is that slow."""
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CPU_BY_DAEMON: Final = {"aws-node": "50m", "kube-proxy": "100m"}
"""The DaemonSets that run on every node, and the CPU that each requests."""


class Arena:
    """A playground, and the measurements of its tests."""

    def __init__(
        self,
        plane: ControlPlane,
        *,
        template: Mapping[str, Any] | None = None,
        node_speed: float = 10,
        schedule_period: timedelta | None = SCHEDULE_PERIOD,
    ) -> None:
        """Deploy the stack of *template* into the cluster of *plane*; time advances only during a wait.

        Instances join and end *node_speed* times as fast as real ones. All schedules are invoked once, and again every
        *schedule_period*; None: as often as they are deployed.
        """
        clock, self._plane = RealTimeClock(lambda: datetime.now(UTC)), plane
        self.playground = Playground(
            clock,
            functions_kube=plane.get_client(plane.get_token(FUNCTIONS)),
            admin_kube=plane.get_client(),
            endpoint=plane.endpoint,
            certificate_authority=plane.certificate_authority,
            seed=7,
            template=template,
            node_deletion_delay=3 * ONE_SECOND,
            node_speed=node_speed,
        )
        self.desk: KubectlClient = self.playground.kubectl
        self.timeline_lines: list[str] = []
        self._registered_before: list[frozenset[str]] = []
        self.reporter = PlaygroundReporter(self.playground, self._record_entry)
        self._began = clock.get_time()
        self.desk.apply_crds()
        self.wait_until(self.desk.has_crds, "our definitions are served")
        self.desk.apply_rbac()
        self.playground.start_managed_node(ManagedNode(labels={"eks.amazonaws.com/nodegroup": "system"}))
        self.desk.apply_all(make_daemon_set(*daemon) for daemon in CPU_BY_DAEMON.items())
        self.desk.apply(make_node_class())
        self.wait_until(self._is_managed_node_running, "the managed node runs its daemons")
        if schedule_period is None:
            self.playground.invoke_schedules()
        else:
            self.playground.invoke_schedules_every(schedule_period)

    def _list_registered_claims(self) -> frozenset[str]:
        return frozenset(
            claim["metadata"]["name"] for claim in self.list_claims() if _is_condition_true(claim, "Registered")
        )

    @property
    def seconds(self) -> float:
        return (self.playground.clock.get_time() - self._began).total_seconds()

    def wait_until(self, holds: Callable[[], bool], description: str, interval: timedelta = ONE_SECOND) -> float:
        """Advance time until *holds* returns true and return the seconds that took.

        A call that fails counts as false.
        """
        began, last = self.playground.clock.get_time(), [self.playground.clock.get_time() - interval]

        def check() -> bool:
            if self.playground.clock.get_time() - last[0] < interval:
                return False
            last[0] = self.playground.clock.get_time()
            with suppress(Fault):
                return holds()
            return False

        if not self.playground.drive.run(check, MAX_WAIT):
            pytest.fail(f"not within {MAX_WAIT}: {description}\n" + "\n".join(self.timeline_lines[-60:]))
        return (self.playground.clock.get_time() - began).total_seconds()

    def wait_until_scheduled(self, app: str, count: int) -> None:
        """Wait, with Joiner at rest, until *app* has *count* pods that kube-scheduler has placed or failed to place.

        A ReplicaSet creates its pods in ever larger batches, and a cycle between two of them plans for the first batch
        only: its launches then depend on timing.
        """
        description = f"kube-scheduler to have tried {count} pods of {app}"
        self._plane.wait_until(lambda: self._is_settled(app, count), description, MAX_WAIT.total_seconds())

    def advance(self, duration: timedelta) -> None:
        self.playground.drive.run(limit=duration)

    def list_pods(self, app: str = "") -> list[Object]:
        """Return the pods of the test's Deployments that are not terminating."""
        pods = [
            pod
            for pod in self.desk.list_objects(PODS_PATH)
            if pod["metadata"]["namespace"] == "default" and not is_finished(pod)
        ]
        return [pod for pod in pods if app in ("", pod["metadata"]["labels"]["app"])]

    def build_running_check(self, count: int, app: str = "") -> Callable[[], bool]:
        def are_all_running() -> bool:
            pods = self.list_pods(app)
            return len(pods) == count and all(is_running(pod) for pod in pods)

        return are_all_running

    def list_nodes(self, pool: str = "") -> list[Object]:
        """Return the Nodes of Joiner's pools."""
        labelled = [
            (node["metadata"]["labels"].get("karpenter.sh/nodepool"), node)
            for node in self.desk.list_objects(NODES_PATH)
        ]
        return [node for node_pool, node in labelled if node_pool is not None and pool in ("", node_pool)]

    def list_claims(self) -> list[Object]:
        return self.desk.list_objects(NODE_CLAIMS_PATH)

    def clear_plans(self) -> None:
        """Forget all planned NodeClaims and their pods."""
        self.reporter.node_claim_actions.clear()
        self._registered_before.clear()

    def count_repeated_plans(self) -> dict[str, int]:
        """Return the pods for which more than one NodeClaim was created, with the number of NodeClaims."""
        counts = Counter(pod for claim in self.reporter.node_claim_actions for pod in claim.pods)
        return {pod: count for pod, count in sorted(counts.items()) if count > 1}

    def list_second_launches(self) -> list[str]:
        """Return the NodeClaims all of whose pods had been planned for before, in the order of their creation."""
        planned_pods: set[str] = set()
        second_launches = []
        for claim in self.reporter.node_claim_actions:
            if planned_pods.issuperset(claim.pods):
                second_launches.append(claim.claim.name)
            planned_pods.update(claim.pods)
        return second_launches

    def list_pods_planned_while_covered(self) -> list[str]:
        """Return the pods for which a second NodeClaim was created while the node of the first was in flight."""
        pods, first_claims = [], dict[str, str]()
        for number, claim in enumerate(self.reporter.node_claim_actions):
            for pod in claim.pods:
                first_claim = first_claims.setdefault(pod, claim.claim.name)
                if first_claim != claim.claim.name and first_claim not in self._registered_before[number]:
                    pods.append(pod)
        return sorted(pods)

    def count_planned_zones(self, app: str) -> Counter[str]:
        """Return the number of pods of *app* planned into each zone, each by the first node created for it.

        Where they run is up to kube-scheduler, which counts no zone before it has a node.
        """
        first_zones: dict[str, str] = {}
        for planned in self.reporter.node_claim_actions:
            for pod in planned.pods:
                if _get_app_name(pod) == app:
                    first_zones.setdefault(pod, ",".join(sorted(planned.claim.requirements[ZONE].values)))
        return Counter(first_zones.values())

    def assert_no_node_is_overfull(self) -> None:
        """Assert that the requests on each of Joiner's nodes fit it.

        Neither plan nor kube-scheduler may exceed that.
        """
        pods = self.desk.list_objects(PODS_PATH)
        for node in self.list_nodes():
            node_pods = [
                pod for pod in pods if pod["spec"].get("nodeName") == node["metadata"]["name"] and not is_finished(pod)
            ]
            for resource, unit in (("cpu", 1000), ("memory", 1)):
                requested = sum(
                    parse_quantity(container["resources"].get("requests", {}).get(resource, "0"), per_unit=unit)
                    for pod in node_pods
                    for container in pod["spec"]["containers"]
                )
                assert requested <= parse_quantity(node["status"]["allocatable"][resource], per_unit=unit)

    def are_daemons_running_everywhere(self) -> bool:
        """Return whether each of Joiner's nodes has one running pod of every DaemonSet."""
        pods = [pod for pod in self.desk.list_objects(PODS_PATH) if is_running(pod)]
        running_counts = Counter((pod["spec"]["nodeName"], pod["metadata"]["labels"].get("app")) for pod in pods)
        return all(
            running_counts[node["metadata"]["name"], name] == 1 for node in self.list_nodes() for name in CPU_BY_DAEMON
        )

    def are_instances_nodes(self) -> bool:
        """Return whether running instances, Joiner's Nodes and NodeClaims correspond one to one."""
        living = sorted(instance.provider_id for instance in self.playground.list_active_instances())
        nodes = sorted(node["spec"]["providerID"] for node in self.list_nodes())
        return (
            living == nodes == sorted((claim.get("status") or {}).get("providerID", "") for claim in self.list_claims())
        )

    def describe_plan_differences(self) -> str:
        """Describe, for every NodeClaim, the planned pods and the running pods, where the two differ."""
        running_counts = Counter(
            (pod["spec"]["nodeName"], pod["metadata"]["labels"]["app"]) for pod in self.list_pods()
        )
        names = {
            claim["metadata"]["name"]: (claim.get("status") or {}).get("nodeName", "") for claim in self.list_claims()
        }
        lines = []
        for planned in self.reporter.node_claim_actions:
            node = names.get(planned.claim.name, "")
            plan = Counter(_get_app_name(pod) for pod in planned.pods)
            running = Counter({app: count for (where, app), count in running_counts.items() if where == node})
            if plan != running:
                lines.append(f"  {planned.claim.name}: planned {_format_counts(plan)}; runs {_format_counts(running)}")
        matching_count = len(self.reporter.node_claim_actions) - len(lines)
        return "\n".join(
            [f"{matching_count} of {len(self.reporter.node_claim_actions)} nodes run what was planned for them", *lines]
        )

    def run_kubectl(self, *words: str) -> str:
        """Return what kubectl prints, as the administrator; an empty string if it fails."""
        config = self._plane.processes.folder / "kubeconfig"
        config.touch(mode=0o600)
        config.write_text(self._plane.build_kubeconfig())
        command = [
            str(ensure_programs((KUBECTL,)) / KUBECTL),
            f"--kubeconfig={config}",
            f"--cache-dir={config.parent}/cache",
        ]
        return subprocess.run([*command, *words], check=False, capture_output=True, text=True).stdout

    def _is_settled(self, app: str, count: int) -> bool:
        pods = self.list_pods(app)
        return len(pods) == count and all(_get_condition_status(pod, "PodScheduled") for pod in pods)

    def _is_managed_node_running(self) -> bool:
        running_counts = Counter(
            pod["spec"].get("nodeName", "") for pod in self.desk.list_objects(PODS_PATH) if is_running(pod)
        )
        return any(
            running_counts[node["metadata"]["name"]] == len(CPU_BY_DAEMON)
            for node in self.desk.list_objects(NODES_PATH)
        )

    def _record_entry(self, moment: TimelineEntry) -> None:
        while len(self._registered_before) < len(self.reporter.node_claim_actions):
            self._registered_before.append(self._list_registered_claims())
        self.timeline_lines.append(f"{self.seconds:6.1f} {moment.source:30.30} {moment.message} {moment.reason[:120]}")


def parse_table(printed: str) -> list[dict[str, str]]:
    """Return the rows of a table of kubectl, by its headings."""
    if not printed:
        return []
    headings, *rows = printed.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", headings)] + [None]
    return [{headings[a:b].strip(): row[a:b].strip() for a, b in pairwise(starts)} for row in rows]


def is_ready(resource: Object) -> bool:
    return _is_condition_true(resource, "Ready")


def count_on(node: Object, pods: list[Object]) -> int:
    return sum(pod["spec"].get("nodeName") == node["metadata"]["name"] for pod in pods)


def _is_condition_true(resource: Object, condition: str) -> bool:
    return _get_condition_status(resource, condition) == "True"


def _get_condition_status(resource: Object, condition: str) -> str:
    conditions = (resource.get("status") or {}).get("conditions") or []
    return next((str(entry["status"]) for entry in conditions if entry["type"] == condition), "")


def _get_app_name(pod: str) -> str:
    """Return the Deployment of a pod, from a name such as ``default/web-5d4f8-x7x2p``."""
    return pod.partition("/")[2].rsplit("-", 2)[0]


def _format_counts(counts: Counter[str]) -> str:
    return " + ".join(f"{count} {app}" for app, count in sorted(counts.items())) or "nothing"
