"""Failures of a cluster, and what the functions report and do during them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from shared.errors import Fault
from sim.fault_tap import PortCall, Tap
from sim.world.measurements import is_running
from tests.controlplane.fixtures import FUNCTIONS
from tests.kubernetes.arena import ONE_SECOND, Arena, count_on, is_ready
from tests.kubernetes.manifests import Object, make_deployment

ELSEWHERE: Final = {"nodeSelector": {"tier": "side"}, "tolerations": [{"key": "tier", "operator": "Exists"}]}


class ShakenArena(Arena):
    """An arena that continues to count while the cluster is unreachable."""

    _last_registered: frozenset[str] = frozenset()

    def wait_until_at_rest(self) -> None:
        """Wait until all operations in progress are finished: later launches and terminations have another reason."""
        self.wait_until(self._is_at_rest, "all pods run, every node is ready and has pods, and nothing else is there")

    def _is_at_rest(self) -> bool:
        pods, nodes = self.list_pods(), self.list_nodes()
        in_use = all(map(is_running, pods)) and all(count_on(node, pods) for node in nodes)
        is_consistent = self.are_instances_nodes() and self.are_daemons_running_everywhere()
        return in_use and is_consistent and all(map(is_ready, self.list_claims()))

    def _list_registered_claims(self) -> frozenset[str]:
        with suppress(Fault):
            self._last_registered = super()._list_registered_claims()
        return self._last_registered


def make_lone_deployment(app: str, **fields: object) -> Object:
    """Return a Deployment of one pod that shares its node with no other pod, however large the node is."""
    anti_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [ANTI_AFFINITY_TERM]}
    return make_deployment(app, 1, "15", "1Gi", affinity={"podAntiAffinity": anti_affinity}, **fields)


ANTI_AFFINITY_TERM: Final = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}


class Watch:
    """Reports and actions of the functions from now on, and the state before."""

    def __init__(self, arena: Arena) -> None:
        """Remember the current state."""
        self._arena = arena
        self._from = len(arena.playground.log_lines)
        self._ended, self.launched_before = arena.reporter.terminated_count, arena.reporter.launched_count
        self._claims = {claim["metadata"]["name"] for claim in arena.list_claims()}
        self._living = {instance.instance_id for instance in arena.playground.list_active_instances()}

    def list_cycle_lines(self) -> list[dict[str, Any]]:
        """Return the log lines of cycles, oldest first."""
        entries = [json.loads(line) for line in self._arena.playground.log_lines[self._from :]]
        return [
            entry for entry in entries if entry.get("service") == "joiner" and "cycle" in entry and "seconds" in entry
        ]

    def list_messages(self, *words: str) -> list[str]:
        """Return the messages that contain all of *words*: errors, failures and problems."""
        messages = [
            text
            for entry in self.list_cycle_lines()
            for text in (entry.get("error", ""), *entry.get("failed", ()), *entry.get("problems", ()))
        ]
        return [text for text in messages if all(word in text for word in words)]

    @property
    def launched(self) -> int:
        return self._arena.reporter.launched_count - self.launched_before

    def assert_nothing_ended(self) -> None:
        """Assert that no instance has ended, no claim is gone, and no node is being drained."""
        assert self._arena.reporter.terminated_count == self._ended, "\n".join(self._arena.timeline_lines[-40:])
        assert self._living <= {instance.instance_id for instance in self._arena.playground.list_active_instances()}
        assert self._claims <= {claim["metadata"]["name"] for claim in self._arena.list_claims()}
        assert not [node["metadata"]["name"] for node in self._arena.list_nodes() if _is_tainted(node)]


def _is_tainted(node: Object) -> bool:
    return any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", ()))


class Trap:
    """Calls *strike* when the functions make a call, once for each of *sites*, in order: ``port.method detail``."""

    def __init__(self, sites: list[tuple[str, str, str]], strike: Callable[[], None]) -> None:
        """Wait for the first site: phase, ``port.method``, and the beginning of the detail."""
        self.sites, self._strike = sites, strike

    def has_left(self, count: int) -> bool:
        return len(self.sites) <= count

    def __call__(self, call: PortCall) -> None:
        """Compare *call* with the next site."""
        if self.sites:
            when, method, detail = self.sites[0]
            if (call.phase, f"{call.port}.{call.method}") == (when, method) and call.detail.startswith(detail):
                self.sites.pop(0)
                self._strike()


@contextmanager
def install_tap(arena: Arena, tap: Tap) -> Iterator[None]:
    """Let *tap* see the functions' calls, for a block."""
    before, arena.playground.tap = arena.playground.tap, tap
    try:
        yield
    finally:
        arena.playground.tap = before


def is_refused(call: Callable[[], object], words: str) -> bool:
    """Make *call*; return whether the API server refuses it with *words* in the message."""
    try:
        call()
    except Fault as fault:
        return words in str(fault)
    return False


def read_object(arena: Arena, path: str) -> Object:
    document: Object = msgspec.json.decode(arena.desk.kube.read(path))
    return document


def make_webhook_without_service(name: str) -> Object:
    """Return a webhook for new NodeClaims whose service does not exist, and whose failure policy is Fail."""
    rule = {
        "apiGroups": ["karpenter.sh"],
        "apiVersions": ["v1"],
        "resources": ["nodeclaims"],
        "operations": ["CREATE"],
    }
    webhook = {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def make_admission_policy(name: str, expression: str) -> list[Object]:
    """Return a policy and its binding: the functions may change only NodeClaims for which *expression* holds."""
    rule = {
        "apiGroups": ["karpenter.sh"],
        "apiVersions": ["v1"],
        "resources": ["nodeclaims", "nodeclaims/status"],
        "operations": ["UPDATE"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "functions", "expression": f"request.userInfo.username == '{FUNCTIONS.name}'"}],
        "validations": [{"expression": expression, "message": "not today"}],
    }
    api = "admissionregistration.k8s.io/v1"
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def make_full_priority_level(name: str) -> list[Object]:
    """Return a priority level with room for one request at most, and a flow schema that leads the functions there.

    Even with no share at all, it accepts a request while it executes no other: another request has to be in progress.
    """
    api = "flowcontrol.apiserver.k8s.io/v1"
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    spec = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": FUNCTIONS.name}}], "resourceRules": [rule]}],
    }
    level = {"type": "Limited", "limited": limited}
    return [
        {"apiVersion": api, "kind": "PriorityLevelConfiguration", "metadata": {"name": name}, "spec": level},
        {"apiVersion": api, "kind": "FlowSchema", "metadata": {"name": name}, "spec": spec},
    ]


CLUSTER_COLLECTION_PATHS: Final = {
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
}


@contextmanager
def apply_manifests(arena: Arena, *manifests: Object, takes_effect: Callable[[], bool]) -> Iterator[None]:
    """Keep *manifests* in the cluster for a block, and begin the block when *takes_effect* returns true."""
    kube = arena.desk.kube
    for manifest in manifests:
        kube.create(CLUSTER_COLLECTION_PATHS[manifest["kind"]], msgspec.json.encode(manifest))
    try:
        arena.wait_until(takes_effect, "the API server heeds it", ONE_SECOND / 4)
        yield
    finally:
        for manifest in reversed(manifests):
            kube.delete(f"{CLUSTER_COLLECTION_PATHS[manifest['kind']]}/{manifest['metadata']['name']}")
        arena.advance(1 * ONE_SECOND)
