"""Launches that are only asked about: by who may launch, written down for half an hour, read by everybody.

Whether a launch is allowed can only be asked by the role that launches, so `provision` asks and `catalog` reads. Until
somebody has asked, nothing is refused: a launch would say the same, only later and to a NodeClaim.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.errors import Fault
from shared.launch.probes import REHEARSAL, Rehearsal, probe, refusal_findings, rehearsal_in, rehearsal_key
from shared.model.action import Action, FollowUp
from shared.model.cluster import Cluster
from shared.model.ec2 import ClusterFacts
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.ports import World

REMEMBERED: Final = timedelta(minutes=30)
AGAIN: Final = timedelta(minutes=5)
"""After a refusal: whoever corrects it should not wait for half an hour."""
_KEPT: Final = timedelta(days=1)


def rehearse(cluster: Cluster, world: World, problems: list[Problem]) -> tuple[Action, ...]:
    """Ask EC2 about each node class that is ready, or was refused, and was not asked about lately; say whom to wake.

    A fault is no answer, and joins *problems*: the next invocation asks again. A deployment that only plans asks
    nothing, nor does one that does not want to.
    """
    facts = cluster.facts
    if facts is None or world.settings.mode != "active" or world.settings.disable_dry_run == "true":
        return ()
    changed = [one.name for one in cluster.node_classes if _has_changed(one, cluster, facts, world, problems)]
    why = f"EC2 answers otherwise about EC2NodeClass {', '.join(changed)}"
    return (FollowUp(function="catalog", after=timedelta(), why=why),) if changed else ()


def _has_changed(
    one: EC2NodeClass, cluster: Cluster, facts: ClusterFacts, world: World, problems: list[Problem]
) -> bool:
    try:
        return _asked(one, cluster, facts, world)
    except Fault as fault:
        message = f"EC2 could not be asked what it would refuse: {type(fault).__name__}: {fault}"
        problems.append(Problem(kind="EC2NodeClass", name=one.name, message=message))
    except ValueError:
        pass  # its user data: catalog says so
    return False


def _asked(one: EC2NodeClass, cluster: Cluster, facts: ClusterFacts, world: World) -> bool:
    """Ask if it is time to, write the answer down, and say whether it is graver or less grave than before.

    Raises:
        Fault: EC2 or the table did not answer.
        ValueError: the user data cannot be made.
    """
    row = world.table.read(REHEARSAL, one.name)
    known = rehearsal_in(row.body, one) if row is not None else None
    before = refusal_findings(one, known.refusals if known is not None else ())
    if not (one.is_ready() or before) or (known is not None and world.clock() < known.again_at):
        return False
    types = cluster.catalogue.types_for(one.name) if cluster.catalogue is not None else ()
    asked = probe(one, facts, types, cluster.node_pools)
    if asked is None:
        return False
    refusals = world.ec2.refusals(asked)
    after, now = refusal_findings(one, refusals), world.clock()
    rehearsal = Rehearsal(key=rehearsal_key(one), refusals=refusals, again_at=now + (AGAIN if after else REMEMBERED))
    body = msgspec.json.encode(rehearsal).decode()
    version = row.version if row is not None else 0
    world.table.write(REHEARSAL, one.name, body, version=version, expires_at=now + _KEPT)
    return before != after
