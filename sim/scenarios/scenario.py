"""Scenarios: the steps of a simulation and their expected results, as YAML.

    name: burst
    says: what this is about, in a sentence
    managed: {instanceType: m5.large, labels: {}}      # a node of a managed node group; leave it out for none
    setUp: [manifests, applied before the first act]
    acts:
      - name: five pods
        do:                                            # in order, at the start of the act
          - scale: {kind: Deployment, name: web, replicas: 5}
          - apply: {…a manifest…}
          - delete: {kind: NodePool, name: default}
          - fault: {kind: interruptSpot, node: busiest}
        within: 5m                                     # within this time all of this must be true …
        expect: {running: 5, pending: 0, nodes: 1}
        hold: 1m                                       # … and still be true after this time

Numbers in `expect` are exact, or a text with a comparison: ``">= 2"``, ``"< 0.5"``.
"""

import operator
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

from shared.model.core.units import parse_duration

MEASURE_DESCRIPTIONS: Final = {
    "running": "running and ready pods in the namespace default",
    "pending": "pods in the namespace default that do not run",
    "nodes": "Nodes launched by Joiner",
    "managedNodes": "Nodes of managed node groups",
    "launched": "instances started during the act",
    "terminated": "instances terminated during the act",
    "evicted": "pods evicted during the act",
    "onManaged": "pods of the namespace default on nodes of managed node groups",
    "largestVcpus": "vCPUs of the largest managed node",
    "smallestVcpus": "vCPUs of the smallest managed node",
    "usdPerHour": "synthetic USD per hour of Joiner's instances",
    "claims": "NodeClaims",
    "problems": "distinct problems that the functions reported during the act",
    "failedCalls": "function calls that failed during the act",
}
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "!=": operator.ne,
    "==": operator.eq,
}
_COMPARISON: Final = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?)\s*")


class ManagedNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A node of a managed node group."""

    instance_type: str = "m5.large"
    labels: dict[str, str] = {}


class ScaleStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kubectl scale`."""

    name: str
    replicas: int
    kind: str = "Deployment"
    namespace: str = "default"


class DeleteStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object to delete."""

    kind: str
    name: str
    namespace: str = "default"


class FaultStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A fault that a step injects.

    interruptSpot, rebalance, kill, maintenance: affect the instance of *node* (a name, or busiest, newest, oldest).
    noCapacity, capacity: affect *instanceType* (empty: all types), *zone* (empty: all) and *capacityType*. apiDown,
    ec2Throttles: last for *lasts*. badMessage: sends *text* to the interruption queue. halfCatalogue: the second half
    of the newest catalog is lost.
    """

    kind: Literal[
        "interruptSpot",
        "rebalance",
        "kill",
        "maintenance",
        "noCapacity",
        "capacity",
        "apiDown",
        "ec2Throttles",
        "badMessage",
        "halfCatalogue",
    ]
    node: str = "busiest"
    instance_type: str = ""
    zone: str = ""
    capacity_type: Literal["", "on-demand", "spot"] = ""
    lasts: str = "1m"
    text: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One action; exactly one field is set."""

    scale: ScaleStep | None = None
    apply: dict[str, Any] | None = None
    delete: DeleteStep | None = None
    fault: FaultStep | None = None
    wait: str = ""


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps and their expected results."""

    name: str
    do: tuple[Step, ...] = ()
    time_limit: str = msgspec.field(default="5m", name="within")
    expect: dict[str, float | str] = {}
    hold: str = "0s"
    says: str = ""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A sequence of acts in one world."""

    name: str
    acts: tuple[Act, ...]
    says: str = ""
    seed: int = 0
    managed: ManagedNode | None = None
    set_up: tuple[dict[str, Any], ...] = ()


class ScenarioError(ValueError):
    """A scenario that cannot be run; the message names the file, the act and the field."""


def read_scenario(path: Path) -> Scenario:
    """Read and validate the scenario in the file at *path*.

    Raises:
        ScenarioError: the file cannot be read, or is not a valid scenario.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8: {error}") from error
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        scenario = msgspec.convert(document, Scenario)
        _check_scenario(scenario)
    except (msgspec.ValidationError, ValueError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    return scenario


def meets_expectation(expected: float | str, measured: float) -> bool:
    """Return whether *measured* is the expected number or satisfies the expected comparison.

    >>> meets_expectation(2, 2.0), meets_expectation("> 2", 2.0), meets_expectation("<= 0.5", 0.4)
    (True, False, True)

    Raises:
        ValueError: *expected* is neither a number nor a comparison.
    """
    if isinstance(expected, int | float):
        return measured == expected
    match = _COMPARISON.fullmatch(expected)
    if match is None:
        raise ValueError(f"{expected!r} is no number and no comparison such as '>= 2'")
    return _COMPARISONS[match[1]](measured, float(match[2]))


def _check_scenario(scenario: Scenario) -> None:
    if not scenario.acts:
        raise ValueError("acts: there must be one at least")
    for number, manifest in enumerate(scenario.set_up, 1):
        _check_manifest(f"setUp: manifest {number}", manifest)
    for act in scenario.acts:
        location = f"act {act.name!r}"
        for number, step in enumerate(act.do, 1):
            _check_step(f"{location}: step {number}", step)
        for field, text in (("within", act.time_limit), ("hold", act.hold)):
            _check_duration(f"{location}: {field}", text)
        _check_expectations(location, act.expect)


def _check_step(location: str, step: Step) -> None:
    if sum(value not in (None, "") for value in msgspec.structs.astuple(step)) != 1:
        raise ValueError(f"{location} must be one of scale, apply, delete, fault, wait")
    if step.apply is not None:
        _check_manifest(f"{location}: apply", step.apply)
    if step.fault is not None:
        _check_duration(f"{location}: fault: lasts", step.fault.lasts)
    _check_duration(f"{location}: wait", step.wait or "0s")


def _check_manifest(location: str, manifest: Mapping[str, Any]) -> None:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for field, value in (("kind", manifest.get("kind")), ("metadata.name", name)):
        if not (value and isinstance(value, str)):
            raise ValueError(f"{location}: {field}: a manifest must have one")


def _check_expectations(location: str, expect: Mapping[str, float | str]) -> None:
    for name, expected in expect.items():
        if name not in MEASURE_DESCRIPTIONS:
            raise ValueError(
                f"{location}: expect: {name!r} is not measured; known are {', '.join(MEASURE_DESCRIPTIONS)}"
            )
        try:
            meets_expectation(expected, 0.0)
        except ValueError as error:
            raise ValueError(f"{location}: expect: {name}: {error}") from None


def _check_duration(location: str, text: str) -> timedelta:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{location}: {error}; write it as 90s or 1m30s") from None
    if duration < timedelta():
        raise ValueError(f"{location}: {text!r} is less than nothing")
    return duration
