"""The account: one endpoint for every service, with callers who are somebody and stacks that are deployed.

    with Account(cloud, clock) as account:
        account.invoker = run
        subprocess.run(["npx", "cdk", "deploy"], env={**os.environ, **account.environment()})

What is deployed lies where the services keep it: moto's state, and a few stores of our own where moto has none.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from sim.account.access_entries import AccessEntries
from sim.account.authentication import Authenticator
from sim.account.clients import Clients
from sim.account.code_deploy import CodeDeploy
from sim.account.contract import Credentials, Dispatcher, Function, Invocation, Invoker, NoInvoker
from sim.account.identities import Caller, Identities
from sim.account.kinds.aliases import Alias
from sim.account.kinds.custom import PATH, Answers, Custom
from sim.account.kinds.functions import split
from sim.account.kinds.kinds import finder
from sim.account.lambdas.calls import Lambda
from sim.account.lambdas.deployed import deployed
from sim.account.lambdas.invoke import LambdaCalls
from sim.account.managed_policies import know_managed_policy
from sim.account.mended import mend
from sim.account.networking import Networking
from sim.account.permits.ec2 import Ec2Permits
from sim.account.permits.guard import Guard
from sim.account.permits.requests import Asking
from sim.account.stacks.calls import CloudFormation
from sim.account.sts import FORBIDDEN, Sts
from sim.account.subscriptions import Subscriptions
from sim.account.watch import Watch
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.events import ACCOUNT
from sim.http.protocol import Call, Environ, Reply, answer, parameters_of
from sim.http.queries import Wire
from sim.http.server import EmbeddedAws

DEPLOYER: Final = Credentials(access_key="AKIADEPLOYER", secret_key="deployer", session_token="")  # noqa: S106 - opens nothing
_REVIEWS: Final = "/eks/token-reviews"


class Account:
    """One account in one region. A context manager."""

    def __init__(
        self,
        cloud: Cloud,
        clock: Clock,
        *,
        minute: timedelta = timedelta(seconds=1),
    ) -> None:
        """Hold *cloud* and, by *clock*, the time of what is made.

        A minute of alarms and of deployments lasts *minute*; zero: nothing waits, and no alarm looks.
        """
        self.cloud, self.clock, self.region, self.number = cloud, clock, cloud.region, ACCOUNT
        self.invoker: Invoker = _nobody
        """Runs functions; whoever does sets it."""
        self.dispatcher: Dispatcher = self._dispatch
        """Takes asynchronous calls; without another one, each becomes a thread."""
        self.minute = minute
        self.watch = Watch(self, lambda: self.minute)
        """What was measured, and the alarms that ring by it."""
        self._stopped = Event()
        self.pause: Callable[[float], object] = self._stopped.wait
        """Waits some seconds, between two looks at the alarms of a deployment."""
        self.identities = Identities(self.number)
        permits = Ec2Permits(cloud, self.region, self.number, self._role_of)
        self.guard = Guard(self.region, self.number, Asking(self.region, self.number, permits))
        self._sts = Sts(self.number, clock, self.identities, self.guard)
        self.entries = AccessEntries(self.region, self.number, clock, lambda name: name == cloud.facts.name)
        self.authenticator = Authenticator(cloud, clock, self.entries, self._keys, self.identities.caller)
        """Says whom the cluster's API server lets in."""
        self._answers = Answers()
        self._lock = RLock()
        self._clients = Clients(lambda: self.url, self.region)
        self._threads: list[Thread] = []
        self._server = EmbeddedAws(cloud, self._front)
        custom = Custom(self._answers, lambda: self.url, self._ask)
        alias = Alias(lambda: self.minute, self._pause)
        self.stacks = CloudFormation(self, finder(custom, alias), clock)
        self.lambdas = Lambda(self)
        self._invoking = LambdaCalls(self._invoke, self._send)
        self._handlers: dict[str, dict[str, Callable[[Wire], dict[str, Any]]]] = {
            # Asked by `cdk` why a deployment failed; nothing is recorded.
            "cloudtrail": {"LookupEvents": lambda _: {"Events": []}},
            "codedeploy": dict(CodeDeploy().handlers),
            "ec2": dict(Networking(cloud).handlers),
            "eks": dict(self.entries.handlers),
            "lambda": dict(self.lambdas.handlers),
            "logs": dict(Subscriptions(self).handlers),
        }

    def __enter__(self) -> Self:
        """Start."""
        mend()
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, once what is being deployed is done."""
        self._stopped.set()
        self._answers.close()
        self.stacks.join()
        with self._lock:
            begun = tuple(self._threads)
        for thread in begun:
            thread.join()
        self._clients.close()
        self._server.stop()

    @property
    def url(self) -> str:
        """The endpoint of every service."""
        return self._server.url

    @property
    def authenticator_url(self) -> str:
        """Where kube-apiserver puts its TokenReviews (`--authentication-token-webhook-config-file`)."""
        return f"{self.url}{_REVIEWS}"

    @property
    def lock(self) -> RLock:
        """Hold it to touch the cloud or its clock."""
        return self._server.lock

    def environment(self, credentials: Credentials = DEPLOYER) -> dict[str, str]:
        """Answer the variables by which an SDK finds this account, as *credentials*."""
        here = {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        return here | credentials.environment()

    def client(self, service: str, credentials: Credentials = DEPLOYER) -> Any:  # noqa: ANN401 - boto3's have no types
        """Answer boto3's client of *service* as *credentials*; the same one the next time."""
        return self._clients.client(service, credentials)

    def credentials_of(
        self,
        role_arn: str,
        session: str = "function",
        *,
        function_arn: str = "",
        service: str = "",
        source_arn: str = "",
    ) -> Credentials:
        """Answer credentials of the role for *session*.

        Args:
            role_arn: The role's.
            session: What GetCallerIdentity ends in; a function's own are called as the function.
            function_arn: Of the function whose code gets them.
            service: Who asks for them, as ``scheduler.amazonaws.com``: then the role has to trust it.
            source_arn: In whose name the service asks.

        Raises:
            ApiError: there is no such role, or it does not trust the service.
        """
        principals = (service,) if service else ()
        known = {"aws:SourceAccount": self.number} | ({"aws:SourceArn": source_arn} if source_arn else {})
        return self._sts.assume(role_arn, session, principals, known, function_arn)

    def function(self, name: str, qualifier: str = "", roll: float = 0.0) -> Function:
        """Answer the function called *name* (or its ARN), in the version of *qualifier*.

        Where an alias leads to two versions, *roll*, from 0 to 1, falls on one of them.

        Raises:
            LookupError: there is none.
        """
        with self._lock:
            return deployed(self.lambdas, name, qualifier, roll)

    def _invoke(self, name: str, qualifier: str, payload: bytes) -> Invocation:
        return self.invoker(name, qualifier, payload)

    def _pause(self, seconds: float) -> None:
        self.pause(seconds)

    def _send(self, name: str, qualifier: str, payload: bytes) -> None:
        self.dispatcher(name, qualifier, payload)

    def _dispatch(self, name: str, qualifier: str, payload: bytes) -> None:
        thread = Thread(target=partial(self.invoker, name, qualifier, payload), name=f"invoke {name}", daemon=True)
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _ask(self, function: str, payload: bytes) -> None:
        self.dispatcher(*split(function), payload)

    def _keys(self, access_key: str) -> Credentials | None:
        return DEPLOYER if access_key == DEPLOYER.access_key else self.identities.credentials(access_key)

    def _role_of(self, profile: str) -> str:
        found = self.client("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
        return str(found["Roles"][0]["Arn"])

    def _front(self, call: Call, environ: Environ) -> Reply | None:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "PUT" and path.startswith(PATH):
            known = self._answers.put(path.removeprefix(PATH), call.body)
            return Reply(status=200 if known else FORBIDDEN, content_type="text/plain", body=b"")
        if path == _REVIEWS:
            body = msgspec.json.encode(self.authenticator.review(msgspec.json.decode(call.body)))
            return Reply(status=200, content_type="application/json", body=body)
        caller = self.identities.caller(call.access_key)
        self.guard.admit(call, environ, caller, lambda: parameters_of(call))
        return self._answered(call, environ, caller)

    def _answered(self, call: Call, environ: Environ, caller: Caller) -> Reply | None:
        if call.service == "iam":
            know_managed_policy(self.number, call.form.get("PolicyArn", call.form.get("PermissionsBoundary", "")))
        if call.service == "sts" and call.action in self._sts.handlers:
            return answer(call, self._sts.handlers[call.action](caller, parameters_of(call)))
        if call.service == "cloudformation":
            return answer(call, self.stacks.handle(call.action, parameters_of(call)))
        if call.service == "lambda" and call.action == "Invoke":
            return self._invoking.invoke(call, environ)
        handler = self._handlers.get(call.service, {}).get(call.action)
        if handler is None:
            return None
        said = parameters_of(call)
        with self._lock:
            return answer(call, handler(said))


def _nobody(name: str, qualifier: str, payload: bytes) -> Invocation:
    raise NoInvoker(f"nobody runs {name}:{qualifier} ({len(payload)} bytes)")
