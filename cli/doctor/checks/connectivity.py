"""Checks of connectivity: API server, AWS identity, clocks, and the functions' route to the endpoint."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, ReadFailure

SLOW_RESPONSE_SECONDS: Final = 2.0
ANY_IPV4_CIDR: Final = "0.0.0.0/0"
ENABLE_PRIVATE_ENDPOINT_COMMAND: Final = (
    "aws eks update-cluster-config --resources-vpc-config endpointPrivateAccess=true"
)
MAX_SIGNATURE_SKEW_SECONDS: Final = 300
"""AWS refuses a signature with a larger clock difference."""
CLOCK_WARNING_SECONDS: Final = 30


def check_api_server(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the API server responds, and how fast."""
    kubernetes, check = facts.kubernetes, CheckReporter("api-server")
    if kubernetes is None or kubernetes.response is None:
        return
    if isinstance(kubernetes.response, ReadFailure):
        if kubernetes.response.is_denied:
            yield check.skip(
                kubernetes.source, kubernetes.response, "access to the cluster: an access entry, or another --context"
            )
        else:
            message = f"{kubernetes.source} does not respond: {kubernetes.response.reason}"
            yield check.fail(message, "check with kubectl; a private endpoint responds only within the VPC")
        return
    message = f"{kubernetes.source}: Kubernetes {kubernetes.response.version}, in {kubernetes.response.seconds:.2f} s"
    if kubernetes.response.seconds > SLOW_RESPONSE_SECONDS:
        yield check.warn(message, "check the network path and the request latency of the API server")
    else:
        yield check.accept(message)


def check_identity(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the AWS credentials work."""
    if facts.account is None:
        return
    check = CheckReporter("identity")
    if isinstance(facts.account.caller, ReadFailure):
        yield check.skip(
            "your AWS identity", facts.account.caller, "valid credentials (check with `aws sts get-caller-identity`)"
        )
    else:
        yield check.accept(f"{facts.account.caller} in {facts.account.region}")


def check_clock(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the clocks of AWS, the API server and this machine agree."""
    check = CheckReporter("clock")
    offset_by_source = {}
    if facts.account is not None and facts.account.clock_offset_seconds is not None:
        offset_by_source["AWS"] = facts.account.clock_offset_seconds
    response = facts.kubernetes.response if facts.kubernetes is not None else None
    if response is not None and not isinstance(response, ReadFailure) and response.clock_offset_seconds is not None:
        offset_by_source["the API server"] = response.clock_offset_seconds
    for source, offset_seconds in offset_by_source.items():
        direction = "ahead of" if offset_seconds > 0 else "behind"
        message = f"{source} is {abs(offset_seconds):.0f} s {direction} this machine"
        fix = "synchronize the clock of this machine with NTP"
        if abs(offset_seconds) >= MAX_SIGNATURE_SKEW_SECONDS:
            yield check.fail(f"{message}: AWS rejects signatures", fix)
        elif abs(offset_seconds) >= CLOCK_WARNING_SECONDS:
            yield check.warn(message, fix)
    if offset_by_source and all(abs(ahead) < CLOCK_WARNING_SECONDS for ahead in offset_by_source.values()):
        yield check.accept(f"{' and '.join(offset_by_source)} and this machine agree within {CLOCK_WARNING_SECONDS} s")


def check_endpoint(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the functions can reach the API server from their network."""
    control_plane, check = facts.control_plane, CheckReporter("endpoint")
    if control_plane is None:
        return
    if _is_in_vpc(facts) and control_plane.is_private:
        yield check.accept("the functions are in a VPC and use the private endpoint")
    elif _is_in_vpc(facts):
        message = (
            "the functions are in a VPC, but the private endpoint is disabled: they need NAT for the public endpoint"
        )
        yield check.warn(
            message,
            f"{ENABLE_PRIVATE_ENDPOINT_COMMAND} --name {facts.account.cluster if facts.account is not None else ''}",
        )
    elif not control_plane.is_public:
        yield _build_outside_result(facts, check, "the API server has no public endpoint")
    elif ANY_IPV4_CIDR not in control_plane.public_cidrs:
        yield _build_outside_result(
            facts, check, f"the public endpoint is open to {', '.join(control_plane.public_cidrs)} only"
        )
    else:
        yield check.accept(f"{control_plane.endpoint} is public")


def _is_in_vpc(facts: DoctorFacts) -> bool:
    functions = facts.stack.functions if facts.stack is not None else ()
    return not isinstance(functions, ReadFailure) and any(function.is_in_vpc for function in functions)


def _build_outside_result(facts: DoctorFacts, check: CheckReporter, reason: str) -> CheckResult:
    fix = "deploy with the setting network: private (docs/networking.md)"
    if facts.is_installed is False:
        return check.warn(f"{reason}, but functions outside a VPC have no fixed address", fix)
    if facts.stack is None or isinstance(facts.stack.functions, ReadFailure):
        failure = ReadFailure(reason="the functions could not be read")
        return check.skip(f"{reason}: whether the functions are in the VPC", failure, "")
    return check.fail(f"{reason}, but the functions are outside the VPC", fix)
