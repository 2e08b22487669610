"""Lint rules about gangs whose pods start after each other: they never all exist before the first ones run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cli.convert.reading.fixes import get_value_at
from cli.convert.reading.remarks import FieldPath, format_path
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, build_finding
from shared.model.core.labels import GANG, GANG_SIZE

_ANNOTATIONS: Final[FieldPath] = ("metadata", "annotations")
_WORKER_TEMPLATES: Final[FieldPath] = ("spec", "leaderWorkerTemplate")
_JOBS: Final[FieldPath] = ("spec", "replicatedJobs")
_JOB_ORDER: Final[FieldPath] = ("spec", "startupPolicy", "startupPolicyOrder")
_JOB_POD_TEMPLATE: Final[FieldPath] = ("template", "spec", "template")


def lint_gang_start(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check whether the pods of a LeaderWorkerSet or a JobSet can exist at the same time."""
    if source_object.value["kind"] == "LeaderWorkerSet":
        yield from _lint_leader_worker_set(source_object)
    elif source_object.value["kind"] == "JobSet":
        yield from _lint_job_set(source_object)


def _lint_leader_worker_set(source_object: SourceObject) -> Iterator[LintFinding]:
    path: FieldPath = ("spec", "startupPolicy")
    if get_value_at(source_object.value, path) != "LeaderReady" or _read_group_size(source_object) == 1:
        return
    templates = [
        (*_WORKER_TEMPLATES, name)
        for name in ("leaderTemplate", "workerTemplate")
        if get_value_at(source_object.value, (*_WORKER_TEMPLATES, name)) is not None
    ]
    problem = "the workers of a group are created only when its leader is ready"
    yield from _report_gang(source_object, path, templates, problem, "write LeaderCreated")


def _read_group_size(source_object: SourceObject) -> object:
    return get_value_at(source_object.value, (*_WORKER_TEMPLATES, "size"))


def _lint_job_set(source_object: SourceObject) -> Iterator[LintFinding]:
    jobs = get_value_at(source_object.value, _JOBS)
    jobs = jobs if isinstance(jobs, list) else []
    templates = [(*_JOBS, number, *_JOB_POD_TEMPLATE) for number in range(len(jobs))]
    if len(jobs) > 1 and get_value_at(source_object.value, _JOB_ORDER) == "InOrder":
        problem = "each Job is created only when the Jobs before it are ready"
        yield from _report_gang(source_object, _JOB_ORDER, templates, problem, "write AnyOrder")
        return
    for number, job in enumerate(jobs):
        if isinstance(job, dict) and job.get("dependsOn"):
            problem = "the Job is created only when the Jobs that it depends on are ready or complete"
            path: FieldPath = (*_JOBS, number, "dependsOn")
            yield from _report_gang(source_object, path, templates, problem, "remove it")
            return


def _report_gang(
    source_object: SourceObject, path: FieldPath, templates: Sequence[FieldPath], problem: str, other_fix: str
) -> Iterator[LintFinding]:
    """Yield a finding at *path* if pods of *templates*, which start after each other, are one gang."""
    annotations_by_template = {template: _read_annotations(source_object, template) for template in templates}
    members = [template for template, values in annotations_by_template.items() if not _has_own_gang(values)]
    is_sized_alone = len(members) == 1 < len(templates) and GANG_SIZE in annotations_by_template[members[0]]
    if not members or is_sized_alone:
        return
    places = " and ".join(format_path((*template, *_ANNOTATIONS)) for template in members)
    message = (
        f"{problem}, so the pods of the gang never all exist: if the setting gangs is on, they get no nodes; set "
        f'{GANG_SIZE}: "1" in {places}, or {other_fix}'
    )
    yield build_finding(source_object, "warning", path, message)


def _has_own_gang(annotations: Mapping[str, Any]) -> bool:
    """Return whether pods with *annotations* are in no gang, or in one that the annotations name."""
    return str(annotations.get(GANG_SIZE, "")) == "1" or bool(annotations.get(GANG))


def _read_annotations(source_object: SourceObject, template: FieldPath) -> Mapping[str, Any]:
    values = get_value_at(source_object.value, (*template, *_ANNOTATIONS))
    return values if isinstance(values, dict) else {}
