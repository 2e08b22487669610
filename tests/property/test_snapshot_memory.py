"""A catch-up shows what a list shows, byte for byte, whatever happened meanwhile."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Conflict, Expired, Fault, Forbidden, Gone, Throttled, Unreachable
from shared.ports import Changes, Kube, World
from shared.snapshot import memory
from shared.snapshot.take import Wanted, take
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from tests.unit.snapshot_world import world

LISTS = Wanted(lists=("nodes", "node_claims", "pods", "budgets"))
BUDGETS, CLAIMS = "poddisruptionbudgets.policy", "nodeclaims.karpenter.sh"
PHASES = {"x": "Failed", "1": "Running"}


def a_pod(name: str, cpu: str = "1") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


def a_claim(name: str) -> dict[str, Any]:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    wanted = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]
    return {"metadata": {"name": name}, "spec": {"nodeClassRef": ref, "requirements": wanted}}


def a_node(name: str, word: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"providerID": f"aws:///{word}"}}


def a_budget(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"maxUnavailable": 1}}


def a_status(word: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": word or "Unknown"}]
    return {"status": {"conditions": conditions, "capacity": {"cpu": word or "4"}}}


def a_taint(word: str) -> dict[str, Any]:
    return {"spec": {"taints": [{"key": "t", "value": word, "effect": "NoSchedule"}]}}


def a_label(word: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"l": word or None}}}


def a_phase(word: str) -> dict[str, Any]:
    return {"status": {"phase": PHASES.get(word, "Pending")}}


VERBS: dict[str, Callable[[ApiServer, str, str], object]] = {
    "pod": lambda api, name, word: api.create("pods", a_pod(name, word or "1"), "default"),
    "label": lambda api, name, word: api.patch("pods", name, a_label(word), "default"),
    "bind": lambda api, name, word: api.bind("default", name, f"node-{word}"),
    "phase": lambda api, name, word: api.patch("pods", name, a_phase(word), "default", "status"),
    "evict": lambda api, name, _: api.evict("default", name),
    "delete": lambda api, name, _: api.delete("pods", name, "default"),
    "end": lambda api, name, _: api.delete("pods", name, "default", grace_period_seconds=0),
    "node": lambda api, name, word: api.create("nodes", a_node(name, word)),
    "taint": lambda api, name, word: api.patch("nodes", name, a_taint(word)),
    "heartbeat": lambda api, name, word: api.patch("nodes", name, a_status(word), subresource="status"),
    "remove": lambda api, name, _: api.delete("nodes", name),
    "claim": lambda api, name, _: api.create(CLAIMS, a_claim(name)),
    "launch": lambda api, name, word: api.patch(CLAIMS, name, {"status": {"providerID": word}}, subresource="status"),
    "finish": lambda api, name, _: api.delete(CLAIMS, name),
    "budget": lambda api, name, _: api.create(BUDGETS, a_budget(name), "default"),
    "loosen": lambda api, name, word: api.patch(BUDGETS, name, {"spec": {"maxUnavailable": word}}, "default"),
    "lift": lambda api, name, _: api.delete(BUDGETS, name, "default"),
}

NAMES = st.sampled_from("abcd")
WORDS = st.sampled_from(["", "x", "1", "lots"])
WRITES = st.tuples(st.sampled_from(sorted(VERBS)), NAMES, WORDS)
FAULTS = st.sampled_from([Expired("410"), Unreachable("cut"), Forbidden("403"), Gone("404"), Conflict("odd")])
WATCHED = st.sampled_from(["nodes", "nodeclaims", "pods", "poddisruptionbudgets"])
WHEN = st.sampled_from(["begun", "asked"])
LOOKS = st.one_of(
    st.just(("look",)),
    st.just(("forget",)),
    st.just(("wait",)),
    st.tuples(st.just("fail"), WATCHED, WHEN, FAULTS),
)
SOME = st.lists(WRITES, min_size=3, max_size=8).map(lambda writes: ("write", *writes))
HISTORIES = st.lists(st.tuples(SOME, LOOKS), min_size=1, max_size=6).map(lambda pairs: [*chain(*pairs)])


class Troubled:
    """A `Kube` whose watches fail where they are told to, once."""

    def __init__(self, api: ApiServer) -> None:
        """Have no trouble with *api* yet."""
        self._kube = InMemoryKube(api)
        self.faults: dict[tuple[str, str], Fault] = {}
        self.lists = 0
        self.watches = 0

    def list(self, path: str, **options: Any) -> bytes:
        self.lists += 1
        return self._kube.list(path, **options)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        self.watches += 1
        self._trouble(path, "begun")
        changes = self._kube.watch(path, since=since, field_selector=field_selector)

        def ask() -> Changes:
            self._trouble(path, "asked")
            return changes()

        return ask

    def _trouble(self, path: str, when: str) -> None:
        fault = self.faults.pop((path.rpartition("/")[2], when), None)
        if fault is not None:
            raise fault


def write(api: ApiServer, verb: str, name: str, word: str) -> None:
    """Do one write; what the server refuses is no matter here."""
    with suppress(Fault):
        VERBS[verb](api, name, word)


class Scene:
    """Two worlds with one cluster: one remembers, the other does not."""

    def __init__(self) -> None:
        """Begin with three of each kind."""
        self.clock = Clock()
        self.api = ApiServer(self.clock, definitions=None)
        self.kube = Troubled(self.api)
        self.memory: dict[str, object] = {}
        for name in "abc":
            for verb in ("pod", "node", "claim", "budget"):
                write(self.api, verb, name, "1")
        self.fresh = world(clock=self._now)
        self.fresh = msgspec.structs.replace(self.fresh, kube=cast("Kube", InMemoryKube(self.api)))
        self.warm: World = msgspec.structs.replace(self.fresh, kube=cast("Kube", self.kube), memory=self.memory)

    def _now(self) -> datetime:
        return self.clock.now()

    def looks_agree(self) -> None:
        remembered, listed = take(self.warm, LISTS), take(self.fresh, LISTS)
        assert msgspec.json.encode(remembered) == msgspec.json.encode(listed)
        assert remembered == listed


def play(scene: Scene, history: list[tuple[Any, ...]]) -> None:
    for step in history:
        match step:
            case ("look",):
                scene.looks_agree()
            case ("forget",):
                scene.api.expire_history()
            case ("wait",):
                scene.clock.advance(timedelta(minutes=17))
            case ("fail", str(path), str(when), Fault() as fault):
                scene.kube.faults[path, when] = fault
            case ("write", *writes):
                for one in writes:
                    write(scene.api, *one)
            case _:
                pytest.fail(f"no such step: {step}")


@given(HISTORIES)
def test_a_catch_up_shows_what_a_list_shows(history: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "SMALL", 0)
        scene = Scene()
        play(scene, [("look",), *history, ("look",), ("look",)])


@given(HISTORIES)
def test_whoever_is_not_troubled_lists_once(history: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "SMALL", 0)
        scene = Scene()
        calm = [step for step in history if step[:1] not in (("forget",), ("wait",), ("fail",))]
        play(scene, [("look",), *calm, ("look",)])
        assert scene.kube.lists == len(LISTS.lists)


@given(st.lists(WRITES, max_size=8), WATCHED, WHEN)
def test_what_comes_too_often_is_not_listed_instead(writes: list[tuple[str, str, str]], path: str, when: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "SMALL", 0)
        scene = Scene()
        scene.looks_agree()
        play(scene, [("write", *writes)])
        lists = scene.kube.lists
        scene.kube.faults[path, when] = Throttled("429")
        with pytest.raises(Throttled):
            take(scene.warm, LISTS)
        assert scene.kube.lists == lists
        scene.looks_agree()
        assert scene.kube.lists == lists
