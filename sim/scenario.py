"""Scenarios: what happens in a play, and what must come of it, as YAML.

    name: burst
    says: what this is about, in a sentence
    managed: {instanceType: m5.large, labels: {}}      # a node that is not ours; leave it out for none
    setUp: [manifests, applied before the first act]
    acts:
      - name: five pods
        do:                                            # in order, at the beginning of the act
          - scale: {kind: Deployment, name: web, replicas: 5}
          - apply: {…a manifest…}
          - delete: {kind: NodePool, name: default}
          - fault: {kind: interruptSpot, node: busiest}
        within: 5m                                     # by then all of this must hold …
        expect: {running: 5, pending: 0, nodes: 1}
        hold: 1m                                       # … and still hold after so long

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

from shared.model.units import parse_duration

MEASURES: Final = {
    "running": "pods that run and are ready, in the namespace default",
    "pending": "pods there that do not run",
    "nodes": "Nodes that are ours",
    "managedNodes": "Nodes that are not ours",
    "launched": "instances started during the act",
    "terminated": "instances ended during the act",
    "evicted": "pods evicted during the act",
    "onManaged": "pods of the namespace default on nodes that are not ours",
    "largestVcpus": "vCPUs of the largest node of ours",
    "smallestVcpus": "vCPUs of the smallest node of ours",
    "costPerHour": "synthetic USD per hour of our instances",
    "claims": "NodeClaims",
    "problems": "different things that the functions named as wrong during the act",
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


class Managed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A node of a managed node group."""

    instance_type: str = "m5.large"
    labels: dict[str, str] = {}


class Scale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kubectl scale`."""

    name: str
    replicas: int
    kind: str = "Deployment"
    namespace: str = "default"


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object to delete."""

    kind: str
    name: str
    namespace: str = "default"


class Fault(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something that goes wrong.

    interruptSpot, rebalance, kill, maintenance: of the instance of *node* (a name, or busiest, newest, oldest).
    noCapacity, capacity: of *instanceType* (empty: every type), *zone* (empty: all) and *capacityType*.
    apiDown, ec2Throttles: for *lasts*. badMessage: *text* into the interruption queue.
    halfCatalogue: the newest catalogue loses its second half.
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
    """One thing that is done; exactly one field is set."""

    scale: Scale | None = None
    apply: dict[str, Any] | None = None
    delete: Target | None = None
    fault: Fault | None = None
    wait: str = ""


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps, and what must come of them."""

    name: str
    do: tuple[Step, ...] = ()
    within: str = "5m"
    expect: dict[str, float | str] = {}
    hold: str = "0s"
    says: str = ""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One play."""

    name: str
    acts: tuple[Act, ...]
    says: str = ""
    seed: int = 0
    managed: Managed | None = None
    set_up: tuple[dict[str, Any], ...] = ()


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message names the file, the act and the field."""


def read_scenario(path: Path) -> Scenario:
    """Read and check the scenario in the file at *path*.

    Raises:
        ScenarioError: it cannot be read, or says something that nobody understands.
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
        _check(scenario)
    except (msgspec.ValidationError, ValueError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    return scenario


def holds(wanted: float | str, measured: float) -> bool:
    """Whether *measured* is as wanted.

    >>> holds(2, 2.0), holds("> 2", 2.0), holds("<= 0.5", 0.4)
    (True, False, True)

    Raises:
        ValueError: *wanted* is no number and no comparison.
    """
    if isinstance(wanted, int | float):
        return measured == wanted
    matched = _COMPARISON.fullmatch(wanted)
    if matched is None:
        raise ValueError(f"{wanted!r} is no number and no comparison such as '>= 2'")
    return _COMPARISONS[matched[1]](measured, float(matched[2]))


def _check(scenario: Scenario) -> None:
    if not scenario.acts:
        raise ValueError("acts: there must be one at least")
    for number, manifest in enumerate(scenario.set_up, 1):
        _check_manifest(f"setUp: manifest {number}", manifest)
    for act in scenario.acts:
        where = f"act {act.name!r}"
        for number, step in enumerate(act.do, 1):
            _check_step(f"{where}: step {number}", step)
        for field, text in (("within", act.within), ("hold", act.hold)):
            _duration(f"{where}: {field}", text)
        _check_expectations(where, act.expect)


def _check_step(where: str, step: Step) -> None:
    if sum(value not in (None, "") for value in msgspec.structs.astuple(step)) != 1:
        raise ValueError(f"{where} must be one of scale, apply, delete, fault, wait")
    if step.apply is not None:
        _check_manifest(f"{where}: apply", step.apply)
    if step.fault is not None:
        _duration(f"{where}: fault: lasts", step.fault.lasts)
    _duration(f"{where}: wait", step.wait or "0s")


def _check_manifest(where: str, manifest: Mapping[str, Any]) -> None:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for field, value in (("kind", manifest.get("kind")), ("metadata.name", name)):
        if not (value and isinstance(value, str)):
            raise ValueError(f"{where}: {field}: a manifest must have one")


def _check_expectations(where: str, expect: Mapping[str, float | str]) -> None:
    for name, wanted in expect.items():
        if name not in MEASURES:
            raise ValueError(f"{where}: expect: {name!r} is not measured; known are {', '.join(MEASURES)}")
        try:
            holds(wanted, 0.0)
        except ValueError as error:
            raise ValueError(f"{where}: expect: {name}: {error}") from None


def _duration(where: str, text: str) -> timedelta:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}; write it as 90s or 1m30s") from None
    if duration < timedelta():
        raise ValueError(f"{where}: {text!r} is less than nothing")
    return duration
