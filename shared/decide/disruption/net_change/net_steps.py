"""Merges the steps of a simulated disruption, so that no step removes a node that an earlier step has launched.

A merged step takes the place of its last part; steps in between come first. If a rule refuses the merged steps together
(a budget, for example), they are merged one after the other, and what is refused stays separate.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.net_change.net_command import build_net_command
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState

Group = tuple[int, ...]
"""The places of the commands that are merged, sorted."""


def merge_commands(
    cluster: ClusterSnapshot,
    commands: Sequence[ProposedCommand],
    options: SchedulingOptions,
    settings: DisruptionSettings,
) -> tuple[ProposedCommand, ...]:
    """Return *commands* merged to their net change, in an order in which each is valid; the final nodes are the same.

    Each of *commands* starts from the result of the previous ones, the first from *cluster*. A merged command counts
    against budgets as a disruption run of its own: they must allow all of its nodes together.
    """
    sequence = _CommandSequence(commands)
    groups: list[Group] = [(place,) for place in range(len(commands))]
    all_merged = groups
    for place in sequence.list_followers():
        all_merged = sequence.merge(all_merged, place)
    replay = _Replay(cluster, commands, options, settings)
    merged_commands = replay.run(all_merged)
    if merged_commands is not None:
        return merged_commands
    merged_commands = tuple(commands)
    for place in sequence.list_followers():
        next_groups = sequence.merge(groups, place)
        next_commands = replay.run(next_groups)
        if next_commands is not None:
            groups, merged_commands = next_groups, next_commands
    return merged_commands


class _CommandSequence:
    """Which commands depend on which: a command that launches a node comes before the commands that use the node."""

    def __init__(self, commands: Sequence[ProposedCommand]) -> None:
        creator_by_node = {node.name: place for place, command in enumerate(commands) for node in command.new_nodes}
        self._removed_creators = [
            {creator_by_node[target.name] for target in command.targets if target.name in creator_by_node}
            for command in commands
        ]
        self._used_creators = [
            creators | {creator_by_node[node] for _, node in command.moves if node in creator_by_node}
            for command, creators in zip(commands, self._removed_creators, strict=True)
        ]

    def list_followers(self) -> list[int]:
        """Return the places of the commands that remove nodes of earlier commands."""
        return [place for place, creators in enumerate(self._removed_creators) if creators]

    def merge(self, groups: Sequence[Group], place: int) -> list[Group]:
        """Return *groups*, in order, with command *place* and the commands whose nodes it removes in one group."""
        merged_groups = _join(groups, {place, *self._removed_creators[place]})
        while (late_places := self._find_late_creator(merged_groups)) is not None:
            merged_groups = _join(merged_groups, late_places)
        return merged_groups

    def _find_late_creator(self, groups: Iterable[Group]) -> set[int] | None:
        """Return a command and the creator of a node that it uses, if the creator's group comes later."""
        last_by_place = {place: group[-1] for group in groups for place in group}
        for place, creators in enumerate(self._used_creators):
            for creator in sorted(creators):
                if last_by_place[creator] > last_by_place[place]:
                    return {place, creator}
        return None


def _join(groups: Iterable[Group], places: set[int]) -> list[Group]:
    """Return *groups* with those that contain *places* merged, ordered by their last places."""
    joined_groups = [group for group in groups if places & set(group)]
    other_groups = [group for group in groups if not places & set(group)]
    return sorted([*other_groups, tuple(sorted(chain.from_iterable(joined_groups)))], key=lambda group: group[-1])


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster after some groups, and their commands."""

    cluster: ClusterSnapshot
    commands: tuple[ProposedCommand, ...]


class _Replay:
    """Carries out groups of commands one after the other; common beginnings are carried out once."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        commands: Sequence[ProposedCommand],
        options: SchedulingOptions,
        settings: DisruptionSettings,
    ) -> None:
        self._commands, self._options, self._settings = commands, options, settings
        self._outcomes: dict[tuple[Group, ...], _Outcome | None] = {(): _Outcome(cluster=cluster, commands=())}

    def run(self, groups: Sequence[Group]) -> tuple[ProposedCommand, ...] | None:
        """Return one command for each of *groups*, None if one of them is refused."""
        prefix: tuple[Group, ...] = ()
        outcome = self._outcomes[prefix]
        for group in groups:
            prefix += (group,)
            if prefix not in self._outcomes:
                self._outcomes[prefix] = self._add(outcome, prefix) if outcome is not None else None
            outcome = self._outcomes[prefix]
        return outcome.commands if outcome is not None else None

    def _add(self, outcome: _Outcome, prefix: tuple[Group, ...]) -> _Outcome | None:
        """Return the outcome after the last group of *prefix*.

        A single command stays as it is if exactly the commands before it are in the prefix.
        """
        group, places = prefix[-1], sorted(chain.from_iterable(prefix))
        command: ProposedCommand | None = self._commands[group[0]]
        if len(group) > 1 or places != list(range(group[0] + 1)):
            commands = [self._commands[place] for place in group]
            command = build_net_command(ClusterState(outcome.cluster), commands, self._options, self._settings)
        if command is None:
            return None
        return _Outcome(
            cluster=predict_cluster_after(outcome.cluster, (command,)), commands=(*outcome.commands, command)
        )
