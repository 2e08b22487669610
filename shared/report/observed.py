"""What a cycle heard of the outside between two of its decisions, as a replay needs it: kept with the snapshot.

Never in it: user data. A launch template is named after its whole content, so that a name tells whether it was another.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from shared.launch.digest import digest
from shared.launch.ledger import Book
from shared.launch.nodeclass import Found
from shared.launch.subnets import Addresses
from shared.model.action import Action, LaunchInstances
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetResult, LaunchTemplate, LaunchTemplateConfig
from shared.model.nodes import NodeClaim
from shared.model.overlays import NodeOverlay


class Round(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look at the claims that want an instance, and what EC2 said to what was asked for them."""

    at: datetime
    claims: tuple[NodeClaim, ...] = ()
    """Those that were not there one look before, or otherwise; the first is after the snapshot."""
    gone: tuple[str, ...] = ()
    unavailable: tuple[UnavailableOffering, ...] | None = None
    """None: what it was one look before."""
    launch_groups: tuple[LaunchGroup, ...] = ()
    books: tuple[Book, ...] = ()
    addresses: Addresses | None = None
    overtaken: tuple[str, ...] = ()
    """Launch groups that were not sent: another function spent the room."""
    answers: tuple[tuple[str, FleetResult], ...] = ()
    """By launch group."""
    written: tuple[LaunchGroup, ...] = ()
    """Those of the answered ones that had been written down before, and otherwise: what was written was sent."""


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `lifecycle` asked while it decided."""

    spared: tuple[str, ...] = ()
    """Instances that seemed to be nobody's, and may be somebody's."""
    launch_groups: tuple[LaunchGroup, ...] = ()
    templates: tuple[LaunchTemplate, ...] | None = None
    """What they are known by; None: not asked, or no answer."""
    is_tidying: bool = False
    """It was time to look for those that nobody uses."""
    overlays: tuple[NodeOverlay, ...] = ()
    overlaid_at: datetime | None = None
    catalogue: str = ""
    """Key of the catalogue that the overlays were tried on."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `catalog` asked."""

    found: tuple[tuple[str, Found], ...] = ()
    """By node class."""
    profile: str = ""


def without_user_data(group: LaunchGroup) -> LaunchGroup:
    """Answer *group*; its templates keep their names, and nothing of what their machines run."""
    return replace(group, templates=tuple(replace(one, user_data="") for one in group.templates))


def untold(action: Action) -> Action:
    """Answer *action* as it may be written down for people: without user data."""
    if not isinstance(action, LaunchInstances):
        return action
    return replace(action, group=without_user_data(action.group))


def renamed(group: LaunchGroup) -> LaunchGroup:
    """Answer *group*, its templates named after what is kept of them: two launches are compared so."""
    bare = without_user_data(group)
    names = {one.name: digest(replace(one, name="")) for one in bare.templates}
    templates = (replace(one, name=names[one.name]) for one in bare.templates)
    configs = (_named(one, names.get(one.launch_template_name, "")) for one in bare.request.configs)
    return replace(
        bare,
        templates=tuple(sorted(templates, key=lambda one: one.name)),
        request=replace(bare.request, configs=tuple(sorted(configs, key=_config))),
    )


def _config(one: LaunchTemplateConfig) -> tuple[str, list[tuple[str, str]]]:
    """Answer what orders configs: two may have one name once what their machines run is left out."""
    return one.launch_template_name, [(each.instance_type, each.zone) for each in one.overrides]


def _named(config: LaunchTemplateConfig, name: str) -> LaunchTemplateConfig:
    return replace(config, launch_template_name=name)


def known_by(templates: Iterable[LaunchTemplate]) -> tuple[LaunchTemplate, ...]:
    """Answer of *templates* what says whether they are used: name, tags and age."""
    return tuple(
        LaunchTemplate(name=one.name, image_id="", user_data="", tags=one.tags, created_at=one.created_at)
        for one in templates
    )


def outlines(groups: Iterable[LaunchGroup]) -> tuple[LaunchGroup, ...]:
    """Answer of *groups* whose they are, when they were sent and whether EC2 answered: what `lifecycle` reads."""
    return tuple(
        replace(
            one,
            request=replace(one.request, configs=(), tags=()),
            templates=known_by(one.templates),
            result=None if one.result is None else replace(one.result, errors=()),
        )
        for one in groups
    )
