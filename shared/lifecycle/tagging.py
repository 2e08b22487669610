"""Tags that an instance can only be given once its node is known."""

from typing import Final

from shared.lifecycle.machines import ENDING, Change, Machine, View
from shared.model.action import PatchMetadata, TagInstance
from shared.model.objects import pairs

TAGGED: Final = "karpenter.k8s.aws/tagged"
CLUSTER_TAGGED: Final = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
NODE_CLAIM_TAG: Final = "karpenter.sh/nodeclaim"
CLUSTER_TAG: Final = "eks:eks-cluster-name"


def tag(machine: Machine, view: View) -> Change:
    """Write the tags that are missing, and only them; once they are seen, note that on the claim."""
    claim = machine.claim
    instance = (view.instances or {}).get(claim.instance_id)
    noted = all(claim.meta.annotation(key) == "true" for key in (TAGGED, CLUSTER_TAGGED))
    if noted or not claim.node_name or instance is None or instance.state in ENDING:
        return Change(claim=claim)
    wanted = {NODE_CLAIM_TAG: claim.name, "Name": claim.node_name}
    if view.cluster_name:
        wanted[CLUSTER_TAG] = view.cluster_name
    there = {key for key, _ in instance.tags}
    missing = {key: value for key, value in wanted.items() if key not in there}
    if missing:
        why = f"the node of {claim.name} is {claim.node_name}"
        return Change(claim=claim, after=(TagInstance(instance_id=instance.instance_id, tags=pairs(missing), why=why),))
    note = pairs({TAGGED: "true", CLUSTER_TAGGED: "true"})
    done = PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, why="its instance is tagged")
    return Change(claim=claim, after=(done,))
