"""A short scenario that leaves a journal, and its bucket as a folder, as commands read it."""

from pathlib import Path
from typing import Final

from shared.ports.storage import Bucket
from tests.scenario.worlds import World, make_deployment, make_ec2_message, make_node_class, make_node_pool

MIXED: Final = ("m5.large", "m5.xlarge")


def build_interrupted_world() -> World:
    """Return a world in which nodes were launched for three pods and EC2 has just interrupted one."""
    world = World(make_node_class(), make_node_pool(types=MIXED, capacity=("spot", "on-demand")), make_deployment(3))
    world.wait_until_settled(3)
    [node] = world.list_nodes()[:1]
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", world.find_instance(node).instance_id))
    return world


def unpack_bucket(bucket: Bucket, folder: Path) -> Path:
    """Write every object of *bucket* into *folder*, one file per key; return *folder*."""
    for key in bucket.list_keys(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.get(key))
    return folder
