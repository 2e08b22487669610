"""NodeClaims of gangs: an annotation has the gangs that a NodeClaim was created for, until they are complete."""

from collections.abc import Iterable, Mapping

import msgspec

from shared.model.core.labels import PLANNED_GANGS
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.gangs.gangs import Gang


def format_planned_gangs(sizes: Mapping[str, int]) -> str:
    """Return the annotation for gangs of these sizes."""
    return msgspec.json.encode(dict(sorted(sizes.items()))).decode()


def parse_planned_gangs(claim: NodeClaim) -> dict[str, int]:
    """Return the sizes of the gangs that *claim* waits for, by name; none if the annotation cannot be parsed."""
    text = claim.meta.get_annotation(PLANNED_GANGS)
    try:
        return msgspec.json.decode(text, type=dict[str, int]) if text else {}
    except msgspec.DecodeError:
        return {}


def format_gangs_of_pods(pod_names: Iterable[str], gang_by_pod: Mapping[str, Gang]) -> str:
    """Return the annotation for a NodeClaim with these pods; "" if none of them is in a gang."""
    sizes = {gang.name: gang.size for gang in map(gang_by_pod.get, pod_names) if gang is not None}
    return format_planned_gangs(sizes) if sizes else ""
