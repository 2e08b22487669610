"""Commands in all their phases, for the tests of disruption and of what it does."""

from datetime import datetime, timedelta
from typing import Any

from shared.disruption.scenes import Scene, scene_of
from shared.model import labels
from shared.model.action import CreateNodeClaim
from shared.model.cluster import Cluster
from shared.model.commands import Command, Invalid, Method, Phase, Reason, Standing, Target, command
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, Meta
from shared.model.taints import DISRUPTED
from tests.unit.lifecycle_cases import CLASS, NOW, STAGES, Case, claim, cluster, node, provider_id, true

FEW_SECONDS: timedelta = timedelta(seconds=30)


def target(name: str = "a", pool: str = "default") -> Target:
    return Target(node=f"node-{name}", claim=name, claim_uid=f"uid-{name}", provider_id=provider_id(name), pool=pool)


def replacement(name: str = "new") -> CreateNodeClaim:
    return CreateNodeClaim(claim=NodeClaim(meta=Meta(name=name), node_class=CLASS), why="cheaper")


def order(
    *names: str, reason: Reason = "Underutilized", method: Method = "SingleNode", by: tuple[str, ...] = ()
) -> Command:
    """Answer a command about nodes of *names*, replaced *by* claims."""
    targets = tuple(target(name) for name in names or ("a",))
    return command(reason=reason, method=method, targets=targets, replacements=tuple(map(replacement, by)), why="why")


def empty(*names: str) -> Command:
    return order(*names, reason="Empty", method="Emptiness")


def stands(one: Command, phase: Phase = "PROPOSED", since: datetime = NOW - FEW_SECONDS, **fields: Any) -> Standing:
    known = {"phase_since": since, "proposed_at": since} | fields
    return Standing(command=one, phase=phase, **known)


def told(reason: str = "Underutilized", since: datetime = NOW - FEW_SECONDS) -> Condition:
    return Condition(type="DisruptionReason", status="True", reason=reason, message=reason, since=since)


def marked(name: str = "a", reason: str = "Underutilized", since: datetime = NOW - FEW_SECONDS) -> tuple[Case, Case]:
    """Answer claim and Node of a machine that is proposed."""
    mine = claim(name, conditions=(told(reason, since), *true(*STAGES)))
    return mine, node(name, taints=(DISRUPTED,))


def substitute(name: str = "new", of: str = "", *, fit: bool = False, **fields: Case) -> NodeClaim:
    """Answer the claim of a replacement, launched or more."""
    conditions = true(*STAGES) if fit else true("Launched")
    return claim(name, conditions=conditions, annotations={labels.COMMAND: of}, **fields)


def seen(*machines: tuple[Case, Case | None], **fields: Case) -> Scene:
    """Answer the scene of claims with their Nodes."""
    return scene_of(there(*machines, **fields))


def there(*machines: tuple[Case, Case | None], **fields: Case) -> Cluster:
    claims = tuple(one for one, _ in machines if one is not None)
    nodes = tuple(one for _, one in machines if one is not None)
    return cluster(node_claims=claims, nodes=nodes, **fields)


def holds(of_cluster: Cluster, one: Command) -> Invalid | None:
    del of_cluster, one
    return None


def fails(of_cluster: Cluster, one: Command) -> Invalid | None:
    del of_cluster
    return Invalid(why=f"{one.targets[0].node} has a new pod", nodes=frozenset({one.targets[0].node}))
