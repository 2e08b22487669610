"""A short play that leaves a journal, and its bucket as a folder, as commands read it."""

from pathlib import Path
from typing import Final

from shared.ports import Bucket
from tests.scenario.worlds import World, deployment, node_class, notice, pool

MIXED: Final = ("m5.large", "m5.xlarge")


def interrupted() -> World:
    """Answer a world in which nodes were made for three pods, and EC2 just took one back."""
    world = World(node_class(), pool(types=MIXED, capacity=("spot", "on-demand")), deployment(3))
    world.settled(3)
    [node] = world.nodes()[:1]
    world.interrupt(notice("EC2 Spot Instance Interruption Warning", world.instance_of(node).instance_id))
    return world


def unpacked(bucket: Bucket, folder: Path) -> Path:
    """Write all of *bucket* into *folder*, a file a key; answer that."""
    for key in bucket.keys(""):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.get(key))
    return folder
