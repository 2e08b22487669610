"""Tags that an instance can get only once its node is known."""

from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.labels import CLUSTER_NAME_TAGGED, TAGGED
from shared.model.core.metadata import build_pairs
from shared.model.decisions.action import PatchMetadata, TagInstance
from shared.model.ec2.instance import CLUSTER_TAG, NODE_CLAIM_TAG
from shared.state.node_claim_state import NodeClaimState


def tag_instance(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Add the missing tags only; once they are all seen on the instance, record that on the NodeClaim."""
    claim = claim_state.claim
    instance = (context.instances or {}).get(claim.instance_id)
    is_recorded = all(claim.meta.get_annotation(key) == "true" for key in (TAGGED, CLUSTER_NAME_TAGGED))
    if is_recorded or not claim.node_name or instance is None or instance.is_terminating():
        return StepResult(claim=claim)
    expected_tags = {NODE_CLAIM_TAG: claim.name, "Name": claim.node_name}
    if context.cluster_name:
        expected_tags[CLUSTER_TAG] = context.cluster_name
    existing_keys = {key for key, _ in instance.tags}
    missing_tags = {key: value for key, value in expected_tags.items() if key not in existing_keys}
    if missing_tags:
        message = f"the node of {claim.name} is {claim.node_name}"
        return StepResult(
            claim=claim,
            after=(TagInstance(instance_id=instance.instance_id, tags=build_pairs(missing_tags), message=message),),
        )
    annotations = build_pairs({TAGGED: "true", CLUSTER_NAME_TAGGED: "true"})
    annotation_patch = PatchMetadata(
        kind="NodeClaim", name=claim.name, annotations=annotations, message="its instance is tagged"
    )
    return StepResult(claim=claim, after=(annotation_patch,))
