"""Policies that a week is simulated with: settings of the deployment, and changes of the NodePools.

A policy is data. To compare another setting, add a line to `POLICIES`, or a curve to `CURVES`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import msgspec

from shared.cycles.setup import options_from_settings
from shared.errors import Invalid
from shared.settings import ChosenSettings

EVICTION_PRICE_SETTING: Final = "eviction-price-usd"


class SoakPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of settings."""

    name: str
    label: str = ""
    """For the plot and the table; "" for the name."""
    settings: dict[str, str] = {}
    """Settings in addition to the defaults of the deployment with active disruption."""
    consolidation_policy: str = ""
    """Of all NodePools; "" keeps the world's."""
    excluded_capacity_type: str = ""
    """NodePools with several capacity types do not allow it."""
    annotations: tuple[tuple[str, str, str], ...] = ()
    """NodePool (``*`` for all), key and value."""
    has_payback: bool = True
    """Whether a replacement must pay back the time in which both nodes run."""
    curve: str = ""
    """Name of the curve that this policy is a point of; "" if none."""

    @property
    def title(self) -> str:
        """The label, or else the name."""
        return self.label or self.name

    def build_settings(self) -> dict[str, str]:
        """Return the settings of this policy, if all of them exist.

        Raises:
            Invalid: a setting does not exist.
        """
        known_settings = read_setting_names()
        for key in self.settings:
            if key not in known_settings:
                raise Invalid(f"policy {self.name}: the functions have no setting {key}")
        return self.settings


POLICIES: Final[Mapping[str, SoakPolicy]] = {
    policy.name: policy
    for policy in (
        SoakPolicy(name="default", label="Joiner, default"),
        SoakPolicy(name="never", label="no consolidation", settings={"disruption-paused": "Underutilized"}),
        SoakPolicy(
            name="karpenter",
            label="Karpenter's rule",
            settings={EVICTION_PRICE_SETTING: "0"},
            consolidation_policy="WhenEmptyOrUnderutilized",
            has_payback=False,
        ),
        SoakPolicy(
            name="balanced",
            label="Balanced",
            settings={EVICTION_PRICE_SETTING: "0"},
            consolidation_policy="Balanced",
            has_payback=False,
        ),
        SoakPolicy(name="commitments", label="plans with commitments", settings={"commitments": "account"}),
        SoakPolicy(name="on-demand", label="on-demand only", excluded_capacity_type="spot"),
    )
}
CURVES: Final[Mapping[str, str]] = {"price": EVICTION_PRICE_SETTING}
"""Settings of which several values are compared, by the name in `--policy NAME=VALUE,VALUE`."""
CURVE_LABELS: Final[Mapping[str, str]] = {"price": "Joiner, by eviction price"}


def parse_policies(text: str) -> tuple[SoakPolicy, ...]:
    """Parse names of policies and points of curves.

    >>> [policy.name for policy in parse_policies("default,price=0.001,0.01,never")]
    ['default', 'price=0.001', 'price=0.01', 'never']

    Raises:
        ValueError: there is no such policy.
    """
    policies: list[SoakPolicy] = []
    curve = ""
    for part in text.split(","):
        name, separator, value = part.strip().partition("=")
        if separator:
            curve = name
        elif curve and _is_number(name):
            value = name
        else:
            curve = ""
        if not curve and name not in POLICIES:
            raise ValueError(f"policy {name}: write {', '.join(POLICIES)} or {', '.join(CURVES)}=VALUE,VALUE")
        policies.append(_build_point(curve, value) if curve else POLICIES[name])
    return tuple(policies)


def with_options(
    policy: SoakPolicy, settings: Mapping[str, str], annotations: Iterable[tuple[str, str, str]]
) -> SoakPolicy:
    """Return *policy* with more *settings* and *annotations*, which also change its name."""
    annotations = tuple(annotations)
    words = [f"{key}={value}" for key, value in sorted(settings.items())]
    words += [f"{pool}:{key.rpartition('/')[2]}={value}" for pool, key, value in annotations]
    if not words:
        return policy
    suffix = " ".join(words)
    return msgspec.structs.replace(
        policy,
        name=f"{policy.name} {suffix}",
        label=f"{policy.title}, {suffix}",
        settings={**policy.settings, **settings},
        annotations=(*policy.annotations, *annotations),
    )


@contextmanager
def apply_payback(policy: SoakPolicy) -> Iterator[None]:
    """Remove the payback period in this process as long as the context is entered, unless *policy* has one."""
    module, constant_name = options_from_settings, "NODE_OVERLAP_PERIOD"
    overlap: timedelta = getattr(module, constant_name)
    setattr(module, constant_name, overlap if policy.has_payback else timedelta())
    try:
        yield
    finally:
        setattr(module, constant_name, overlap)


def read_setting_names() -> frozenset[str]:
    """Return the names of all settings that the functions read."""
    return frozenset(field.name.replace("_", "-") for field in msgspec.structs.fields(ChosenSettings))


def _build_point(curve: str, value: str) -> SoakPolicy:
    if curve not in CURVES or not _is_number(value):
        raise ValueError(f"policy {curve}={value}: write {', '.join(CURVES)}=NUMBER,NUMBER")
    return SoakPolicy(
        name=f"{curve}={value}",
        label=f"{CURVES[curve]}={value}",
        settings={CURVES[curve]: value},
        curve=curve,
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
