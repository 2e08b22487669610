"""Where a pod may be while others are placed: which nodes are able to take it, and what these may be narrowed to."""

from collections.abc import Iterator

import msgspec

from shared.scheduling.aims import Aim
from shared.scheduling.demand import PodClass
from shared.scheduling.nodeset import Nodes, NodeSet
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.topology import Topology


class Lookout(msgspec.Struct, kw_only=True, eq=False):
    """Nodes and the pods on them, as far as they leave a place open or not; it changes nothing."""

    topology: Topology
    nodes: NodeSet = msgspec.field(default_factory=NodeSet)
    domains: dict[tuple[int, int], tuple[int, tuple[Narrowed, ...]]] = msgspec.field(default_factory=dict)
    """By state and aim: what a node there may be narrowed to, as of a version of the groups that are watched."""

    def _able(self, pods: PodClass, aim: Aim) -> Nodes:
        """Answer the nodes that may take such a pod, as far as bits say."""
        able = self._granting(pods, aim) & ~self.nodes.too_full(aim.shape, pods.need)
        return self._unbound(able, aim) if aim.bonds.hosts else able

    def _is_able(self, number: int, pods: PodClass, aim: Aim) -> bool:
        """Whether one node may take such a pod, as far as bits say."""
        nodes, site = self.nodes, self.nodes.at[number]
        if site not in nodes.granted(aim.wish) or nodes.too_full(aim.shape, pods.need) >> number & 1:
            return False
        if aim.bonds.hosts and not self._unbound(1 << number, aim):
            return False
        return not aim.bonds.domains or self._is_open(site, pods, aim)

    def _unbound(self, able: Nodes, aim: Aim) -> Nodes:
        """Keep of *able* the nodes that rules over hosts leave open."""
        for bond in aim.bonds.hosts:
            group = self.topology.groups[bond.group]
            if group.rule.kind == "spread":
                able &= ~group.hosts_with(group.rule.max_skew - bond.own)
            elif group.rule.kind != "affinity":
                able &= ~group.hosts_with(0)
            elif not bond.own or group.is_taken():
                able &= group.hosts_with(0)
        return able

    def _granting(self, pods: PodClass, aim: Aim) -> Nodes:
        """Answer the nodes that are, or can be, what such a pod asks for, in domains that are open to it."""
        nodes, found = self.nodes, 0
        for site in nodes.granted(aim.wish):
            members = nodes.members[site]
            if members and (not aim.bonds.domains or self._is_open(site, pods, aim)):
                found |= members
        return found

    def _is_open(self, number: int, pods: PodClass, aim: Aim) -> bool:
        """Whether some domain that nodes at a site may be in is open to such a pod."""
        site, groups = self.nodes.sites[number], self.topology.groups
        for bond in aim.bonds.domains:
            group = groups[bond.group]
            domain = site.single.get(group.rule.key)
            if domain is None:
                break
            if not group.admits(domain, bond.own):
                return False
        else:
            return True
        if site.template is not None and site.state is not None:
            return bool(self._states(site.template, site.state, pods, aim))
        bound = [bond.group for bond in aim.bonds.domains]
        choices = self.topology.choices(bound, pods.selecting, site.place)
        return site.example is not None and any(site.example.satisfies(choice) for choice in choices)

    def _states(self, template: Template, state: Narrowed, pods: PodClass, aim: Aim) -> tuple[Narrowed, ...]:
        """Answer what a node may be narrowed to: by where the volumes can be, then by the domains, the best first."""
        wished = template.narrow_to(state, aim.wish)
        if not aim.bonds.domains:
            return wished
        simple = aim.bonds.simple
        if simple is not None and len(wished) == 1:
            domain = template.single(wished[0]).get(simple.key)
            if domain is not None:
                return wished if self.topology.groups[simple.group].admits(domain, simple.own) else ()
        key, version = (id(state), id(aim)), self._version(aim)
        known = self.domains.get(key)
        if known is not None and known[0] == version:
            return known[1]
        found = tuple(self._chosen(template, wished, pods, aim))
        self.domains[key] = (version, found)
        return found

    def _chosen(self, template: Template, wished: tuple[Narrowed, ...], pods: PodClass, aim: Aim) -> Iterator[Narrowed]:
        simple = aim.bonds.simple
        for one in wished:
            place = template.place(one)
            if simple is not None and place.may_have(simple.key):
                domains = self.topology.ranked(simple.group, place.on(simple.key), simple.own)
                yield from template.narrow_in(one, simple.key, domains)
                continue
            bound = [bond.group for bond in aim.bonds.domains]
            for choice in self.topology.choices(bound, pods.selecting, place):
                chosen = template.narrow(one, choice)
                if chosen is not None:
                    yield chosen

    def _version(self, aim: Aim) -> int:
        groups, watched = self.topology.groups, aim.bonds.watched
        if len(watched) == 1:
            return groups[watched[0]].version
        return sum([groups[number].version for number in watched])

    def _most(self, host: str, aim: Aim, count: int) -> int:
        """Answer how many of *count* pods may be on *host*, other pods considered, before it is looked at again."""
        if aim.bonds.is_moving:
            count = 1
        groups = self.topology.groups
        for bond in aim.bonds.hosts:
            count = min(count, groups[bond.group].room_on(host, bond.own, counts=bond.counts))
        for bond in aim.bonds.domains:
            group = groups[bond.group]
            if group.rule.kind == "affinity" and bond.own and not group.is_taken():
                count = min(count, 1)
        return count
