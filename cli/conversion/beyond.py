"""What no definition checks, and nobody can have meant: rules of the planner, schedules, ARNs, misspelt labels."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cli.conversion.accepted import complaints
from cli.conversion.keys import meant
from cli.conversion.kubelets import kubelet_faults
from cli.conversion.remarks import Path
from cli.conversion.remedies import several, whole
from shared.disruption.cron import plain_schedule
from shared.snapshot.documents import cluster_from_documents

Object = dict[str, Any]
_GROUP: Final = "karpenter.k8s.aws"
_CLASS: Final = "EC2NodeClass"
_WITH_SECONDS: Final = 6
"""Fields of a schedule as some other programs read it."""
_NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)
_ARN: Final = re.compile(r"arn:[\w-]+:iam::[^:]*:(?:role|instance-profile)/(?:.*/)?([^/]+)")
_FIELD: Final = re.compile(r"(spec[\w.\[\]/-]*(?:\[[^\]]*\])?): ")


def name_in(arn: str) -> str:
    """Answer the name at the end of the ARN of a role or an instance profile; "" if it is none.

    >>> name_in("arn:aws:iam::123456789012:role/eks/nodes"), name_in("nodes")
    ('nodes', '')
    """
    found = _ARN.fullmatch(arn)
    return "" if found is None else found[1]


def faults(value: Object) -> Iterator[tuple[Path, str]]:
    """Iterate over what is wrong with *value*, of v1, that an API server would take: where, why and a remedy."""
    if value["kind"] == "EC2NodeClass":
        yield from _arns(value)
        yield from _class_faults(value)
    if value["kind"] != "NodePool":
        return
    yield from _reference(value)
    for place, budget in enumerate(_listed(value, "spec", "disruption", "budgets")):
        yield from _schedule(budget, ("spec", "disruption", "budgets", place, "schedule"))
    for place, one in enumerate(_listed(value, "spec", "template", "spec", "requirements")):
        yield from _requirement(one, ("spec", "template", "spec", "requirements", place))


def unplannable(value: Object) -> list[str]:
    """Answer why *value*, a NodePool that an API server would take, is left out of all plans, with what to do."""
    if value["kind"] != "NodePool" or complaints(value):
        return []
    return [problem.message for problem in cluster_from_documents([value], _NOW).problems]


def field_of(message: str) -> str:
    """Answer the field that a sentence begins with; "" if with none.

    >>> field_of("spec.weight: 0 is not between 1 and 100; write one that is")
    'spec.weight'
    """
    found = _FIELD.match(message)
    return "" if found is None else found[1]


def _arns(value: Object) -> Iterator[tuple[Path, str]]:
    spec = value.get("spec")
    for field in ("role", "instanceProfile"):
        text = spec.get(field) if isinstance(spec, Mapping) else None
        if isinstance(text, str) and (name := name_in(text)):
            yield ("spec", field), f"is an ARN, and a name is asked for: write {name}"


def _class_faults(value: Object) -> Iterator[tuple[Path, str]]:
    spec = value.get("spec")
    own = spec.get("kubelet") if isinstance(spec, Mapping) else None
    for path, why in kubelet_faults(own) if isinstance(own, Mapping) else ():
        yield ("spec", "kubelet", *path), why
    for place, one in enumerate(_listed(value, "spec", "blockDeviceMappings")):
        ebs = one.get("ebs")
        size = ebs.get("volumeSize") if isinstance(ebs, Mapping) else None
        if isinstance(size, int):
            path = ("spec", "blockDeviceMappings", place, "ebs", "volumeSize")
            yield path, f"is {size} bytes, less than 1Gi: write {size}Gi, if that is meant"


def _reference(value: Object) -> Iterator[tuple[Path, str]]:
    path = ("spec", "template", "spec", "nodeClassRef")
    at: Any = value
    for key in path:
        at = at.get(key) if isinstance(at, Mapping) else None
    if isinstance(at, Mapping) and at.get("group") == _GROUP and at.get("kind") not in (None, "", _CLASS):
        yield (*path, "kind"), f"{_GROUP} has no {at['kind']}: write {_CLASS}"


def _schedule(budget: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    text = budget.get("schedule")
    try:
        plain_schedule(text if isinstance(text, str) else "@daily")
    except ValueError as error:
        yield path, f"{error}: {_five(str(text))}"


def _five(text: str) -> str:
    """Answer what to write for *text*, which is no schedule."""
    fields = text.split()
    if fields and fields[0].startswith(("TZ=", "CRON_TZ=")):
        return f'write it in UTC, without a zone: "{" ".join(fields[1:])}" is meant there'
    if len(fields) == _WITH_SECONDS:
        return f'write it without seconds: "{" ".join(fields[1:])}"'
    return 'write five fields, as "0 9 * * mon-fri", or @daily'


def _requirement(one: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    key, values = str(one.get("key")), one.get("values")
    if one and "key" not in one:
        yield path, f"names no key: {whole([str(name) for name in one], one.get)}"
    if close := meant(key):
        yield (*path, "key"), f"no machine has a label {key}: did you mean {close}?"
    for place, text in enumerate(values if isinstance(values, list) else ()):
        if isinstance(text, str) and ("," in text or " " in text.strip()):
            yield (*path, "values", place), f"is one text with several values, {text!r}: write values: {several(text)}"


def _listed(value: Any, *keys: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [one if isinstance(one, Mapping) else {} for one in value] if isinstance(value, list) else []
