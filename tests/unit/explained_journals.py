"""Journals that `joiner explain` is asked about: entries in few words, the life of one machine, folders and buckets."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from cli.explain_answers import explained
from cli.explain_journals import Cycle, Journal
from cli.explain_kinds import Kind
from cli.explain_look import Look, looked
from cli.main import main
from cli.text import Palette
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    EvictPod,
    LaunchInstances,
    MarkUnavailable,
    PatchMetadata,
    PatchStatus,
    RegisterNode,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest, LaunchTemplateConfig, Override
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.taints import Taint
from shared.report.journal import LAUNCHED, Done, Entry, Note, key_of
from sim.clock import START
from sim.memory import MemoryBucket

PLAIN = Palette(enabled=False)
PODS = ("shop/cart", "shop/till")
BOUGHT = ((INSTANCE_TYPE, "c5.xlarge"), (CAPACITY_TYPE, "spot"), (NODEPOOL, "default"), (ZONE, "us-east-1c"))
ASKED = "2 pods fit no node; cheapest of 9 types that hold them: m5.large spot in us-east-1a $0.0500/h"
TURNED_DOWN = "pool gpu: needs toleration nvidia.com/gpu; pool default: no instance type with 512 GiB in us-east-1a"
DRAIN = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")


def entry(minute: float, *actions: Action, function: str = "provision", **fields: Any) -> Entry:
    done = tuple(Done(action=action, result="done") for action in actions)
    at = START + timedelta(minutes=minute)
    return Entry(function=function, trigger="schedule", at=at, cluster="abc", **({"done": done} | fields))


def note(kind: str, name: str, verdict: str, why: str, **fields: Any) -> Note:
    return Note(kind=kind, name=name, verdict=verdict, why=why, **fields)


def claim(name: str = "c1", pods: tuple[str, ...] = PODS) -> CreateNodeClaim:
    made = NodeClaim(meta=Meta(name=name, labels=((NODEPOOL, "default"),)), node_class=NodeClassRef(name="default"))
    return CreateNodeClaim(claim=made, pods=pods, why=ASKED)


def launch(*claims: str) -> LaunchInstances:
    offers = tuple(
        Override(instance_type=name, zone="us-east-1a", subnet_id="subnet-a", priority=0.05)
        for name in ("m5.large", "c5.xlarge")
    )
    asked = FleetRequest(
        client_token="t",  # noqa: S106 - EC2's word
        capacity=len(claims),
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(LaunchTemplateConfig(launch_template_name="lt", overrides=offers),),
    )
    return LaunchInstances(
        group=LaunchGroup(name="g", claims=claims, request=asked, templates=(), created_at=START), why="1 x spot"
    )


def refused(name: str, zone: str = "us-east-1a", capacity_type: str = "spot", **fields: str) -> MarkUnavailable:
    out = UnavailableOffering(capacity_type=capacity_type, instance_type=name, zone=zone, until=START, **fields)
    return MarkUnavailable(offering=out, why="InsufficientInstanceCapacity: none is left")


def launched(name: str = "c1", instance: str = "i-1") -> tuple[Action, ...]:
    status = json.dumps({"providerID": f"aws:///us-east-1c/{instance}"})
    return (
        PatchMetadata(kind="NodeClaim", name=name, labels=BOUGHT, why="launched"),
        PatchStatus(kind="NodeClaim", name=name, status=status, why="it is there"),
    )


def price(name: str = "c1") -> Note:
    return note("NodeClaim", name, LAUNCHED, "c5.xlarge, spot, in us-east-1c, $0.0600 per hour", usd_per_hour=0.06)


def evict(pod: str = "cart", node: str = "n1") -> EvictPod:
    return EvictPod(namespace="shop", name=pod, uid="u", node=node, why="Empty")


JOINS = RegisterNode(
    name="n1",
    resource_version="1",
    taints=(),
    labels=(),
    annotations=(),
    finalizers=(),
    owners=(),
    why="the node of c1",
)
TAGGED = TagInstance(instance_id="i-1", tags=(("Name", "n1"), ("karpenter.sh/nodeclaim", "c1")))
MADE = (
    entry(
        0,
        claim(),
        launch("c1"),
        *launched(),
        notes=(price(), *(note("Pod", one, "nodeclaim/c1", "new m5.large or like it") for one in PODS)),
    ),
    entry(1, JOINS, TAGGED, function="lifecycle"),
    entry(2, notes=(note("Pod", "shop/cart", "node/n1", "fits what is there"),)),
)
ORDER = "emptiness-0123"
SUMMARY = "Emptiness (Empty) of n1: no pod on it"
GOES = ("Node/n1", "NodeClaim/c1")


def step(minute: float, phase: str, why: str, *actions: Action, by: tuple[str, ...] = ()) -> Entry:
    told = (
        note(
            "Command",
            ORDER,
            phase,
            f"{why}; {SUMMARY}" if why != SUMMARY else why,
            links=GOES,
            replaced_by=by,
            usd_per_hour=0.06,
        ),
        note("Node", "n1", phase, f"{ORDER}: {why}", links=(f"Command/{ORDER}",)),
    )
    return entry(minute, *actions, function="disrupt", notes=told)


GONE = (
    step(60, "PROPOSED", SUMMARY, TaintNode(name="n1", resource_version="2", taints=(DRAIN,))),
    step(61, "DRAINING", "its nodes are drained", DeleteObject(kind="NodeClaim", name="c1", why="empty")),
    entry(61.5, evict("cart"), evict("till"), function="lifecycle"),
    entry(
        62,
        TerminateInstances(instance_ids=("i-0", "i-1"), why="its claim is deleted"),
        PatchMetadata(kind="Node", name="n1", finalizers=(), why="its instance is gone"),
        DeleteObject(kind="Node", name="n1", why="its claim is deleted"),
        function="lifecycle",
    ),
    step(63, "DONE", "its nodes are gone"),
)


def look(*entries: Entry, live: Cluster | None = None, minutes: float = 90) -> Look:
    cycles = tuple(Cycle(key=f"{place:03}.json", entry=one) for place, one in enumerate(entries))
    return looked(Journal(source="here", cycles=cycles, now=START + timedelta(minutes=minutes)), live)


def asked(seen: Look, kind: Kind, name: str) -> dict[str, tuple[str, ...]]:
    return {one.question: one.words for one in explained(seen, kind, name).answers}


def lines(seen: Look, kind: Kind, name: str) -> list[str]:
    return [f"{one.what}: {one.why}" for one in explained(seen, kind, name).happened]


def written(folder: Path, *entries: Entry) -> str:
    for place, one in enumerate(entries):
        path = folder / key_of(one, f"{place:03}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(one))
    return str(folder)


def run(kind: str, name: str, journal: str, *flags: str) -> int:
    return main(["explain", kind, name, "--journal", journal, *flags])


class Recorded(MemoryBucket):
    """A bucket that knows which prefixes were listed."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self.listed: list[str] = []

    def keys(self, prefix: str) -> tuple[str, ...]:
        self.listed.append(prefix)
        return super().keys(prefix)


def filled(*entries: Entry, under: str = "") -> Recorded:
    bucket = Recorded()
    for one in entries:
        bucket.put(f"{under}{key_of(one, 'x')}", msgspec.json.encode(one))
    return bucket
