"""AWS Fault Injection Service (FIS): experiments that interrupt Spot instances, the only action that is emulated.

The instance gets its interruption warning when the experiment starts, and is terminated two minutes later:
https://docs.aws.amazon.com/fis/latest/userguide/fis-actions-reference.html#send-spot-instance-interruptions
"""

from collections.abc import Callable
from typing import Final

from shared.errors import Fault
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse
from sim.cloud import seeded_random
from sim.time.virtual_clock import Clock

INTERRUPTION_ACTION: Final = "aws:ec2:send-spot-instance-interruptions"
_HTTP_NOT_FOUND: Final = 404


class FaultInjectionApi:
    """The experiment templates and experiments of the account."""

    def __init__(
        self, clock: Clock, assume_role: Callable[[str], object], interrupt_instance: Callable[[str], None]
    ) -> None:
        """Start without templates.

        *assume_role* raises an `ApiError` if FIS cannot assume the role of an ARN; *interrupt_instance* interrupts a
        Spot instance by its id, or raises a `Fault`.
        """
        self._clock, self._assume_role, self._interrupt_instance = clock, assume_role, interrupt_instance
        self._templates: dict[str, ApiResponse] = {}
        self._template_id_by_token: dict[str, str] = {}
        self._experiments: dict[str, ApiResponse] = {}
        self.handlers: ApiHandlers = {
            "CreateExperimentTemplate": self._create_template,
            "DeleteExperimentTemplate": lambda request: {
                "experimentTemplate": self._templates.pop(self._get_template(request["id"])["id"])
            },
            "GetExperiment": self._get_experiment,
            "ListExperimentTemplates": lambda _: {"experimentTemplates": [*self._templates.values()]},
            "StartExperiment": self._start_experiment,
        }

    def _create_template(self, request: ApiDict) -> ApiResponse:
        for name, action in request["actions"].items():
            if action["actionId"] != INTERRUPTION_ACTION:
                raise ApiError("ValidationException", f"action {name}: only {INTERRUPTION_ACTION} is emulated")
        self._check_role(request["roleArn"])
        token = request["clientToken"]
        template_id = self._template_id_by_token.setdefault(
            token, f"EXT{seeded_random.build_uuid(0, 'experiment template', token).replace('-', '')[:17]}"
        )
        now = self._clock.get_time()
        template = {key: value for key, value in request.items() if key != "clientToken"}
        self._templates[template_id] = {**template, "id": template_id, "creationTime": now, "lastUpdateTime": now}
        return {"experimentTemplate": self._templates[template_id]}

    def _check_role(self, role_arn: str) -> None:
        """Check that FIS can assume the role.

        Raises:
            ApiError: it cannot.
        """
        try:
            self._assume_role(role_arn)
        except ApiError as error:
            raise ApiError("ValidationException", f"The role {role_arn} cannot be assumed by FIS: {error}") from None

    def _get_template(self, template_id: str) -> ApiResponse:
        if template_id not in self._templates:
            message = f"Experiment template {template_id} not found."
            raise ApiError("ResourceNotFoundException", message, _HTTP_NOT_FOUND)
        return self._templates[template_id]

    def _start_experiment(self, request: ApiDict) -> ApiResponse:
        template = self._get_template(request["experimentTemplateId"])
        experiment_id = f"EXP{len(self._experiments) + 1:017}"
        state = {"status": "running", "reason": "Experiment is running."}
        try:
            for target in template["targets"].values():
                for arn in target["resourceArns"]:
                    self._interrupt_instance(arn.rpartition("/")[2])
        except Fault as error:
            state = {"status": "failed", "reason": str(error)}
        self._experiments[experiment_id] = {
            "id": experiment_id,
            "experimentTemplateId": template["id"],
            "state": state,
            "startTime": self._clock.get_time(),
        }
        return {"experiment": self._experiments[experiment_id]}

    def _get_experiment(self, request: ApiDict) -> ApiResponse:
        if request["id"] not in self._experiments:
            raise ApiError("ResourceNotFoundException", f"Experiment {request['id']} not found.", _HTTP_NOT_FOUND)
        return {"experiment": self._experiments[request["id"]]}
