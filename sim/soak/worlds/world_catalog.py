"""The worlds by name."""

from collections.abc import Mapping
from typing import Final

from sim.soak.worlds.batch import BATCH_WORLD
from sim.soak.worlds.commitments import COMMITTED_WORLD
from sim.soak.worlds.development import DEVELOPMENT_WORLD
from sim.soak.worlds.mixed import MIXED_WORLD
from sim.soak.worlds.steady import STEADY_WORLD
from sim.soak.worlds.storms import STORMS_WORLD
from sim.soak.worlds.world_definition import WorldDefinition

WORLDS: Final[Mapping[str, WorldDefinition]] = {
    definition.name: definition
    for definition in (MIXED_WORLD, STEADY_WORLD, BATCH_WORLD, DEVELOPMENT_WORLD, STORMS_WORLD, COMMITTED_WORLD)
}
