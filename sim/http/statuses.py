"""DescribeInstanceStatus on the wire."""

from typing import Any, Final

from shared.model.ec2 import InstanceStatus
from sim.cloud.cloud import Cloud
from sim.http.queries import Wire, filtered, page

PATHS: Final = {
    "event.code": "Events.Code",
    "instance-status.status": "InstanceStatus.Status",
    "system-status.status": "SystemStatus.Status",
}


class StatusCalls:
    """The handler; it takes the call's parameters and answers its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Answer from *cloud*."""
        self._cloud = cloud

    def describe_instance_status(self, said: Wire) -> Wire:
        """DescribeInstanceStatus, of instances that run, in pages."""
        wrong = {one.instance_id: one for one in self._cloud.machines.statuses()}
        running = (one.instance_id for one in self._cloud.instances() if one.state == "running")
        every = [_status(wrong.get(name, InstanceStatus(instance_id=name))) for name in running]
        return page(filtered(every, said, PATHS), said, "InstanceStatuses", 1000)


def _status(one: InstanceStatus) -> dict[str, Any]:
    events = [
        {"InstanceEventId": each.event_id, "Code": each.code, "Description": "The hardware is to be retired."}
        | ({"NotBefore": each.begins_at} if each.begins_at is not None else {})
        for each in one.events
    ]
    checks = {f"{of.title()}Status": _check(one, of) for of in ("instance", "system")}
    return {"InstanceId": one.instance_id, "Events": events, **checks}


def _check(one: InstanceStatus, of: str) -> dict[str, Any]:
    since = next((check.since for check in one.failed if check.of == of), None)
    if since is None:
        return {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    details = [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]
    return {"Status": "impaired", "Details": details}
