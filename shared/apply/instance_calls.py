"""Calls on existing instances, which the role may make only on instances with the tags of the cluster.

For an instance that does not exist, or that EC2 does not show yet, AWS does not document which check comes first: EC2
answers InvalidInstanceID.NotFound, or IAM checks the call without the instance's tags: UnauthorizedOperation. So a
refused call is followed by DescribeInstances. Only a call on instances that EC2 shows lacks a permission.
"""

from shared.errors import Forbidden, NotFound
from shared.model.decisions.action import TagInstance, TerminateInstances
from shared.ports.world import World


def tag_instance(action: TagInstance, world: World) -> None:
    """Add tags to an instance. A refused call is repeated if EC2 shows the instance: it can be visible by now.

    Raises:
        NotFound: EC2 does not show the instance.
        Forbidden: the role lacks the permission.
    """
    try:
        world.ec2.create_tags(action.instance_id, action.tags)
    except Forbidden:
        world.ec2.describe_instance(action.instance_id)
        world.ec2.create_tags(action.instance_id, action.tags)


def terminate_instances(action: TerminateInstances, world: World) -> None:
    """Terminate instances. A refused call, which terminates none, is repeated with the instances that EC2 shows.

    Raises:
        Forbidden: the role lacks the permission.
    """
    try:
        world.ec2.terminate_instances(action.instance_ids)
    except Forbidden:
        shown_ids = _select_shown_instances(action.instance_ids, world)
        if shown_ids:
            world.ec2.terminate_instances(shown_ids)


def _select_shown_instances(instance_ids: tuple[str, ...], world: World) -> tuple[str, ...]:
    """Return the *instance_ids* that EC2 shows, with one call for the cluster and one for each instance it lacks."""
    cluster_ids = {instance.instance_id for instance in world.ec2.describe_instances(world.settings.cluster_name)}
    return tuple(
        instance_id for instance_id in instance_ids if instance_id in cluster_ids or _is_shown(instance_id, world)
    )


def _is_shown(instance_id: str, world: World) -> bool:
    try:
        world.ec2.describe_instance(instance_id)
    except NotFound:
        return False
    return True
