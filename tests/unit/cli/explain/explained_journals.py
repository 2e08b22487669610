"""Journals for the tests of `joiner explain`: short entries, the lifetime of one node, folders and buckets."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from cli.explain.answers import explain_object
from cli.explain.evidence import Evidence, build_evidence
from cli.explain.kinds import ExplainKind
from cli.journal.journal import Cycle, Journal
from cli.main import main
from cli.terminal.text import Palette
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.taints import Taint
from shared.model.decisions.action import (
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
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.report.journal.journal import LAUNCHED_VERDICT, ActionResult, DecisionNote, JournalEntry, build_entry_key
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.memory_ports import MemoryBucket

PLAIN = Palette(enabled=False)
PODS = ("shop/cart", "shop/till")
BOUGHT = ((INSTANCE_TYPE, "c5.xlarge"), (CAPACITY_TYPE, "spot"), (NODEPOOL, "default"), (ZONE, "us-east-1c"))
CLAIM_MESSAGE = (
    "2 pods do not fit existing nodes; cheapest of 9 matching instance types: m5.large spot in us-east-1a ($0.0500/h)"
)
TURNED_DOWN = (
    "NodePool gpu: needs toleration nvidia.com/gpu; NodePool default: no instance type with 512 GiB in us-east-1a"
)
DRAIN = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")


def make_entry(minute: float, *actions: Action, function: str = "provision", **fields: Any) -> JournalEntry:
    results = tuple(ActionResult(action=action, result="done") for action in actions)
    at = DEFAULT_START_TIME + timedelta(minutes=minute)
    return JournalEntry(function=function, trigger="schedule", at=at, cluster="abc", **({"results": results} | fields))


def make_note(kind: str, name: str, verdict: str, reason: str, **fields: Any) -> DecisionNote:
    return DecisionNote(kind=kind, name=name, verdict=verdict, reason=reason, **fields)


def make_claim_creation(name: str = "c1", pods: tuple[str, ...] = PODS) -> CreateNodeClaim:
    node_claim = NodeClaim(
        meta=ObjectMeta(name=name, labels=((NODEPOOL, "default"),)), node_class=NodeClassRef(name="default")
    )
    return CreateNodeClaim(claim=node_claim, pods=pods, message=CLAIM_MESSAGE)


def make_launch(*claims: str) -> LaunchInstances:
    offers = tuple(
        Override(instance_type=name, zone="us-east-1a", subnet_id="subnet-a", priority=0.05)
        for name in ("m5.large", "c5.xlarge")
    )
    fleet_request = FleetRequest(
        client_token="t",  # noqa: S106 - EC2's word
        capacity=len(claims),
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(LaunchTemplateConfig(launch_template_name="lt", overrides=offers),),
    )
    return LaunchInstances(
        group=LaunchGroup(name="g", claims=claims, request=fleet_request, templates=(), created_at=DEFAULT_START_TIME),
        message="1 x spot",
    )


def make_unavailable_mark(
    name: str, zone: str = "us-east-1a", capacity_type: str = "spot", **fields: str
) -> MarkUnavailable:
    out = UnavailableOffering(
        capacity_type=capacity_type, instance_type=name, zone=zone, until=DEFAULT_START_TIME, **fields
    )
    return MarkUnavailable(offering=out, message="InsufficientInstanceCapacity: none is left")


def make_launched_patches(name: str = "c1", instance: str = "i-1") -> tuple[Action, ...]:
    status = json.dumps({"providerID": f"aws:///us-east-1c/{instance}"})
    return (
        PatchMetadata(kind="NodeClaim", name=name, labels=BOUGHT, message="launched"),
        PatchStatus(kind="NodeClaim", name=name, status=status, message="it is there"),
    )


def make_price_note(name: str = "c1") -> DecisionNote:
    return make_note(
        "NodeClaim", name, LAUNCHED_VERDICT, "c5.xlarge, spot, in us-east-1c, $0.0600 per hour", usd_per_hour=0.06
    )


def make_eviction(pod: str = "cart", node: str = "n1") -> EvictPod:
    return EvictPod(namespace="shop", name=pod, uid="u", node=node, message="Empty")


JOINS = RegisterNode(
    name="n1",
    resource_version="1",
    taints=(),
    labels=(),
    annotations=(),
    finalizers=(),
    owners=(),
    message="the node of c1",
)
TAGGED = TagInstance(instance_id="i-1", tags=(("Name", "n1"), ("karpenter.sh/nodeclaim", "c1")))
LAUNCH_ENTRIES = (
    make_entry(
        0,
        make_claim_creation(),
        make_launch("c1"),
        *make_launched_patches(),
        notes=(make_price_note(), *(make_note("Pod", one, "nodeclaim/c1", "new m5.large or like it") for one in PODS)),
    ),
    make_entry(1, JOINS, TAGGED, function="lifecycle"),
    make_entry(2, notes=(make_note("Pod", "shop/cart", "node/n1", "fits an existing node"),)),
)
ORDER = "emptiness-0123"
SUMMARY = "Emptiness (Empty) of n1: no pod on it"
GOES = ("Node/n1", "NodeClaim/c1")


def make_command_step(
    minute: float, phase: str, reason: str, *actions: Action, replacements: tuple[str, ...] = ()
) -> JournalEntry:
    notes = (
        make_note(
            "Command",
            ORDER,
            phase,
            f"{reason}; {SUMMARY}" if reason != SUMMARY else reason,
            links=GOES,
            replaced_by=replacements,
            usd_per_hour=0.06,
        ),
        make_note("Node", "n1", phase, f"{ORDER}: {reason}", links=(f"Command/{ORDER}",)),
    )
    return make_entry(minute, *actions, function="disrupt", notes=notes)


TERMINATION_ENTRIES = (
    make_command_step(60, "PROPOSED", SUMMARY, TaintNode(name="n1", resource_version="2", taints=(DRAIN,))),
    make_command_step(
        61, "DRAINING", "its nodes are drained", DeleteObject(kind="NodeClaim", name="c1", message="empty")
    ),
    make_entry(61.5, make_eviction("cart"), make_eviction("till"), function="lifecycle"),
    make_entry(
        62,
        TerminateInstances(instance_ids=("i-0", "i-1"), message="its NodeClaim is being deleted"),
        PatchMetadata(kind="Node", name="n1", finalizers=(), message="its instance was terminated"),
        DeleteObject(kind="Node", name="n1", message="its NodeClaim is being deleted"),
        function="lifecycle",
    ),
    make_command_step(63, "DONE", "its nodes are terminated"),
)


def build_journal_evidence(
    *entries: JournalEntry, live: ClusterSnapshot | None = None, minutes: float = 90
) -> Evidence:
    cycles = tuple(Cycle(key=f"{place:03}.json", entry=journal_entry) for place, journal_entry in enumerate(entries))
    return build_evidence(
        Journal(source="here", cycles=cycles, now=DEFAULT_START_TIME + timedelta(minutes=minutes)), live
    )


def map_answers(evidence: Evidence, kind: ExplainKind, name: str) -> dict[str, tuple[str, ...]]:
    return {answer.question: answer.sentences for answer in explain_object(evidence, kind, name).answers}


def list_history_lines(evidence: Evidence, kind: ExplainKind, name: str) -> list[str]:
    return [f"{moment.text}: {moment.reason}" for moment in explain_object(evidence, kind, name).history]


def write_journal(folder: Path, *entries: JournalEntry) -> str:
    for place, journal_entry in enumerate(entries):
        path = folder / build_entry_key(journal_entry, f"{place:03}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(journal_entry))
    return str(folder)


def run(kind: str, name: str, journal: str, *flags: str) -> int:
    return main(["explain", kind, name, "--journal", journal, *flags])


class Recorded(MemoryBucket):
    """A bucket that records which prefixes were listed."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.listed: list[str] = []

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        self.listed.append(prefix)
        return super().list_keys(prefix)


def build_recorded_bucket(*entries: JournalEntry, under: str = "") -> Recorded:
    bucket = Recorded()
    for journal_entry in entries:
        bucket.put(f"{under}{build_entry_key(journal_entry, 'x')}", msgspec.json.encode(journal_entry))
    return bucket
