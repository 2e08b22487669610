"""`cdk destroy` in the middle of things: whatever is on its way then, no machine and no object is left behind."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any, Final

import msgspec
import pytest
import yaml

from functions.installer.manifests import DEFINITION, MANAGED_BY, name_of, path_of
from functions.provision import handler as provision
from shared.errors import Fault, Forbidden, Throttled, Unreachable
from shared.model.holds import HOME
from shared.model.labels import LAUNCHES_PAUSED
from shared.ports import World as Outside
from sim.cloud.ports import CloudEc2
from sim.cluster.kube import InMemoryKube
from sim.embedded import Embedded
from sim.faults import Call, Tap, tapped, tapped_world
from sim.lambdas.template import ACTIVE, synthesised
from tests.infra.guarded import MANIFESTS
from tests.infra.installations import CLAIMS, Stack, is_there, wanted
from tests.property.test_actions_laws import Process

TYPES: Final = ("c5.large", "m5.large")
"""All that EC2 sells here."""
LIMIT: Final = timedelta(seconds=50)
"""Within its time-out a function that stands still goes on."""
LEAST: Final = 30
"""Steps of a cycle, at the least."""
OTHERS: Final = "example.com/held"


class Account(Embedded):
    """A deployed stack at work, of which everything is deleted sooner or later."""

    def __init__(self, *, waiting: bool = True) -> None:
        """Install it; pods are *waiting* from now on."""
        super().__init__(template=synthesised(context=ACTIVE))
        self.cloud.types = {name: self.cloud.types[name] for name in TYPES}
        self.cloud.offerings = tuple(one for one in self.cloud.offerings if one[0] in TYPES)
        self.kube = InMemoryKube(self.live.api)
        handed_over = {"metadata": {"labels": {MANAGED_BY: "joiner"}}}
        for one in wanted():
            if one["kind"] == DEFINITION:
                self.kube.patch(path_of(one), msgspec.json.encode(handed_over))
        self.stack = Stack(self.kube, self.clock, self.run)
        assert self.stack.ask("Create")[0] == "SUCCESS"
        self.profile = dict(self.wiring.functions[0].environment)["JOINER_INSTANCE_PROFILE"]
        class_, pool, self.web = yaml.safe_load_all(MANIFESTS)
        self.apply([class_, pool])
        self.run(timedelta(minutes=2))
        if waiting:
            self.apply([self.web])
            self.run(timedelta(seconds=5))

    def emptied(self, on_destroy: str = "purge", **properties: Any) -> tuple[str, str]:
        """Answer what CloudFormation hears of the first part."""
        return self.stack.ask("Delete", "emptied", OnDestroy=on_destroy, Profiles=[self.profile], **properties)

    def removed(self, on_destroy: str = "purge") -> list[str]:
        """Delete the functions and what is installed; answer what is left, some time later."""
        self.runtime.stop()
        self.tap = _without_role
        assert self.stack.ask("Delete", OnDestroy=on_destroy)[0] == "SUCCESS"
        left = [one.instance_id for one in self.living()]
        if on_destroy == "purge":
            left += [one.name for one in CloudEc2(self.cloud).launch_templates(self.cluster_name)]
            left += [path for one in wanted() if is_there(self.kube, path := path_of(one))]
        return left + [name_of(one) for one in self.live.api.list("nodes")]


def _without_role(call: Call) -> None:
    raise Forbidden(call.method)


class Standing:
    """A function that is at work when the stack is deleted: it stands still at a call, until its time is nearly up."""

    def __init__(self, account: Account, stop: int) -> None:
        """Call `provision`, which comes as far as its *stop*th step."""
        self._account = account
        self._until = account.clock.now() + LIMIT
        self._process = Process(self, f"provision-{stop:06}", _provide)
        for _ in range(stop):
            self._process.resume()
        self.was_over = self._process.over
        account.stack = Stack(account.kube, account.clock, self.wait)

    def world(self, name: str = "", *, tap: Tap | None = None) -> Outside:
        """Answer what it reaches."""
        environment = dict(self._account.wiring.function("provision").environment)
        known = self._account._world(name, environment)  # noqa: SLF001 - as Lambda would
        return tapped_world(known, tap) if tap is not None else known

    def wait(self, duration: timedelta) -> None:
        """Let *duration* pass; it goes on when it must."""
        self._account.run(duration)
        if self._account.clock.now() >= self._until:
            self.finish()

    def finish(self) -> None:
        """Let it come to its end, as far as it still can."""
        self._process.finish()


def _provide(outside: Outside) -> None:
    with suppress(Fault):
        provision.handle({"source": "schedule"}, outside)


def paused(account: Account) -> str:
    """Answer what the Namespace that speaks for the cluster says of launches."""
    metadata = account.live.api.get("namespaces", HOME)["metadata"]
    return str(metadata.get("annotations", {}).get(LAUNCHES_PAUSED, ""))


def everywhere(play: Callable[[int], bool]) -> None:
    """Play at every third step of the function, until it is at its end there."""
    for stop in count(0, 3):
        if play(stop):
            assert stop > LEAST
            return


@pytest.mark.parametrize("seconds", [0, 1, 6, 15, 30, 45, 70])
def test_a_purge_at_any_moment_of_a_scale_up_leaves_nothing(seconds: int) -> None:
    account = Account()
    account.run(timedelta(seconds=seconds))
    assert account.emptied() == ("SUCCESS", "all NodePools, NodeClaims and EC2NodeClasses are gone")
    assert account.removed() == []


@pytest.mark.no_cover  # one life, stopped at one place after the other
def test_a_purge_waits_for_whoever_planned_before_the_nodepools_were_gone() -> None:
    def play(stop: int) -> bool:
        account = Account()
        standing = Standing(account, stop)
        assert account.emptied()[0] == "SUCCESS", f"stop {stop}"
        standing.finish()
        assert account.removed() == [], f"stop {stop}"
        return standing.was_over

    everywhere(play)


@pytest.mark.no_cover  # one life, stopped at one place after the other
def test_by_default_the_stack_does_not_go_while_machines_may_be_on_their_way_to_it() -> None:
    def play(stop: int) -> bool:
        account = Account()
        standing = Standing(account, stop)
        status, told = account.emptied("keep")
        standing.finish()
        if status == "SUCCESS":
            assert account.removed("keep") == [], f"stop {stop}"
        else:
            assert "nodes" in told
        return standing.was_over

    everywhere(play)


def test_while_a_stack_without_nodes_goes_nobody_launches_one_and_what_others_pause_stays() -> None:
    account = Account(waiting=False)
    others = {"metadata": {"annotations": {LAUNCHES_PAUSED: "Launches in batch by anna"}}}
    account.kube.patch(f"/api/v1/namespaces/{HOME}", msgspec.json.encode(others))
    assert account.emptied("keep") == ("SUCCESS", "nothing to do")
    assert paused(account).startswith("true in batch by anna; true until ")
    account.apply([account.web])
    account.run(timedelta(minutes=5))
    assert (account.living(), account.removed("keep")) == ((), [])
    assert paused(account) == "true in batch by anna"


def test_who_stays_goes_on_launching_and_who_could_not_go_does_so_by_itself() -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    assert account.emptied("keep")[0] == "FAILED"
    assert paused(account) == ""
    account = Account(waiting=False)
    assert account.emptied("keep")[0] == "SUCCESS"
    account.apply([account.web])
    account.run(timedelta(minutes=50))
    assert account.living() == ()
    account.run(timedelta(minutes=12))
    assert account.living()


def test_another_deployment_takes_the_pause_back() -> None:
    account = Account(waiting=False)
    assert account.emptied("keep")[0] == "SUCCESS"
    assert paused(account)
    assert account.stack.ask("Update")[0] == "SUCCESS"
    assert paused(account) == ""


def test_a_claim_that_others_hold_keeps_the_stack_until_they_let_go() -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    [claim] = account.live.api.list("nodeclaims.karpenter.sh")
    path = f"{CLAIMS}/{name_of(claim)}"
    ours = claim["metadata"]["finalizers"]
    account.kube.patch(path, msgspec.json.encode({"metadata": {"finalizers": [*ours, OTHERS]}}))
    status, told = account.emptied()
    assert (status, told) == ("FAILED", f"1 NodeClaims are still going: {name_of(claim)}; delete the stack again")
    assert account.living() == ()
    account.kube.patch(path, b'{"metadata": {"finalizers": null}}')
    assert account.emptied()[0] == "SUCCESS"
    assert account.removed() == []


@pytest.mark.parametrize("on_destroy", ["purge", "keep"])
def test_a_cluster_that_does_not_answer_is_no_empty_one(on_destroy: str) -> None:
    account = Account()
    account.run(timedelta(minutes=3))
    down = tapped(account.kube, "kube", _unreachable)
    account.stack = Stack(down, account.clock, account.run)
    assert account.emptied(on_destroy)[0] == "FAILED"
    assert account.stack.ask("Delete", OnDestroy=on_destroy)[0] == "FAILED"
    assert account.living()
    account.stack = Stack(account.kube, account.clock, account.run)
    assert account.emptied("purge")[0] == "SUCCESS"
    assert account.removed() == []


@pytest.mark.parametrize("fault", [Throttled, Unreachable])
@pytest.mark.parametrize("port", ["ec2", "kube"])
def test_a_purge_outlasts_minutes_without_ec2_or_cluster(port: str, fault: type[Fault]) -> None:
    account = Account()
    account.run(timedelta(seconds=75))
    over = account.clock.now() + timedelta(minutes=6)

    def tap(call: Call) -> None:
        if call.port == port and call.when == "before" and account.clock.now() < over:
            raise fault(call.method)

    account.tap = tap
    kube = tapped(account.kube, "kube", tap)
    account.stack = Stack(kube, account.clock, account.run)
    assert account.emptied()[0] == "SUCCESS"
    assert account.removed() == []


def _unreachable(call: Call) -> None:
    raise Unreachable(call.method)
