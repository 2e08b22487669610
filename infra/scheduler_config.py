"""What is refused of the scheduler's configuration before it is deployed: what would end every cycle of `provision`.

It is written as Karpenter has it, in JSON or YAML, and deployed as one line of JSON: functions have no reader of YAML.
"""

from typing import Annotated, Final, Literal

import msgspec

KNOB: Final = "joiner:scheduler-config"
Count = Annotated[int, msgspec.Meta(ge=1)]
Policy = Literal["Honor", "Ignore"]


class Constraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How pods that do not say it themselves are spread."""

    max_skew: Count
    topology_key: Annotated[str, msgspec.Meta(min_length=1, max_length=316)]
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = None
    node_affinity_policy: Policy = "Honor"
    node_taints_policy: Policy = "Ignore"


class Spread(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Of pods over nodes."""

    default_constraints: tuple[Constraint, ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All that is read of it."""

    pod_topology_spread: Spread = Spread()


def as_json(config: object) -> str:
    """Answer *config*, a map or its text, as one line of JSON.

    >>> as_json("podTopologySpread: {defaultConstraints: []}")
    '{"podTopologySpread":{"defaultConstraints":[]}}'

    Raises:
        ValueError: it is neither JSON nor YAML, or no map.
    """
    try:
        read = msgspec.convert(_decoded(config) if isinstance(config, str) else config, dict[str, object])
    except msgspec.ValidationError:
        raise ValueError(f"{KNOB} is no map: want podTopologySpread: {{...}}") from None
    except (msgspec.DecodeError, ImportError) as error:
        raise ValueError(f"{KNOB} is neither JSON nor YAML: {error}") from None
    return msgspec.json.encode(read).decode()


def check_scheduler_config(text: str) -> None:
    """Refuse what functions could not read.

    Raises:
        ValueError: the message names the field.
    """
    try:
        read = msgspec.json.decode(text or "{}", type=Config)
    except msgspec.DecodeError as error:
        raise ValueError(f"{KNOB}: {error}") from None
    pairs = [(one.topology_key, one.when_unsatisfiable) for one in read.pod_topology_spread.default_constraints]
    for key, reaction in pairs:
        if pairs.count((key, reaction)) > 1:
            raise ValueError(f"{KNOB}: {key} with {reaction} is there twice: want it once")


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return msgspec.yaml.decode(text)
