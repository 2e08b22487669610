"""What is stored of launches and launch templates for a replay: never user data."""

from collections.abc import Iterable

from msgspec.structs import replace

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.digest import compute_digest
from shared.model.decisions.action import Action, LaunchInstances
from shared.model.ec2.fleet import LaunchTemplateConfig
from shared.model.ec2.launch_template import LaunchTemplate


def without_user_data(group: LaunchGroup) -> LaunchGroup:
    """Return *group* without the user data of its launch templates; they keep their names."""
    return replace(group, templates=tuple(replace(template, user_data="") for template in group.templates))


def redact_action(action: Action) -> Action:
    """Return *action* without user data, as it is written to the journal."""
    if not isinstance(action, LaunchInstances):
        return action
    return replace(action, group=without_user_data(action.group))


def normalize_template_names(group: LaunchGroup) -> LaunchGroup:
    """Return *group* with templates named after their stored content, so that two launches can be compared."""
    bare = without_user_data(group)
    names = {template.name: compute_digest(replace(template, name="")) for template in bare.templates}
    templates = (replace(template, name=names[template.name]) for template in bare.templates)
    configs = (
        replace(config, launch_template_name=names.get(config.launch_template_name, ""))
        for config in bare.request.configs
    )
    return replace(
        bare,
        templates=tuple(sorted(templates, key=lambda template: template.name)),
        request=replace(bare.request, configs=tuple(sorted(configs, key=_build_config_key))),
    )


def _build_config_key(config: LaunchTemplateConfig) -> tuple[str, list[tuple[str, str]]]:
    """Return the sort key of a config: without user data, two configs can have the same template name."""
    return config.launch_template_name, [(override.instance_type, override.zone) for override in config.overrides]


def strip_templates(templates: Iterable[LaunchTemplate]) -> tuple[LaunchTemplate, ...]:
    """Return *templates* with only the fields that tell whether they are used: name, tags and age."""
    return tuple(
        LaunchTemplate(
            name=template.name, image_id="", user_data="", tags=template.tags, created_at=template.created_at
        )
        for template in templates
    )


def strip_launch_groups(groups: Iterable[LaunchGroup]) -> tuple[LaunchGroup, ...]:
    """Return *groups* with only what `lifecycle` reads: owner, time, and whether EC2 responded."""
    return tuple(
        replace(
            group,
            request=replace(group.request, configs=(), tags=()),
            templates=strip_templates(group.templates),
            result=None if group.result is None else replace(group.result, errors=()),
        )
        for group in groups
    )
