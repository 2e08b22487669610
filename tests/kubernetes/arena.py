"""One playground on a control plane of its own, and what a test wants to know of it.

The cloud is embedded, its machines join and end ten times as fast as real ones, and the schedules ring every five
seconds; all else is as it would be: the deployed handlers with the rights that a deployment gives them, kube-scheduler,
kube-controller-manager, and kwok in the kubelets' place.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

import pytest

from shared.errors import Fault
from shared.model.labels import ZONE
from shared.model.units import parse_quantity
from sim.measure import is_over, is_running
from sim.play import Moment
from sim.playground import Playground
from sim.playground_desk import NODE_CLAIMS, NODES, PODS, Desk
from sim.playground_told import Commentary
from sim.realtime import RealTimeClock
from sim.scenario import Managed
from tests.controlplane.binaries import KUBECTL, programs
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.manifests import Object, daemon_set, node_class

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
LONGEST: Final = 15 * MINUTE
"""Of real time, for whatever has to come about: no machine is as slow."""
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
DAEMONS: Final = {"aws-node": "50m", "kube-proxy": "100m"}
"""What runs on every node, and the CPU that it asks for."""


class Arena:
    """One playground, and what a test wants to know of it."""

    def __init__(self, plane: ControlPlane) -> None:
        """Deploy into the cluster of *plane*; time passes only while somebody waits for something."""
        clock, self._plane = RealTimeClock(lambda: datetime.now(UTC)), plane
        self.playground = Playground(
            clock,
            functions=plane.client(plane.token_of(FUNCTIONS)),
            people=plane.client(),
            endpoint=plane.endpoint,
            certificate_authority=plane.certificate_authority,
            seed=7,
            node_deletion=3 * SECOND,
            haste=10,
        )
        self.desk: Desk = self.playground.desk
        self.said: list[str] = []
        self._registered_before: list[frozenset[str]] = []
        self.told = Commentary(self.playground, self._hear)
        self._began = clock.now()
        self.desk.define()
        self.until(self.desk.is_defined, "our definitions are served")
        self.desk.grant()
        self.playground.start_managed_node(Managed(labels={"eks.amazonaws.com/nodegroup": "system"}))
        self.desk.apply_all(daemon_set(*one) for one in DAEMONS.items())
        self.desk.apply(node_class())
        self.until(self._managed_runs, "the managed node runs its daemons")
        self.playground.ring_every(5 * SECOND)

    def _registered(self) -> frozenset[str]:
        return frozenset(one["metadata"]["name"] for one in self.claims() if _holds(one, "Registered"))

    @property
    def seconds(self) -> float:
        return (self.playground.clock.now() - self._began).total_seconds()

    def until(self, holds: Callable[[], bool], what: str, every: timedelta = SECOND) -> float:
        """Let time pass until *holds*; answer how many seconds that took. What cannot be asked does not hold yet."""
        began, last = self.playground.clock.now(), [self.playground.clock.now() - every]

        def looked() -> bool:
            if self.playground.clock.now() - last[0] < every:
                return False
            last[0] = self.playground.clock.now()
            with suppress(Fault):
                return holds()
            return False

        if not self.playground.drive.run(looked, LONGEST):
            pytest.fail(f"not within {LONGEST}: {what}\n" + "\n".join(self.said[-60:]))
        return (self.playground.clock.now() - began).total_seconds()

    def settle(self, app: str, count: int) -> None:
        """Wait, with Joiner at rest, until *app* has *count* pods that kube-scheduler has placed or tried in vain.

        A ReplicaSet makes its pods in ever larger batches, and a cycle that rings between two of them plans for the
        first alone: what it launches then depends on who was faster.
        """
        what = f"kube-scheduler to have tried {count} pods of {app}"
        self._plane.wait_for(lambda: self._is_settled(app, count), what, LONGEST.total_seconds())

    def passes(self, duration: timedelta) -> None:
        self.playground.drive.run(limit=duration)

    def pods(self, app: str = "") -> list[Object]:
        """Answer the pods of our Deployments that are not on their way out."""
        found = [pod for pod in self.desk.look(PODS) if pod["metadata"]["namespace"] == "default" and not is_over(pod)]
        return [pod for pod in found if app in ("", pod["metadata"]["labels"]["app"])]

    def running(self, count: int, app: str = "") -> Callable[[], bool]:
        def all_run() -> bool:
            pods = self.pods(app)
            return len(pods) == count and all(is_running(pod) for pod in pods)

        return all_run

    def nodes(self, pool: str = "") -> list[Object]:
        """Answer the Nodes of our pools."""
        labelled = [(node["metadata"]["labels"].get("karpenter.sh/nodepool"), node) for node in self.desk.look(NODES)]
        return [node for its, node in labelled if its is not None and pool in ("", its)]

    def claims(self) -> list[Object]:
        return self.desk.look(NODE_CLAIMS)

    def forget_plans(self) -> None:
        """Begin anew with what was planned for whom."""
        self.told.planned.clear()
        self._registered_before.clear()

    def planned_twice(self) -> dict[str, int]:
        """Answer the pods that more than one NodeClaim was made for, and how many."""
        counts = Counter(pod for claim in self.told.planned for pod in claim.pods)
        return {pod: count for pod, count in sorted(counts.items()) if count > 1}

    def second_launches(self) -> list[str]:
        """Answer the NodeClaims all of whose pods had been planned for before, in the order of their creation."""
        seen: set[str] = set()
        again = []
        for claim in self.told.planned:
            if seen.issuperset(claim.pods):
                again.append(claim.claim.name)
            seen.update(claim.pods)
        return again

    def planned_while_covered(self) -> list[str]:
        """Answer the pods that a second NodeClaim was made for while the node of the first was still on its way."""
        found, first = [], dict[str, str]()
        for number, claim in enumerate(self.told.planned):
            for pod in claim.pods:
                before = first.setdefault(pod, claim.claim.name)
                if before != claim.claim.name and before not in self._registered_before[number]:
                    found.append(pod)
        return sorted(found)

    def planned_zones(self, app: str) -> Counter[str]:
        """Answer how many pods of *app* were planned into each zone, each by the first node made for it.

        Where they run is up to kube-scheduler, which counts no zone before it has a node.
        """
        first: dict[str, str] = {}
        for planned in self.told.planned:
            for pod in planned.pods:
                if _app_of(pod) == app:
                    first.setdefault(pod, ",".join(sorted(planned.claim.requirements[ZONE].values)))
        return Counter(first.values())

    def nodes_are_not_overfull(self) -> None:
        """Fail if the requests on a node of ours are more than it has: neither plan nor scheduler may do that."""
        pods = self.desk.look(PODS)
        for node in self.nodes():
            here = [pod for pod in pods if pod["spec"].get("nodeName") == node["metadata"]["name"] and not is_over(pod)]
            for resource, unit in (("cpu", 1000), ("memory", 1)):
                asked = sum(
                    parse_quantity(one["resources"].get("requests", {}).get(resource, "0"), per_unit=unit)
                    for pod in here
                    for one in pod["spec"]["containers"]
                )
                assert asked <= parse_quantity(node["status"]["allocatable"][resource], per_unit=unit)

    def daemons_run_everywhere(self) -> bool:
        """Whether each of our nodes has one running pod of every DaemonSet."""
        pods = [pod for pod in self.desk.look(PODS) if is_running(pod)]
        here = Counter((pod["spec"]["nodeName"], pod["metadata"]["labels"].get("app")) for pod in pods)
        return all(here[node["metadata"]["name"], name] == 1 for node in self.nodes() for name in DAEMONS)

    def instances_are_nodes(self) -> bool:
        """Whether every instance that lives is a Node of ours, and has a NodeClaim; and the other way round."""
        living = sorted(one.provider_id for one in self.playground.living())
        nodes = sorted(node["spec"]["providerID"] for node in self.nodes())
        return living == nodes == sorted((one.get("status") or {}).get("providerID", "") for one in self.claims())

    def realised(self) -> str:
        """Say of every NodeClaim what was planned for its node and what runs there, where the two differ."""
        on = Counter((pod["spec"]["nodeName"], pod["metadata"]["labels"]["app"]) for pod in self.pods())
        names = {claim["metadata"]["name"]: (claim.get("status") or {}).get("nodeName", "") for claim in self.claims()}
        lines = []
        for planned in self.told.planned:
            node = names.get(planned.claim.name, "")
            plan = Counter(_app_of(pod) for pod in planned.pods)
            here = Counter({app: count for (where, app), count in on.items() if where == node})
            if plan != here:
                lines.append(f"  {planned.claim.name}: planned {_mix(plan)}; runs {_mix(here)}")
        same = len(self.told.planned) - len(lines)
        return "\n".join([f"{same} of {len(self.told.planned)} nodes run what was planned for them", *lines])

    def kubectl(self, *words: str) -> str:
        """Answer what kubectl prints, as the administrator; nothing if it fails."""
        config = self._plane.processes.folder / "kubeconfig"
        config.touch(mode=0o600)
        config.write_text(self._plane.kubeconfig())
        command = [str(programs((KUBECTL,)) / KUBECTL), f"--kubeconfig={config}", f"--cache-dir={config.parent}/cache"]
        return subprocess.run([*command, *words], check=False, capture_output=True, text=True).stdout

    def _is_settled(self, app: str, count: int) -> bool:
        pods = self.pods(app)
        return len(pods) == count and all(_status_of(pod, "PodScheduled") for pod in pods)

    def _managed_runs(self) -> bool:
        on = Counter(pod["spec"].get("nodeName", "") for pod in self.desk.look(PODS) if is_running(pod))
        return any(on[node["metadata"]["name"]] == len(DAEMONS) for node in self.desk.look(NODES))

    def _hear(self, moment: Moment) -> None:
        while len(self._registered_before) < len(self.told.planned):
            self._registered_before.append(self._registered())
        self.said.append(f"{self.seconds:6.1f} {moment.who:30.30} {moment.what} {moment.why[:120]}")


def table(printed: str) -> list[dict[str, str]]:
    """Answer the rows of a table of kubectl, by its headings."""
    if not printed:
        return []
    headings, *rows = printed.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", headings)] + [None]
    return [{headings[a:b].strip(): row[a:b].strip() for a, b in pairwise(starts)} for row in rows]


def is_ready(made: Object) -> bool:
    return _holds(made, "Ready")


def count_on(node: Object, pods: list[Object]) -> int:
    return sum(pod["spec"].get("nodeName") == node["metadata"]["name"] for pod in pods)


def _holds(made: Object, condition: str) -> bool:
    return _status_of(made, condition) == "True"


def _status_of(made: Object, condition: str) -> str:
    conditions = (made.get("status") or {}).get("conditions") or []
    return next((str(one["status"]) for one in conditions if one["type"] == condition), "")


def _app_of(pod: str) -> str:
    """Answer the Deployment of a pod, from a name as ``default/web-5d4f8-x7x2p``."""
    return pod.partition("/")[2].rsplit("-", 2)[0]


def _mix(counts: Counter[str]) -> str:
    return " + ".join(f"{count} {app}" for app, count in sorted(counts.items())) or "nothing"
