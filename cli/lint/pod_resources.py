"""Lint rules about the resource requests and limits of containers."""

from collections.abc import Iterator

from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.field_reader import choose_fix
from cli.convert.reading.fixes import get_value_at, suggest_amount
from cli.convert.reading.remarks import FieldPath
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.units import is_quantity

CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")


def lint_pod_resources(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check that all amounts are Kubernetes quantities: the API server rejects others."""
    for path in _list_resource_paths(source_object):
        amounts = get_value_at(source_object.value, path)
        for name, value in amounts.items() if isinstance(amounts, dict) else ():
            if isinstance(value, bool | list | dict) or not is_quantity(str(value)):
                message = f"{value!r} is not a quantity: {choose_fix(value, suggest_amount(str(name), value))}"
                yield build_finding(source_object, "error", (*path, name), message)


def _list_resource_paths(source_object: SourceObject) -> Iterator[FieldPath]:
    spec_path: FieldPath = (*POD_PATH_BY_KIND[source_object.value["kind"]], "spec")
    for holder_field in CONTAINER_FIELDS:
        containers = get_value_at(source_object.value, (*spec_path, holder_field))
        for index in range(len(containers)) if isinstance(containers, list) else ():
            yield from ((*spec_path, holder_field, index, "resources", field) for field in ("requests", "limits"))
    yield from ((*spec_path, "resources", field) for field in ("requests", "limits"))
