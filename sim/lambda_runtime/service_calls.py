"""The requests that AWS services make for a stack with its roles: logs, traces, queues, schedules and deployments.

Lambda writes logs and traces and polls queues with the role of the function; EventBridge Scheduler and CodeDeploy have
roles of their own. A service does only what its role allows.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from sim.lambda_runtime.stack_template.stack_parts import EventTarget, StackFunction

AskPermission: TypeAlias = Callable[[str, str, str], bool]
"""Returns whether the role of a function or a service, by its name, allows an action on a resource."""

SCHEDULER: Final = "scheduler"
CODEDEPLOY: Final = "codedeploy"
_LOG_STREAM: Final = "log-stream:2026/11/26/[1]0123456789abcdef0123456789abcdef"
_TRACE_ACTIONS: Final = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
_POLL_ACTIONS: Final = ("sqs:GetQueueAttributes", "sqs:ReceiveMessage")


def allow_all(owner: str, action: str, resource: str) -> bool:
    """Return True: permissions are not checked."""
    del owner, action, resource
    return True


class ServiceCalls:
    """Makes the requests of the services, each with the permission of the right role."""

    def __init__(self) -> None:
        """Allow all requests until `ask_permission` is set."""
        self.ask_permission: AskPermission = allow_all
        self._functions_with_stream: set[str] = set()

    def write_log(self, function: StackFunction) -> None:
        """Write the log of one invocation; the first one creates the log stream. Without permission it is lost."""
        if not function.log_group_arn:
            return
        stream = f"{function.log_group_arn}:{_LOG_STREAM}"
        if function.name not in self._functions_with_stream:
            if not self.ask_permission(function.name, "logs:CreateLogStream", stream):
                return
            self._functions_with_stream.add(function.name)
        self.ask_permission(function.name, "logs:PutLogEvents", stream)

    def send_trace(self, function: StackFunction) -> None:
        """Send the trace of one invocation, if tracing is active. Without permission it is lost."""
        if function.is_traced:
            for action in _TRACE_ACTIONS:
                self.ask_permission(function.name, action, "*")

    def can_poll(self, function: str, queue_arn: str) -> bool:
        """Return whether Lambda can receive messages of the queue for *function*."""
        return all(self.ask_permission(function, action, queue_arn) for action in _POLL_ACTIONS)

    def can_delete_messages(self, function: str, queue_arn: str) -> bool:
        """Return whether Lambda can delete the messages that *function* has handled."""
        return self.ask_permission(function, "sqs:DeleteMessage", queue_arn)

    def can_fire(self, target: EventTarget) -> bool:
        """Return whether EventBridge Scheduler can deliver an event to *target*."""
        action = "lambda:InvokeFunction" if target.kind == "function" else "sqs:SendMessage"
        return self.ask_permission(SCHEDULER, action, target.arn)

    def can_send_to_dead_letter_queue(self, queue_arn: str) -> bool:
        """Return whether EventBridge Scheduler can send an event that it could not deliver to the queue."""
        return self.ask_permission(SCHEDULER, "sqs:SendMessage", queue_arn)

    def can_deploy(self, function: StackFunction, alias: str) -> bool:
        """Return whether CodeDeploy can move *alias* of *function* to a new version and watch its alarms.

        The policy AWSCodeDeployRoleForLambdaLimited (AWS Managed Policy Reference) lists these actions; of its others,
        CodeDeploy needs none without hooks and notifications.
        """
        requests = (
            ("lambda:GetAlias", function.arn),
            ("lambda:GetProvisionedConcurrencyConfig", f"{function.arn}:{alias}"),
            ("lambda:UpdateAlias", function.arn),
            ("cloudwatch:DescribeAlarms", "*"),
        )
        return all(self.ask_permission(CODEDEPLOY, action, resource) for action, resource in requests)

    def forget_streams(self) -> None:
        """Create new log streams: new containers write to them."""
        self._functions_with_stream.clear()
