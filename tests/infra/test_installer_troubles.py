"""The installer among faults: it waits, is killed, somebody writes in between; silence is never taken for an answer."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest

from functions.installer.manifests import path_of
from shared.errors import Conflict, Fault, Forbidden, Gone, Throttled, Unreachable
from sim.clock import Clock
from sim.cluster.kube import InMemoryKube
from sim.faults import Call, tapped
from tests.contract.test_kube_crds import claim, node_class, pool
from tests.infra.installations import (
    CLAIMS,
    CLASSES,
    HELD,
    POOLS,
    PROFILE,
    Stack,
    failing,
    is_there,
    make,
    read,
    wanted,
)


@pytest.mark.parametrize("fault", [Forbidden, Unreachable, Throttled, Conflict])
@pytest.mark.parametrize("at", [0, 9, 13, 20])
def test_what_passes_is_waited_for(fault: type[Fault], at: int, kube: InMemoryKube, clock: Clock) -> None:
    stack = failing(kube, clock, iter([*[None] * at, *[fault("not now")] * 4]))
    assert stack.ask("Create")[0] == "SUCCESS"
    assert stack.waited == timedelta(seconds=20)
    assert all(is_there(kube, path_of(one)) for one in wanted())


def test_a_definition_is_waited_for_until_it_is_served(kube: InMemoryKube, clock: Clock) -> None:
    asked = iter(range(3))

    def tap(call: Call) -> None:
        if call.method == "list" and call.detail == POOLS and call.when == "before" and next(asked) < 2:
            raise Gone("404 page not found")

    stack = Stack(tapped(kube, "kube", tap), clock)
    assert stack.ask("Create")[0] == "SUCCESS"
    assert stack.waited == timedelta(seconds=10)


@pytest.mark.parametrize("part", ["installed", "emptied"])
@pytest.mark.parametrize("on_destroy", ["keep", "purge"])
def test_what_is_defined_and_not_served_is_not_taken_for_empty(
    part: str, on_destroy: str, kube: InMemoryKube, clock: Clock
) -> None:
    def tap(call: Call) -> None:
        if call.method == "list" and call.detail in (POOLS, CLAIMS):
            raise Gone("404 page not found")

    Stack(kube, clock).ask("Create")
    make(kube, POOLS, pool("a"))
    make(kube, CLAIMS, claim("a"), annotations={"karpenter.k8s.aws/instance-profile-name": PROFILE})
    status, told = Stack(tapped(kube, "kube", tap), clock).ask("Delete", part, OnDestroy=on_destroy)
    assert status == "FAILED"
    assert "is defined, and not served" in told
    assert is_there(kube, f"{POOLS}/a")


def test_what_an_earlier_installation_leaves_is_waited_for(kube: InMemoryKube, clock: Clock) -> None:
    Stack(kube, clock).ask("Create")
    [role] = [one for one in wanted() if one["kind"] == "ClusterRole"]
    kube.patch(path_of(role), b'{"metadata": {"finalizers": ["example.com/own"]}}')
    kube.delete(path_of(role))

    def let_go() -> None:
        kube.patch(path_of(role), b'{"metadata": {"finalizers": null}}')

    clock.call_after(timedelta(minutes=1), let_go)
    stack = Stack(kube, clock)
    assert stack.ask("Create") == ("SUCCESS", "ClusterRole joiner-functions made")
    assert timedelta(minutes=1) <= stack.waited < timedelta(minutes=2)


def test_what_does_not_pass_is_told_in_time(kube: InMemoryKube, clock: Clock) -> None:
    def forever() -> Iterator[Fault]:
        while True:
            yield Forbidden("cannot get resource")

    stack = failing(kube, clock, forever())
    assert stack.ask("Create") == ("FAILED", "cannot get resource")
    assert timedelta(minutes=2) < stack.waited <= timedelta(minutes=3)
    [line] = stack.lines
    assert msgspec.json.decode(line) == {
        "installer": "installed",
        "request": "Create",
        "status": "FAILED",
        "told": "cannot get resource",
    }


@pytest.mark.parametrize("killed_at", range(23))
def test_an_installation_that_was_killed_is_finished_by_the_next(
    killed_at: int, kube: InMemoryKube, clock: Clock
) -> None:
    class Killed(BaseException):
        pass

    calls = iter(range(100))

    def tap(call: Call) -> None:
        if call.when == "after" and next(calls) == killed_at:
            raise Killed

    killed = Stack(tapped(kube, "kube", tap), clock)
    with pytest.raises(Killed):
        killed.ask("Create")
    assert Stack(kube, clock).ask("Create")[0] == "SUCCESS"
    assert Stack(kube, clock).ask("Update") == ("SUCCESS", "nothing to do")


def test_a_server_that_does_not_keep_what_is_written_is_not_asked_for_ever(kube: InMemoryKube, clock: Clock) -> None:
    class Forgetful(InMemoryKube):
        def read(self, path: str) -> bytes:
            found = msgspec.json.decode(super().read(path))
            found.get("spec", {}).pop("matchingPrecedence", None)
            return msgspec.json.encode(found)

    stack = Stack(Forgetful(kube.api), clock)
    assert stack.ask("Create")[0] == "SUCCESS"
    assert stack.ask("Update") == ("SUCCESS", "FlowSchema joiner-functions brought up to date")


def test_a_finalizer_that_somebody_adds_meanwhile_is_kept(kube: InMemoryKube, clock: Clock) -> None:
    added = False

    def tap(call: Call) -> None:
        nonlocal added
        if call.when == "before" and call.method == "patch" and not added:
            added = True
            body = {"metadata": {"finalizers": [*HELD["finalizers"], "example.com/own"]}}
            kube.patch(f"{CLAIMS}/a", msgspec.json.encode(body))

    Stack(kube, clock).ask("Create")
    make(kube, CLAIMS, claim("a"), **HELD)
    assert Stack(tapped(kube, "kube", tap), clock).ask("Delete")[0] == "SUCCESS"
    assert read(kube, f"{CLAIMS}/a")["metadata"]["finalizers"] == ["example.com/own"]


def test_a_collection_of_many_pages_is_read_whole(stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    for number in range(501):
        make(kube, CLASSES, node_class(f"a{number:03d}"), finalizers=["karpenter.k8s.aws/termination"])
    stack.ask("Delete")
    items = msgspec.json.decode(kube.list(CLASSES, limit=0))["items"]
    assert len(items) == 501
    assert not [one for one in items if one["metadata"].get("finalizers")]
