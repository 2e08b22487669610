"""The simulated AWS account: one endpoint for all services, with authenticated callers and deployed stacks.

with Account(cloud, clock) as account: account.invoker = run subprocess.run(["npx", "cdk", "deploy"], env={**os.environ,
**account.build_environment()})

Deployed resources are kept by their services: in the state of moto, and in own stores where moto has none.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from sim.aws_account.authentication import Authenticator
from sim.aws_account.clients import ClientCache
from sim.aws_account.cloudformation.cloudformation_api import CloudFormationApi
from sim.aws_account.function_runtime import (
    Credentials,
    DeployedFunction,
    Dispatcher,
    InvocationResult,
    Invoker,
    NoInvoker,
)
from sim.aws_account.iam_checks.authorizer import IamAuthorizer
from sim.aws_account.iam_checks.ec2_requests import Ec2RequestBuilder
from sim.aws_account.iam_checks.iam_requests import ApiRequestBuilder
from sim.aws_account.iam_checks.service_permissions import ServicePermissions
from sim.aws_account.identities import Caller, CredentialStore
from sim.aws_account.lambda_api.deployed_function import build_deployed_function
from sim.aws_account.lambda_api.invoke import InvokeHandler
from sim.aws_account.lambda_api.lambda_api import LambdaApi
from sim.aws_account.managed_policies import register_managed_policy
from sim.aws_account.moto_patches import patch_moto
from sim.aws_account.networking import NetworkingApi
from sim.aws_account.resource_types.alias_deployments import AliasProvider
from sim.aws_account.resource_types.all_providers import build_provider_lookup
from sim.aws_account.resource_types.custom_resource import (
    CustomResourceProvider,
    CustomResourceResponses,
    is_response_path,
)
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_account.services.access_entries import AccessEntryApi
from sim.aws_account.services.cloudwatch import CloudWatch
from sim.aws_account.services.code_deploy import CodeDeployApi
from sim.aws_account.services.fault_injection import FaultInjectionApi
from sim.aws_account.services.sts import HTTP_FORBIDDEN, StsApi
from sim.aws_account.services.subscriptions import SubscriptionFilterApi
from sim.aws_http.protocol import ApiCall, ApiDict, ApiReply, Environ, encode_result, parse_parameters
from sim.aws_http.server import EmbeddedAws, StartResponse
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import ACCOUNT_ID
from sim.time.virtual_clock import Clock

DEPLOYER_CREDENTIALS: Final = Credentials(access_key="AKIADEPLOYER", secret_key="deployer", session_token="")  # noqa: S106 - opens nothing
_AUTHENTICATION_PATH: Final = "/eks/token-reviews"
_MOTO_ACCOUNT_HEADER: Final = "HTTP_X_MOTO_ACCOUNT_ID"
"""The header with which a request selects one of the accounts of moto."""


class Account:
    """One AWS account in one region. A context manager."""

    def __init__(
        self,
        cloud: Cloud,
        clock: Clock,
        *,
        minute: timedelta = timedelta(seconds=1),
        account_id: str = ACCOUNT_ID,
    ) -> None:
        """Serve *cloud*; *clock* gives the times of created resources.

        *minute* is how long a minute of alarms and deployments lasts; zero: nothing waits, and no alarm is evaluated.
        """
        self.cloud, self.clock, self.region, self.account_id = cloud, clock, cloud.region, account_id
        self.invoker: Invoker = _raise_no_invoker
        """Runs Lambda functions; set by the code that runs them."""
        self.dispatcher: Dispatcher = self._start_invocation_thread
        """Takes asynchronous invocations; by default, each invocation runs in its own thread."""
        self.minute = minute
        self.cloudwatch = CloudWatch(self, lambda: self.minute)
        """The recorded metrics and the alarms that are evaluated on them."""
        self._stopped = Event()
        self.sleep: Callable[[float], object] = self._stopped.wait
        """Sleeps for a number of seconds between two alarm checks of a deployment."""
        self.credential_store = CredentialStore(self.account_id)
        ec2_request_builder = Ec2RequestBuilder(cloud, self.region, self.account_id, self._get_profile_role_arn)
        self.authorizer = IamAuthorizer(
            self.region, self.account_id, ApiRequestBuilder(self.region, self.account_id, ec2_request_builder)
        )
        self.service_permissions = ServicePermissions(
            self.authorizer, self.region, self.account_id, self.credential_store.deployer
        )
        """What EC2 and the nodes may do with the deployed roles."""
        cloud.instances.volume_keys.can_use_key = self.service_permissions.can_launch_with_key
        self.sts_api = StsApi(self.account_id, clock, self.credential_store, self.authorizer)
        self.access_entries = AccessEntryApi(self.region, self.account_id, clock, lambda name: name == cloud.facts.name)
        self.authenticator = Authenticator(
            cloud, clock, self.access_entries, self._find_credentials, self.credential_store.get_caller
        )
        """Authenticates the callers of the cluster's API server."""
        self._custom_resource_responses = CustomResourceResponses(self.region)
        self._lock = RLock()
        self._clients = ClientCache(lambda: self.url, self.region)
        self._threads: list[Thread] = []
        self._server = EmbeddedAws(cloud, self._handle_request)
        custom_resource_provider = CustomResourceProvider(
            self._custom_resource_responses, lambda: self.url, self._invoke_custom_resource
        )
        alias_provider = AliasProvider(lambda: self.minute, self._sleep)
        self.cloudformation = CloudFormationApi(self, build_provider_lookup(custom_resource_provider, alias_provider))
        self.lambda_api = LambdaApi(self)
        self._invoke_handler = InvokeHandler(self._invoke, self._invoke_async)
        self._networking_api = NetworkingApi(cloud)
        self._handlers: dict[str, dict[str, Callable[[ApiDict], dict[str, Any]]]] = {
            # `cdk` calls this to find out why a deployment failed; no events are recorded.
            "cloudtrail": {"LookupEvents": lambda _: {"Events": []}},
            "codedeploy": dict(CodeDeployApi().handlers),
            "ec2": dict(self._networking_api.handlers),
            "eks": dict(self.access_entries.handlers),
            "fis": dict(FaultInjectionApi(clock, self._assume_fis_role, self._interrupt_instance).handlers),
            "lambda": dict(self.lambda_api.handlers),
            "logs": dict(SubscriptionFilterApi(self).handlers),
        }

    def __enter__(self) -> Self:
        """Start the server."""
        patch_moto()
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until all deployments are complete, then stop the server."""
        self._stopped.set()
        self._custom_resource_responses.close()
        self.cloudformation.join()
        with self._lock:
            threads = tuple(self._threads)
        for thread in threads:
            thread.join()
        self._clients.close()
        self._server.stop()

    @property
    def url(self) -> str:
        """The endpoint URL of all services."""
        return self._server.url

    @property
    def authenticator_url(self) -> str:
        """The URL to which kube-apiserver sends TokenReviews (`--authentication-token-webhook-config-file`)."""
        return f"{self.url}{_AUTHENTICATION_PATH}"

    @property
    def lock(self) -> RLock:
        """The lock that protects the cloud and its clock."""
        return self._server.lock

    def build_environment(self, credentials: Credentials = DEPLOYER_CREDENTIALS) -> dict[str, str]:
        """Return the environment variables with which an SDK uses this account with *credentials*."""
        endpoint = {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        return endpoint | credentials.build_environment()

    def get_client(self, service: str, credentials: Credentials = DEPLOYER_CREDENTIALS) -> Any:  # noqa: ANN401 - boto3's have no types
        """Return the boto3 client of *service* with *credentials*; the client is cached."""
        return self._clients.get_client(service, credentials)

    def issue_role_credentials(
        self,
        role_arn: str,
        session: str = "function",
        *,
        function_arn: str = "",
        service: str = "",
        source_arn: str = "",
    ) -> Credentials:
        """Issue credentials of a role for *session*.

        Args:
            role_arn: The ARN of the role.
            session: The session name: the last part of the ARN in GetCallerIdentity. For a function, its name.
            function_arn: The ARN of the function whose code gets the credentials.
            service: The service that assumes the role, as ``scheduler.amazonaws.com``: the role must trust it.
            source_arn: The ARN of the resource on behalf of which the service assumes the role.

        Raises:
            ApiError: there is no such role, or it does not trust the service.
        """
        principals = (service,) if service else ()
        context_keys = {"aws:SourceAccount": self.account_id} | ({"aws:SourceArn": source_arn} if source_arn else {})
        return self.sts_api.assume_role(role_arn, session, principals, context_keys, function_arn)

    def get_function(self, name: str, qualifier: str = "", roll: float = 0.0) -> DeployedFunction:
        """Return the function with the name or ARN *name*, in the version that *qualifier* selects.

        If an alias routes to two versions, *roll*, from 0 to 1, selects one of them.

        Raises:
            LookupError: there is no such function or version.
        """
        with self._lock:
            return build_deployed_function(self.lambda_api, name, qualifier, roll)

    def serve_request(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request (WSGI), as the server of this account does."""
        return self._server(environ, start_response)

    def _invoke(self, name: str, qualifier: str, payload: bytes) -> InvocationResult:
        return self.invoker(name, qualifier, payload)

    def _sleep(self, seconds: float) -> None:
        self.sleep(seconds)

    def _invoke_async(self, name: str, qualifier: str, payload: bytes) -> None:
        self.dispatcher(name, qualifier, payload)

    def _start_invocation_thread(self, name: str, qualifier: str, payload: bytes) -> None:
        thread = Thread(target=partial(self.invoker, name, qualifier, payload), name=f"invoke {name}", daemon=True)
        with self._lock:
            self._threads = [running_thread for running_thread in self._threads if running_thread.is_alive()] + [thread]
        thread.start()

    def _invoke_custom_resource(self, function: str, payload: bytes) -> None:
        self.dispatcher(*parse_function_name(function), payload)

    def _find_credentials(self, access_key: str) -> Credentials | None:
        return (
            DEPLOYER_CREDENTIALS
            if access_key == DEPLOYER_CREDENTIALS.access_key
            else self.credential_store.find_credentials(access_key)
        )

    def _get_profile_role_arn(self, profile: str) -> str:
        instance_profile = self.get_client("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
        return str(instance_profile["Roles"][0]["Arn"])

    def _assume_fis_role(self, role_arn: str) -> Credentials:
        return self.issue_role_credentials(role_arn, "experiment", service="fis.amazonaws.com")

    def _interrupt_instance(self, instance_id: str) -> None:
        with self.lock:
            self.cloud.instances.interrupt(instance_id)

    def _can_put_object(self, function_arn: str, object_arn: str) -> bool:
        """Return whether the network of a function lets it PUT an object of another account."""
        name, _ = parse_function_name(function_arn)
        functions = [function for function in self.lambda_api.list_functions() if function.name == name]
        is_in_vpc = any(function.latest.config.get("VpcConfig", {}).get("SubnetIds") for function in functions)
        return not is_in_vpc or self._networking_api.can_put_object(object_arn)

    def _handle_request(self, call: ApiCall, environ: Environ) -> ApiReply | None:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "PUT" and is_response_path(path):
            is_accepted = self._custom_resource_responses.put(path, call.body, self._can_put_object)
            return ApiReply(status=200 if is_accepted else HTTP_FORBIDDEN, content_type="text/plain", body=b"")
        if path == _AUTHENTICATION_PATH:
            body = msgspec.json.encode(self.authenticator.review_token(msgspec.json.decode(call.body)))
            return ApiReply(status=200, content_type="application/json", body=body)
        environ[_MOTO_ACCOUNT_HEADER] = self.account_id
        caller = self.credential_store.get_caller(call.access_key)
        self.service_permissions.set_caller(caller)
        self.authorizer.authorize(call, environ, caller, lambda: parse_parameters(call))
        return self._route_call(call, environ, caller)

    def _route_call(self, call: ApiCall, environ: Environ, caller: Caller) -> ApiReply | None:
        if call.service == "iam":
            register_managed_policy(
                self.account_id, call.form.get("PolicyArn", call.form.get("PermissionsBoundary", ""))
            )
        if call.service == "sts" and call.action in self.sts_api.handlers:
            return encode_result(call, self.sts_api.handlers[call.action](caller, parse_parameters(call)))
        if call.service == "cloudformation":
            return encode_result(call, self.cloudformation.handle(call.action, parse_parameters(call)))
        if call.service == "lambda" and call.action == "Invoke":
            return self._invoke_handler.invoke(call, environ)
        handler = self._handlers.get(call.service, {}).get(call.action)
        if handler is None:
            return None
        request = parse_parameters(call)
        with self._lock:
            return encode_result(call, handler(request))


def _raise_no_invoker(name: str, qualifier: str, payload: bytes) -> InvocationResult:
    raise NoInvoker(f"no process runs {name}:{qualifier} ({len(payload)} bytes)")
