"""Validation of the scheduler configuration before a deployment.

An invalid configuration would make every run of `provision` fail. The configuration is written as for Karpenter, in
JSON or YAML, and deployed as one line of JSON, because the functions have no YAML parser.
"""

from typing import Annotated, Final, Literal

import msgspec

CONTEXT_KEY: Final = "scheduler-config"
PositiveCount = Annotated[int, msgspec.Meta(ge=1)]
SpreadPolicy = Literal["Honor", "Ignore"]


class DefaultConstraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A topology spread constraint for pods that have none."""

    max_skew: PositiveCount
    topology_key: Annotated[str, msgspec.Meta(min_length=1, max_length=316)]
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = None
    node_affinity_policy: SpreadPolicy = "Honor"
    node_taints_policy: SpreadPolicy = "Ignore"


class PodTopologySpreadOption(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The default topology spread of pods."""

    default_constraints: tuple[DefaultConstraint, ...] = ()


class SchedulerConfigOption(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The fields of the configuration that are read."""

    pod_topology_spread: PodTopologySpreadOption = PodTopologySpreadOption()


def encode_scheduler_config(config: object) -> str:
    """Encode *config*, a map or its text, as one line of JSON.

    >>> encode_scheduler_config("podTopologySpread: {defaultConstraints: []}")
    '{"podTopologySpread":{"defaultConstraints":[]}}'

    Raises:
        ValueError: *config* is neither JSON nor YAML, or not a map.
    """
    try:
        config_map = msgspec.convert(_decode_config(config) if isinstance(config, str) else config, dict[str, object])
    except msgspec.ValidationError:
        raise ValueError(f"{CONTEXT_KEY} is not a map: use podTopologySpread: {{...}}") from None
    except (msgspec.DecodeError, ImportError) as error:
        raise ValueError(f"{CONTEXT_KEY} is neither JSON nor YAML: {error}") from None
    return msgspec.json.encode(config_map).decode()


def check_scheduler_config(text: str) -> None:
    """Check that the functions can parse *text*.

    Raises:
        ValueError: the message names the field.
    """
    try:
        config = msgspec.json.decode(text or "{}", type=SchedulerConfigOption)
    except msgspec.DecodeError as error:
        raise ValueError(f"{CONTEXT_KEY}: {error}") from None
    constraint_keys = [
        (constraint.topology_key, constraint.when_unsatisfiable)
        for constraint in config.pod_topology_spread.default_constraints
    ]
    for key, reaction in constraint_keys:
        if constraint_keys.count((key, reaction)) > 1:
            raise ValueError(f"{CONTEXT_KEY}: {key} with {reaction} is there twice: remove one of them")


def _decode_config(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.yaml.decode(text)
