"""Jobs: pods that finish, as many as asked, tried again when they fail."""

from datetime import timedelta
from typing import Any, Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import instant_of, is_active, is_ready, is_true, text_of, with_conditions
from sim.cluster.controllers.informer import Informer, Key, Obj, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import pod_from_template

_BACKOFF_LIMIT: Final = 6
_FIRST_BACKOFF: Final = timedelta(seconds=10)
_LAST_BACKOFF: Final = timedelta(minutes=10)


class Jobs:
    """The Job controller. Pods that are deleted before they finish count as failed, as in reality."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Follow *api*; *pods* are indexed by controller."""
        self._clock, self._api, self._pods = clock, api, pods
        self.jobs = Informer(api, "jobs.batch")
        self._queue: Queue[Key] = Queue(clock, self._sync, "job")
        self._finished: dict[str, dict[str, str]] = {}
        self.jobs.on_change(lambda _event, _old, new: self._queue.add(key_of(new)))
        pods.on_change(self._on_pod)
        for obj in self.jobs.all():
            self._queue.add(key_of(obj))

    def _on_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        owner = controller_of(new)
        if owner is None or owner["kind"] != "Job":
            return
        phase = (new.get("status") or {}).get("phase", "")
        if phase in {"Succeeded", "Failed"} or event == "DELETED":
            known = self._finished.setdefault(owner["uid"], {})
            known.setdefault(new["metadata"]["uid"], phase if phase in {"Succeeded", "Failed"} else "Failed")
        self._queue.add((new["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        job = self.jobs.get(key[1], key[0])
        if job is None or job["metadata"].get("deletionTimestamp"):
            return
        if is_true(job, "Complete") or is_true(job, "Failed"):
            self._expire(job)
            return
        ended = self._finished.get(job["metadata"]["uid"], {})
        succeeded = sum(1 for phase in ended.values() if phase == "Succeeded")
        failed = len(ended) - succeeded
        active = self._active(job)
        verdict = self._verdict(job, succeeded, failed, len(active))
        if verdict[0] or job["spec"].get("suspend"):
            self._delete(active)
        else:
            self._start_or_stop(job, active, succeeded, failed)
        self._report(job, succeeded, failed, verdict)

    def _active(self, job: Obj) -> list[Obj]:
        return [pod for pod in self._pods.of(job["metadata"]["uid"]) if is_active(pod)]

    def _verdict(self, job: Obj, succeeded: int, failed: int, active: int) -> tuple[str, str]:
        spec = job["spec"]
        completions = spec.get("completions")
        started = (job.get("status") or {}).get("startTime")
        if failed > spec.get("backoffLimit", _BACKOFF_LIMIT):
            return "Failed", "BackoffLimitExceeded"
        if completions is not None and succeeded >= completions:
            return "Complete", "CompletionsReached"
        if completions is None and succeeded and not active:
            return "Complete", "CompletionsReached"
        if started and "activeDeadlineSeconds" in spec:
            left = instant_of(started) + timedelta(seconds=spec["activeDeadlineSeconds"]) - self._clock.now()
            if left <= timedelta():
                return "Failed", "DeadlineExceeded"
            self._queue.add_after(key_of(job), left)
        return ("", "")

    def _start_or_stop(self, job: Obj, active: list[Obj], succeeded: int, failed: int) -> None:
        spec = job["spec"]
        wanted = spec.get("parallelism", 1)
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - succeeded)
        elif succeeded:
            wanted = len(active)
        self._delete(active[max(0, wanted) :])
        if wanted > len(active) and not self._must_wait(job, failed):
            labels = {
                "batch.kubernetes.io/controller-uid": job["metadata"]["uid"],
                "batch.kubernetes.io/job-name": job["metadata"]["name"],
                "controller-uid": job["metadata"]["uid"],
                "job-name": job["metadata"]["name"],
            }
            for _ in range(wanted - len(active)):
                pod = pod_from_template(job, "Job", labels=labels)
                self._api.create("pods", pod, job["metadata"]["namespace"])

    def _must_wait(self, job: Obj, failed: int) -> bool:
        """Say whether the back-off after the last failure is still running; come back when it is over."""
        pods = self._pods.of(job["metadata"]["uid"])
        ends = [_end_of(pod) for pod in pods if (pod.get("status") or {}).get("phase") == "Failed"]
        if not ends or not failed:
            return False
        ready_at = instant_of(max(ends)) + min(_LAST_BACKOFF, _FIRST_BACKOFF * 2 ** min(failed - 1, 10))
        if ready_at <= self._clock.now():
            return False
        self._queue.add_after(key_of(job), ready_at - self._clock.now())
        return True

    def _expire(self, job: Obj) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        ends = [c["lastTransitionTime"] for c in job["status"]["conditions"] if c["type"] in {"Complete", "Failed"}]
        left = instant_of(max(ends)) + timedelta(seconds=seconds) - self._clock.now()
        if left > timedelta():
            self._queue.add_after(key_of(job), left)
        else:
            self._api.delete("jobs.batch", job["metadata"]["name"], job["metadata"]["namespace"])

    def _delete(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _report(self, job: Obj, succeeded: int, failed: int, verdict: tuple[str, str]) -> None:
        now = self._clock.now()
        active = self._active(job)
        status: dict[str, Any] = {
            "active": len(active),
            "ready": sum(1 for pod in active if is_ready(pod)),
            "succeeded": succeeded,
            "failed": failed,
            "startTime": (job.get("status") or {}).get("startTime") or text_of(now),
        }
        if verdict[0]:
            fresh = {"type": verdict[0], "status": "True", "reason": verdict[1]}
            status["conditions"] = with_conditions(job, [fresh], now)
            if verdict[0] == "Complete":
                status["completionTime"] = text_of(now)
        namespace, name = key_of(job)
        self._api.patch("jobs.batch", name, {"status": status}, namespace, "status")


def _end_of(pod: Obj) -> str:
    entries = (pod.get("status") or {}).get("containerStatuses") or []
    ends = [((entry.get("state") or {}).get("terminated") or {}).get("finishedAt", "") for entry in entries]
    return max(ends, default="") or str(pod["metadata"]["creationTimestamp"])
