"""`cdk destroy` during other operations: no instance and no object is left behind, at any moment."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any, Final

import msgspec
import pytest
import yaml

from functions.provision import handler as provision
from shared.errors import Fault, Forbidden, Throttled, Unreachable
from shared.installer.manifests import MANAGED_BY_LABEL, build_manifest_path, get_manifest_name
from shared.model.core.labels import LAUNCHES_PAUSED
from shared.model.karpenter.pause import CLUSTER_NAMESPACE
from shared.ports.world import World as Outside
from shared.wire.paths import CRD_KIND
from sim.cloud.in_process_aws import CloudEc2
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.fault_tap import PortCall, Tap, tap_port, tap_world
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.infra.guarded import MANIFESTS
from tests.infra.installations import CLAIMS, Stack, is_there, parse_release_manifests
from tests.property.lifecycle.test_actions_laws import Process

INSTANCE_TYPES: Final = ("c5.large", "m5.large")
"""The only instance types that EC2 has here."""
RESUME_AFTER: Final = timedelta(seconds=50)
"""A function that stopped at a call continues before its timeout."""
MIN_STEPS: Final = 30
"""Minimum number of steps of a cycle."""
FOREIGN_FINALIZER: Final = "example.com/held"


class Account(EmbeddedWorld):
    """A deployed stack at work, of which everything is deleted sooner or later."""

    def __init__(self, *, waiting: bool = True) -> None:
        """Install the stack; with *waiting*, pods are pending from now on."""
        super().__init__(template=synthesize_template(settings=ACTIVE_SETTINGS))
        self.cloud.types = {name: self.cloud.types[name] for name in INSTANCE_TYPES}
        self.cloud.offerings = tuple(offering for offering in self.cloud.offerings if offering[0] in INSTANCE_TYPES)
        self.kube = InMemoryKube(self.cluster.api)
        handed_over = {"metadata": {"labels": {MANAGED_BY_LABEL: "joiner"}}}
        for manifest in parse_release_manifests():
            if manifest["kind"] == CRD_KIND:
                self.kube.patch(build_manifest_path(manifest), msgspec.json.encode(handed_over))
        self.stack = Stack(self.kube, self.clock, self.run)
        assert self.stack.ask("Create")[0] == "SUCCESS"
        self.profile = dict(self.wiring.functions[0].environment)["JOINER_INSTANCE_PROFILE"]
        class_, pool, self.web = yaml.safe_load_all(MANIFESTS)
        self.apply([class_, pool])
        self.run(timedelta(minutes=2))
        if waiting:
            self.apply([self.web])
            self.run(timedelta(seconds=5))

    def delete_emptied_part(self, on_destroy: str = "purge", **properties: Any) -> tuple[str, str]:
        """Delete the first part and return the response to CloudFormation."""
        return self.stack.ask("Delete", "emptied", OnDestroy=on_destroy, Profiles=[self.profile], **properties)

    def delete_installed_part(self, on_destroy: str = "purge") -> list[str]:
        """Delete the functions and the installed objects; return what is left some time later."""
        self.runtime.stop()
        self.tap = _without_role
        assert self.stack.ask("Delete", OnDestroy=on_destroy)[0] == "SUCCESS"
        remaining = [instance.instance_id for instance in self.list_active_instances()]
        if on_destroy == "purge":
            remaining += [
                template.name for template in CloudEc2(self.cloud).describe_launch_templates(self.cluster_name)
            ]
            remaining += [
                path
                for manifest in parse_release_manifests()
                if is_there(self.kube, path := build_manifest_path(manifest))
            ]
        return remaining + [get_manifest_name(node) for node in self.cluster.api.list("nodes")]


def _without_role(call: PortCall) -> None:
    raise Forbidden(call.method)


class PausedFunction:
    """A function at work when the stack is deleted: it stops at a call and continues shortly before its timeout."""

    def __init__(self, account: Account, stop: int) -> None:
        """Call `provision` and let it run to its *stop*th step."""
        self._account = account
        self._until = account.clock.get_time() + RESUME_AFTER
        self._process = Process(self, f"provision-{stop:06}", _run_provision)
        for _ in range(stop):
            self._process.resume()
        self.was_over = self._process.over
        account.stack = Stack(account.kube, account.clock, self.wait)

    def build_world(self, name: str = "", *, tap: Tap | None = None) -> Outside:
        """Return the world that the function uses."""
        environment = dict(self._account.wiring.get_function("provision").environment)
        outside = self._account._build_world("provision", environment)  # noqa: SLF001 - as Lambda would
        function_world = msgspec.structs.replace(outside, name=name)
        return tap_world(function_world, tap) if tap is not None else function_world

    def wait(self, duration: timedelta) -> None:
        """Advance time by *duration*; the function continues when its time is nearly up."""
        self._account.run(duration)
        if self._account.clock.get_time() >= self._until:
            self.finish()

    def finish(self) -> None:
        """Run the function to its end, as far as it still can."""
        self._process.finish()


def _run_provision(outside: Outside) -> None:
    with suppress(Fault):
        provision.handle({"source": "schedule"}, outside)


def get_pause_annotation(account: Account) -> str:
    """Return the launch pause of the Namespace that holds the cluster's annotations."""
    metadata = account.cluster.api.get("namespaces", CLUSTER_NAMESPACE)["metadata"]
    return str(metadata.get("annotations", {}).get(LAUNCHES_PAUSED, ""))


def play_every_third_step(play: Callable[[int], bool]) -> None:
    """Call *play* for every third step of the function, until the function ends before it."""
    for stop in count(0, 3):
        if play(stop):
            assert stop > MIN_STEPS
            return


@pytest.mark.parametrize("seconds", [0, 1, 6, 15, 30, 45, 70])
def test_purge_during_a_scale_up_leaves_no_resources(seconds: int) -> None:
    account = Account()
    account.run(timedelta(seconds=seconds))
    assert account.delete_emptied_part() == ("SUCCESS", "all NodePools, NodeClaims and EC2NodeClasses are deleted")
    assert account.delete_installed_part() == []


@pytest.mark.no_cover  # one life, stopped at one place after the other
def test_purge_waits_for_runs_that_started_before_nodepools_were_deleted() -> None:
    def play(stop: int) -> bool:
        account = Account()
        standing = PausedFunction(account, stop)
        assert account.delete_emptied_part()[0] == "SUCCESS", f"stop {stop}"
        standing.finish()
        assert account.delete_installed_part() == [], f"stop {stop}"
        return standing.was_over

    play_every_third_step(play)


@pytest.mark.no_cover  # one life, stopped at one place after the other
def test_stack_deletion_fails_by_default_while_a_launch_may_be_in_progress() -> None:
    def play(stop: int) -> bool:
        account = Account()
        standing = PausedFunction(account, stop)
        status, message = account.delete_emptied_part("keep")
        standing.finish()
        if status == "SUCCESS":
            assert account.delete_installed_part("keep") == [], f"stop {stop}"
        else:
            assert "with the role of the stack" in message
        return standing.was_over

    play_every_third_step(play)


def test_deleting_a_stack_without_nodes_pauses_launches_and_keeps_other_pauses() -> None:
    account = Account(waiting=False)
    foreign_pause = {"metadata": {"annotations": {LAUNCHES_PAUSED: "Launches in batch by anna"}}}
    account.kube.patch(f"/api/v1/namespaces/{CLUSTER_NAMESPACE}", msgspec.json.encode(foreign_pause))
    assert account.delete_emptied_part("keep") == ("SUCCESS", "no changes")
    assert get_pause_annotation(account).startswith("true in batch by anna; true until ")
    account.apply([account.web])
    account.run(timedelta(minutes=5))
    assert (account.list_active_instances(), account.delete_installed_part("keep")) == ((), [])
    assert get_pause_annotation(account) == "true in batch by anna"


def test_launches_resume_if_stack_deletion_fails_or_is_abandoned() -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    assert account.delete_emptied_part("keep")[0] == "FAILED"
    assert get_pause_annotation(account) == ""
    account = Account(waiting=False)
    assert account.delete_emptied_part("keep")[0] == "SUCCESS"
    account.apply([account.web])
    account.run(timedelta(minutes=50))
    assert account.list_active_instances() == ()
    account.run(timedelta(minutes=12))
    assert account.list_active_instances()


def test_stack_update_removes_the_launch_pause() -> None:
    account = Account(waiting=False)
    assert account.delete_emptied_part("keep")[0] == "SUCCESS"
    assert get_pause_annotation(account)
    assert account.stack.ask("Update")[0] == "SUCCESS"
    assert get_pause_annotation(account) == ""


def test_nodeclaim_with_foreign_finalizer_blocks_stack_deletion() -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    [claim] = account.cluster.api.list("nodeclaims.karpenter.sh")
    path = f"{CLAIMS}/{get_manifest_name(claim)}"
    finalizers = claim["metadata"]["finalizers"]
    account.kube.patch(path, msgspec.json.encode({"metadata": {"finalizers": [*finalizers, FOREIGN_FINALIZER]}}))
    status, message = account.delete_emptied_part()
    assert (status, message) == (
        "FAILED",
        f"NodeClaims are still being deleted: {get_manifest_name(claim)}; to fix: delete the stack again",
    )
    assert account.list_active_instances() == ()
    account.kube.patch(path, b'{"metadata": {"finalizers": null}}')
    assert account.delete_emptied_part()[0] == "SUCCESS"
    assert account.delete_installed_part() == []


@pytest.mark.parametrize("on_destroy", ["purge", "keep"])
def test_unreachable_cluster_fails_stack_deletion(on_destroy: str) -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    down = tap_port(account.kube, "kube", _raise_unreachable)
    account.stack = Stack(down, account.clock, account.run)
    assert account.delete_emptied_part(on_destroy)[0] == "FAILED"
    assert account.stack.ask("Delete", OnDestroy=on_destroy)[0] == "FAILED"
    assert account.list_active_instances()
    account.stack = Stack(account.kube, account.clock, account.run)
    assert account.delete_emptied_part("purge")[0] == "SUCCESS"
    assert account.delete_installed_part() == []


@pytest.mark.parametrize("fault", [Throttled, Unreachable])
@pytest.mark.parametrize("port", ["ec2", "kube"])
def test_purge_succeeds_after_minutes_of_ec2_or_api_server_outage(port: str, fault: type[Fault]) -> None:
    account = Account()
    account.run(timedelta(seconds=75))
    over = account.clock.get_time() + timedelta(minutes=6)

    def inject_fault(call: PortCall) -> None:
        if call.port == port and call.phase == "before" and account.clock.get_time() < over:
            raise fault(call.method)

    account.tap = inject_fault
    kube = tap_port(account.kube, "kube", inject_fault)
    account.stack = Stack(kube, account.clock, account.run)
    assert account.delete_emptied_part()[0] == "SUCCESS"
    assert account.delete_installed_part() == []


def _raise_unreachable(call: PortCall) -> None:
    raise Unreachable(call.method)
