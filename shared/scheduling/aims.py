"""What a class of pods aims at, one stage after the other, with numbers in place of whatever is dear to compare."""

from collections.abc import Hashable

import msgspec

from shared.model.labels import HOSTNAME
from shared.model.pods import HostPort
from shared.model.requirements import Requirements
from shared.model.resources import Vector
from shared.scheduling.relaxation import Stage
from shared.scheduling.templates import Wish
from shared.scheduling.topology import Topology


class Bond(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A group whose rule binds a class."""

    group: int
    key: str
    own: int
    """1 if its pods count themselves."""
    counts: bool
    """Whether a pod that is placed raises the counts."""


class Bonds(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All groups that bind a class at a stage."""

    hosts: tuple[Bond, ...]
    """Groups over hosts."""
    domains: tuple[Bond, ...]
    """Groups over other labels."""
    simple: Bond | None
    """The only group over another label, if it is a spread or an affinity."""
    watched: tuple[int, ...]
    """Groups whose counts decide more than which nodes are full."""
    is_once: bool
    """Whether no node takes more than one such pod."""
    is_moving: bool
    """Whether a pod that is placed changes which domains the next may be in."""
    may_recover: bool
    """Whether what was tried in vain may do later."""


class Aim(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What is tried at one stage."""

    stage: Stage
    wish: Wish
    shape: int
    """Number of the wish with the room and the ports that are needed."""
    bonds: Bonds


class Register:
    """Gives equal wishes and shapes equal numbers."""

    def __init__(self, found: Topology) -> None:
        """Begin with none."""
        self._found = found
        self._wishes: dict[Hashable, Wish] = {}
        self._by_stage: dict[tuple[int, tuple[Requirements, ...]], Wish] = {}
        self._shapes: dict[tuple[int, Vector, tuple[HostPort, ...]], int] = {}
        self._bonds: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], Bonds] = {}

    def aim(
        self,
        stage: Stage,
        bound: tuple[int, ...],
        groups: tuple[tuple[int, ...], tuple[int, ...]],
        room: tuple[Vector, tuple[HostPort, ...], tuple[Requirements, ...]],
    ) -> Aim:
        """Answer what *stage* aims at; *groups*: those that select the pods, and those in which they count.

        *room*: what a pod needs, its ports, and where its volumes can be.
        """
        need, ports, alternatives = room
        wish = self._wish(stage, alternatives)
        shape = self._shapes.setdefault((wish.number, need, ports), len(self._shapes))
        key = (bound, *groups)
        if key not in self._bonds:
            self._bonds[key] = self._bound(bound, *groups)
        return Aim(stage=stage, wish=wish, shape=shape, bonds=self._bonds[key])

    def _wish(self, stage: Stage, alternatives: tuple[Requirements, ...]) -> Wish:
        near = (id(stage), alternatives)
        if near not in self._by_stage:
            key = (stage.requirements, stage.tolerations, alternatives)
            fresh = Wish(
                number=len(self._wishes),
                requirements=stage.requirements,
                tolerations=stage.tolerations,
                alternatives=alternatives,
            )
            self._by_stage[near] = self._wishes.setdefault(key, fresh)
        return self._by_stage[near]

    def _bound(self, bound: tuple[int, ...], selecting: tuple[int, ...], counted: tuple[int, ...]) -> Bonds:
        hosts: list[Bond] = []
        domains: list[Bond] = []
        for number in bound:
            key = self._found.groups[number].rule.key
            bond = Bond(group=number, key=key, own=int(number in selecting), counts=number in counted)
            (hosts if key == HOSTNAME else domains).append(bond)
        followed = [one for one in (*hosts, *domains) if self._kind(one) == "affinity"]
        watched = {one.group for one in (*domains, *followed)}
        return Bonds(
            hosts=tuple(hosts),
            domains=tuple(domains),
            simple=domains[0] if [self._kind(one) for one in domains] in (["spread"], ["affinity"]) else None,
            watched=tuple(sorted(watched)),
            is_once=any(one.counts and self._alone(one) for one in hosts),
            is_moving=any(one.counts and self._kind(one) != "affinity" for one in domains),
            may_recover=bool(followed) or any(self._kind(one) == "spread" for one in domains),
        )

    def _alone(self, bond: Bond) -> bool:
        rule = self._found.groups[bond.group].rule
        return rule.kind in ("apart", "inverse") or (rule.kind == "spread" and bond.own > 0 and rule.max_skew == 1)

    def _kind(self, bond: Bond) -> str:
        return self._found.groups[bond.group].rule.kind
