"""What happens to a cluster on a bad day, and what the functions say and do meanwhile."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from shared.errors import Fault
from sim.faults import Call, Tap
from sim.measure import is_running
from tests.controlplane.fixtures import FUNCTIONS
from tests.kubernetes.arena import SECOND, Arena, count_on, is_ready
from tests.kubernetes.manifests import Object, deployment

ELSEWHERE: Final = {"nodeSelector": {"tier": "side"}, "tolerations": [{"key": "tier", "operator": "Exists"}]}


class ShakenArena(Arena):
    """One that goes on counting while nobody can see the cluster."""

    _known: frozenset[str] = frozenset()

    def comes_to_rest(self) -> None:
        """Let whatever was begun come to its end: what is launched or ended from now on has another reason."""
        self.until(self._rests, "all pods run, every node is ready and has pods, and nothing else is there")

    def _rests(self) -> bool:
        pods, nodes = self.pods(), self.nodes()
        in_use = all(map(is_running, pods)) and all(count_on(node, pods) for node in nodes)
        whole = self.instances_are_nodes() and self.daemons_run_everywhere()
        return in_use and whole and all(map(is_ready, self.claims()))

    def _registered(self) -> frozenset[str]:
        with suppress(Fault):
            self._known = super()._registered()
        return self._known


def alone(app: str, **more: object) -> Object:
    """Answer a Deployment of one pod that shares its node with no other, however large: it needs one of its own."""
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [NEXT_TO_NOBODY]}
    return deployment(app, 1, "15", "1Gi", affinity={"podAntiAffinity": apart}, **more)


NEXT_TO_NOBODY: Final = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}


class Watch:
    """What the functions say and do from now on, and what there was before."""

    def __init__(self, arena: Arena) -> None:
        """Remember what is there."""
        self._arena = arena
        self._from = len(arena.playground.lines)
        self._ended, self.launched_before = arena.told.ended, arena.told.launched
        self._claims = {one["metadata"]["name"] for one in arena.claims()}
        self._living = {one.instance_id for one in arena.playground.living()}

    def lines(self) -> list[dict[str, Any]]:
        """Answer the log's lines about cycles, oldest first."""
        some = [json.loads(one) for one in self._arena.playground.lines[self._from :]]
        return [one for one in some if one.get("service") == "joiner" and "function" in one and "at" in one]

    def told(self, *words: str) -> list[str]:
        """Answer what was said with all of *words* in it: errors, failures and problems."""
        said = [
            text
            for one in self.lines()
            for text in (one.get("error", ""), *one.get("failed", ()), *one.get("problems", ()))
        ]
        return [text for text in said if all(word in text for word in words)]

    @property
    def launched(self) -> int:
        return self._arena.told.launched - self.launched_before

    def nothing_has_ended(self) -> None:
        """Fail if an instance ends, a claim is gone, or a node is being emptied."""
        assert self._arena.told.ended == self._ended, "\n".join(self._arena.said[-40:])
        assert self._living <= {one.instance_id for one in self._arena.playground.living()}
        assert self._claims <= {one["metadata"]["name"] for one in self._arena.claims()}
        assert not [one["metadata"]["name"] for one in self._arena.nodes() if _is_tainted(one)]


def _is_tainted(node: Object) -> bool:
    return any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", ()))


class Trap:
    """Strikes when the functions make a call, once for each of *sites*, in their order: ``port.method detail``."""

    def __init__(self, sites: list[tuple[str, str, str]], strike: Callable[[], None]) -> None:
        """Wait for the first: when, ``port.method``, the beginning of the detail."""
        self.sites, self._strike = sites, strike

    def has_left(self, count: int) -> bool:
        return len(self.sites) <= count

    def __call__(self, call: Call) -> None:
        """Look at *call*."""
        if self.sites:
            when, what, detail = self.sites[0]
            if (call.when, f"{call.port}.{call.method}") == (when, what) and call.detail.startswith(detail):
                self.sites.pop(0)
                self._strike()


@contextmanager
def tapped(arena: Arena, tap: Tap) -> Iterator[None]:
    """Let *tap* see the functions' calls, for a block."""
    before, arena.playground.tap = arena.playground.tap, tap
    try:
        yield
    finally:
        arena.playground.tap = before


def is_refused(call: Callable[[], object], words: str) -> bool:
    """Make *call*; answer whether the API server refuses it, with *words*."""
    try:
        call()
    except Fault as fault:
        return words in str(fault)
    return False


def object_of(arena: Arena, path: str) -> Object:
    found: Object = msgspec.json.decode(arena.desk.kube.read(path))
    return found


def without_service(name: str) -> Object:
    """Answer a webhook for new NodeClaims whose service nobody runs, and which must be asked."""
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


def policy(name: str, expression: str) -> list[Object]:
    """Answer a policy, and its binding, that lets the functions change only NodeClaims for which *expression* holds."""
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


def full_house(name: str) -> list[Object]:
    """Answer a priority level that has room for one request at most, and a flow schema that leads the functions there.

    With no share at all it still takes a request that finds nobody there: somebody has to be.
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


CLUSTER_WIDE: Final = {
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
}


@contextmanager
def standing(arena: Arena, *manifests: Object, takes_effect: Callable[[], bool]) -> Iterator[None]:
    """Let *manifests* be there for a block, and begin it when that *takes_effect*."""
    kube = arena.desk.kube
    for one in manifests:
        kube.create(CLUSTER_WIDE[one["kind"]], msgspec.json.encode(one))
    try:
        arena.until(takes_effect, "the API server heeds it", SECOND / 4)
        yield
    finally:
        for one in reversed(manifests):
            kube.delete(f"{CLUSTER_WIDE[one['kind']]}/{one['metadata']['name']}")
        arena.passes(1 * SECOND)
