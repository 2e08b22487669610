"""The installer under faults: waits, kills, concurrent changes; a missing response never counts as a "no"."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice, repeat

import msgspec
import pytest

from shared.errors import Conflict, Fault, Forbidden, NotFound, Throttled, Unreachable
from shared.installer.cloudformation_requests import RESPONSE_TIME_RESERVE
from shared.installer.installer import iterate_retry_delays
from shared.installer.manifests import build_manifest_path
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.fault_tap import PortCall, tap_port
from sim.time.virtual_clock import Clock
from tests.contract.kubernetes.test_crds import make_node_claim, make_node_class, make_node_pool
from tests.infra.installations import (
    CLAIMS,
    CLASSES,
    POOLS,
    PROFILE,
    TERMINATION_METADATA,
    Stack,
    create_object,
    is_there,
    make_failing_stack,
    parse_release_manifests,
    read_object,
)


@pytest.mark.parametrize("fault", [Forbidden, Unreachable, Throttled, Conflict])
@pytest.mark.parametrize("at", [0, 9, 13, 20])
def test_installer_retries_transient_faults(fault: type[Fault], at: int, kube: InMemoryKube, clock: Clock) -> None:
    stack = make_failing_stack(kube, clock, iter([*[None] * at, *[fault("not now")] * 4]))
    assert stack.ask("Create")[0] == "SUCCESS"
    assert timedelta(seconds=2 + 4 + 8 + 16) <= stack.waited <= timedelta(seconds=4 + 6 + 10 + 18)
    assert all(is_there(kube, build_manifest_path(manifest)) for manifest in parse_release_manifests())


def test_installer_waits_until_crd_is_served(kube: InMemoryKube, clock: Clock) -> None:
    attempts = iter(range(3))

    def refuse_listing(call: PortCall) -> None:
        if call.method == "list" and call.detail == POOLS and call.phase == "before" and next(attempts) < 2:
            raise NotFound("404 page not found")

    stack = Stack(tap_port(kube, "kube", refuse_listing), clock)
    assert stack.ask("Create")[0] == "SUCCESS"
    assert timedelta(seconds=2 + 4) <= stack.waited <= timedelta(seconds=4 + 6)


def test_retry_delays_grow_to_half_a_minute_and_differ_between_installations() -> None:
    delays = list(islice(iterate_retry_delays(), 7))
    for delay, seconds in zip(delays, (2, 4, 8, 16, 30, 30, 30), strict=True):
        assert timedelta(seconds=seconds) <= delay <= timedelta(seconds=min(seconds + 2, 30))
    assert delays[:4] != list(islice(iterate_retry_delays(), 4))


def test_retries_end_with_the_remaining_time_of_the_invocation(kube: InMemoryKube, clock: Clock) -> None:
    stack = make_failing_stack(kube, clock, repeat(Unreachable("not now")))
    stack.time_limit = timedelta(seconds=75)
    assert stack.ask("Create") == ("FAILED", "not now")
    assert stack.waited == stack.time_limit - RESPONSE_TIME_RESERVE


@pytest.mark.parametrize("part", ["installed", "emptied"])
@pytest.mark.parametrize("on_destroy", ["keep", "purge"])
def test_deletion_fails_if_a_crd_exists_but_is_not_served(
    part: str, on_destroy: str, kube: InMemoryKube, clock: Clock
) -> None:
    def refuse_listing(call: PortCall) -> None:
        if call.method == "list" and call.detail in (POOLS, CLAIMS):
            raise NotFound("404 page not found")

    Stack(kube, clock).ask("Create")
    create_object(kube, POOLS, make_node_pool("a"))
    create_object(kube, CLAIMS, make_node_claim("a"), annotations={"karpenter.k8s.aws/instance-profile-name": PROFILE})
    status, message = Stack(tap_port(kube, "kube", refuse_listing), clock).ask("Delete", part, OnDestroy=on_destroy)
    assert status == "FAILED"
    assert "is defined but not served" in message
    assert is_there(kube, f"{POOLS}/a")


def test_installer_waits_for_objects_of_an_earlier_installation_to_be_deleted(kube: InMemoryKube, clock: Clock) -> None:
    Stack(kube, clock).ask("Create")
    [role] = [manifest for manifest in parse_release_manifests() if manifest["kind"] == "ClusterRole"]
    kube.patch(build_manifest_path(role), b'{"metadata": {"finalizers": ["example.com/own"]}}')
    kube.delete(build_manifest_path(role))

    def remove_finalizers() -> None:
        kube.patch(build_manifest_path(role), b'{"metadata": {"finalizers": null}}')

    clock.call_after(timedelta(minutes=1), remove_finalizers)
    stack = Stack(kube, clock)
    assert stack.ask("Create") == ("SUCCESS", "ClusterRole joiner-functions created")
    assert timedelta(minutes=1) <= stack.waited < timedelta(minutes=2)


def test_persistent_fault_is_reported_within_three_minutes(kube: InMemoryKube, clock: Clock) -> None:
    def iterate_faults() -> Iterator[Fault]:
        while True:
            yield Forbidden("cannot get resource")

    stack = make_failing_stack(kube, clock, iterate_faults())
    assert stack.ask("Create") == ("FAILED", "cannot get resource")
    assert stack.waited == timedelta(minutes=3)
    [line] = stack.lines
    expected_fields = {
        "level": "ERROR",
        "message": "cannot get resource",
        "function": "installer",
        "installer": "installed",
        "request": "Create",
        "status": "FAILED",
    }
    assert expected_fields.items() <= msgspec.json.decode(line).items()


@pytest.mark.parametrize("killed_at", range(23))
def test_killed_installation_is_completed_by_the_next(killed_at: int, kube: InMemoryKube, clock: Clock) -> None:
    class Killed(BaseException):
        pass

    calls = iter(range(100))

    def kill_call(call: PortCall) -> None:
        if call.phase == "after" and next(calls) == killed_at:
            raise Killed

    killed = Stack(tap_port(kube, "kube", kill_call), clock)
    with pytest.raises(Killed):
        killed.ask("Create")
    assert Stack(kube, clock).ask("Create")[0] == "SUCCESS"
    assert Stack(kube, clock).ask("Update") == ("SUCCESS", "no changes")


def test_installer_terminates_if_api_server_drops_a_written_field(kube: InMemoryKube, clock: Clock) -> None:
    class Forgetful(InMemoryKube):
        def read(self, path: str) -> bytes:
            document = msgspec.json.decode(super().read(path))
            document.get("spec", {}).pop("matchingPrecedence", None)
            return msgspec.json.encode(document)

    stack = Stack(Forgetful(kube.api), clock)
    assert stack.ask("Create")[0] == "SUCCESS"
    assert stack.ask("Update") == ("SUCCESS", "FlowSchema joiner-functions updated")


def test_concurrently_added_finalizer_is_kept(kube: InMemoryKube, clock: Clock) -> None:
    added = False

    def add_finalizer(call: PortCall) -> None:
        nonlocal added
        if call.phase == "before" and call.method == "patch" and not added:
            added = True
            body = {"metadata": {"finalizers": [*TERMINATION_METADATA["finalizers"], "example.com/own"]}}
            kube.patch(f"{CLAIMS}/a", msgspec.json.encode(body))

    Stack(kube, clock).ask("Create")
    create_object(kube, CLAIMS, make_node_claim("a"), **TERMINATION_METADATA)
    assert Stack(tap_port(kube, "kube", add_finalizer), clock).ask("Delete")[0] == "SUCCESS"
    assert read_object(kube, f"{CLAIMS}/a")["metadata"]["finalizers"] == ["example.com/own"]


def test_paginated_object_list_is_read_completely(stack: Stack, kube: InMemoryKube) -> None:
    stack.ask("Create")
    for number in range(501):
        create_object(kube, CLASSES, make_node_class(f"a{number:03d}"), finalizers=["karpenter.k8s.aws/termination"])
    stack.ask("Delete")
    items = msgspec.json.decode(kube.list(CLASSES, limit=0))["items"]
    assert len(items) == 501
    assert not [item for item in items if item["metadata"].get("finalizers")]
