"""Jobs: pods that run to completion, as many as requested, retried if they fail."""

from datetime import timedelta
from typing import Any, Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import (
    Informer,
    NamespacedName,
    Obj,
    find_controller_reference,
    get_object_key,
)
from sim.cluster.controller_runtime.object_conditions import (
    format_timestamp,
    is_active,
    is_ready,
    is_true,
    parse_timestamp,
    with_conditions,
)
from sim.cluster.controller_runtime.templates import build_pod_from_template
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

_DEFAULT_BACKOFF_LIMIT: Final = 6
_INITIAL_BACKOFF_DELAY: Final = timedelta(seconds=10)
_MAX_BACKOFF_DELAY: Final = timedelta(minutes=10)


class JobController:
    """The Job controller.

    Pods that are deleted before they finish count as failed, as in Kubernetes; evicted pods do, too. Of
    podFailurePolicy, only rules are simulated that ignore pod conditions, for example DisruptionTarget of evicted pods.
    """

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Watch the Jobs of *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.jobs = Informer(api, "jobs.batch")
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "job")
        self._finished_phases_by_job: dict[str, dict[str, str]] = {}
        self.jobs.enqueue_all(self._queue.add)
        pods.add_event_handler(self._handle_pod)

    def _handle_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        owner = find_controller_reference(new)
        if owner is None or owner["kind"] != "Job":
            return
        phase = (new.get("status") or {}).get("phase", "")
        if phase in {"Succeeded", "Failed"} or event == "DELETED":
            phases_by_uid = self._finished_phases_by_job.setdefault(owner["uid"], {})
            has_failed = phase != "Succeeded"
            is_ignored = has_failed and self._is_failure_ignored(new, owner["name"])
            phases_by_uid.setdefault(
                new["metadata"]["uid"], "Ignored" if is_ignored else "Failed" if has_failed else "Succeeded"
            )
        self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _is_failure_ignored(self, pod: Obj, job_name: str) -> bool:
        job = self.jobs.get(job_name, pod["metadata"]["namespace"])
        rules = ((job or {}).get("spec", {}).get("podFailurePolicy") or {}).get("rules", [])
        return any(
            rule["action"] == "Ignore"
            and any(is_true(pod, condition["type"]) for condition in rule.get("onPodConditions", []))
            for rule in rules
        )

    def _sync(self, key: NamespacedName) -> None:
        job = self.jobs.get(key[1], key[0])
        if job is None or job["metadata"].get("deletionTimestamp"):
            return
        if is_true(job, "Complete") or is_true(job, "Failed"):
            self._delete_if_expired(job)
            return
        phases_by_uid = self._finished_phases_by_job.get(job["metadata"]["uid"], {})
        phases = list(phases_by_uid.values())
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        active_pods = self._list_active_pods(job)
        finish = self._compute_finish_condition(job, succeeded, failed, len(active_pods))
        if finish[0] or job["spec"].get("suspend"):
            self._delete_pods(active_pods)
        else:
            self._manage_pods(job, active_pods, succeeded, failed)
        self._update_status(job, succeeded, failed, finish)

    def _list_active_pods(self, job: Obj) -> list[Obj]:
        return [pod for pod in self._pods.list_by_index(job["metadata"]["uid"]) if is_active(pod)]

    def _compute_finish_condition(self, job: Obj, succeeded: int, failed: int, active: int) -> tuple[str, str]:
        spec = job["spec"]
        completions = spec.get("completions")
        started_at = (job.get("status") or {}).get("startTime")
        if failed > spec.get("backoffLimit", _DEFAULT_BACKOFF_LIMIT):
            return "Failed", "BackoffLimitExceeded"
        if completions is not None and succeeded >= completions:
            return "Complete", "CompletionsReached"
        if completions is None and succeeded and not active:
            return "Complete", "CompletionsReached"
        if started_at and "activeDeadlineSeconds" in spec:
            remaining_time = (
                parse_timestamp(started_at) + timedelta(seconds=spec["activeDeadlineSeconds"]) - self._clock.get_time()
            )
            if remaining_time <= timedelta():
                return "Failed", "DeadlineExceeded"
            self._queue.add_after(get_object_key(job), remaining_time)
        return ("", "")

    def _manage_pods(self, job: Obj, active_pods: list[Obj], succeeded: int, failed: int) -> None:
        spec = job["spec"]
        desired_active = spec.get("parallelism", 1)
        completions = spec.get("completions")
        if completions is not None:
            desired_active = min(desired_active, completions - succeeded)
        elif succeeded:
            desired_active = len(active_pods)
        self._delete_pods(active_pods[max(0, desired_active) :])
        if desired_active > len(active_pods) and not self._should_back_off(job, failed):
            labels = {
                "batch.kubernetes.io/controller-uid": job["metadata"]["uid"],
                "batch.kubernetes.io/job-name": job["metadata"]["name"],
                "controller-uid": job["metadata"]["uid"],
                "job-name": job["metadata"]["name"],
            }
            for _ in range(desired_active - len(active_pods)):
                pod = build_pod_from_template(job, "Job", labels=labels)
                self._api.create("pods", pod, job["metadata"]["namespace"])

    def _should_back_off(self, job: Obj, failed: int) -> bool:
        """Return whether the back-off delay after the last failure is still running; if so, requeue at its end."""
        pods = self._pods.list_by_index(job["metadata"]["uid"])
        finish_times = [_get_finish_time(pod) for pod in pods if (pod.get("status") or {}).get("phase") == "Failed"]
        if not finish_times or not failed:
            return False
        ready_at = parse_timestamp(max(finish_times)) + min(
            _MAX_BACKOFF_DELAY, _INITIAL_BACKOFF_DELAY * 2 ** min(failed - 1, 10)
        )
        if ready_at <= self._clock.get_time():
            return False
        self._queue.add_after(get_object_key(job), ready_at - self._clock.get_time())
        return True

    def _delete_if_expired(self, job: Obj) -> None:
        ttl_seconds = job["spec"].get("ttlSecondsAfterFinished")
        if ttl_seconds is None:
            return
        finish_times = [
            c["lastTransitionTime"] for c in job["status"]["conditions"] if c["type"] in {"Complete", "Failed"}
        ]
        remaining_time = parse_timestamp(max(finish_times)) + timedelta(seconds=ttl_seconds) - self._clock.get_time()
        if remaining_time > timedelta():
            self._queue.add_after(get_object_key(job), remaining_time)
        else:
            self._api.delete("jobs.batch", job["metadata"]["name"], job["metadata"]["namespace"])

    def _delete_pods(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _update_status(self, job: Obj, succeeded: int, failed: int, finish: tuple[str, str]) -> None:
        now = self._clock.get_time()
        active_pods = self._list_active_pods(job)
        status: dict[str, Any] = {
            "active": len(active_pods),
            "ready": sum(1 for pod in active_pods if is_ready(pod)),
            "succeeded": succeeded,
            "failed": failed,
            "startTime": (job.get("status") or {}).get("startTime") or format_timestamp(now),
        }
        if finish[0]:
            condition = {"type": finish[0], "status": "True", "reason": finish[1]}
            status["conditions"] = with_conditions(job, [condition], now)
            if finish[0] == "Complete":
                status["completionTime"] = format_timestamp(now)
        namespace, name = get_object_key(job)
        self._api.patch("jobs.batch", name, {"status": status}, namespace, "status")


def _get_finish_time(pod: Obj) -> str:
    container_statuses = (pod.get("status") or {}).get("containerStatuses") or []
    finish_times = [
        ((entry.get("state") or {}).get("terminated") or {}).get("finishedAt", "") for entry in container_statuses
    ]
    return max(finish_times, default="") or str(pod["metadata"]["creationTimestamp"])
