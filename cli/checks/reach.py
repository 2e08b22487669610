"""Who is reached, as whom, and whether the clocks agree."""

from collections.abc import Iterator
from typing import Final

from cli.checks.facts import Facts, Unseen
from cli.checks.findings import Finding, Findings

SLOW_SECONDS: Final = 2.0
EVERYWHERE: Final = "0.0.0.0/0"
SWITCH: Final = "aws eks update-cluster-config --resources-vpc-config endpointPrivateAccess=true"
SIGNED_FOR_SECONDS: Final = 300
"""AWS refuses a signature whose date is further off."""
ODD_SECONDS: Final = 30


def api_server(facts: Facts) -> Iterator[Finding]:
    """Does it answer, and how soon?"""
    seen, say = facts.kubernetes, Findings("api-server")
    if seen is None or seen.answer is None:
        return
    if isinstance(seen.answer, Unseen):
        if seen.answer.is_denied:
            yield say.unseen(seen.where, seen.answer, "a way into the cluster: an access entry, or another --context")
        else:
            what = f"{seen.where} did not answer: {seen.answer.why}"
            yield say.fail(what, "see if kubectl gets an answer; a private endpoint answers only from within the VPC")
        return
    what = f"{seen.where}: Kubernetes {seen.answer.version}, in {seen.answer.seconds:.2f} s"
    if seen.answer.seconds > SLOW_SECONDS:
        yield say.warn(what, "the way there is long or the API server is busy: look at its request latencies")
    else:
        yield say.ok(what)


def identity(facts: Facts) -> Iterator[Finding]:
    """As whom is AWS asked?"""
    if facts.account is None:
        return
    say = Findings("identity")
    if isinstance(facts.account.caller, Unseen):
        yield say.unseen(
            "who you are in AWS", facts.account.caller, "credentials that `aws sts get-caller-identity` takes"
        )
    else:
        yield say.ok(f"{facts.account.caller} in {facts.account.region}")


def clock(facts: Facts) -> Iterator[Finding]:
    """Do AWS, the API server and this machine agree on the time?"""
    say = Findings("clock")
    told = {}
    if facts.account is not None and facts.account.ahead_seconds is not None:
        told["AWS"] = facts.account.ahead_seconds
    answer = facts.kubernetes.answer if facts.kubernetes is not None else None
    if answer is not None and not isinstance(answer, Unseen) and answer.ahead_seconds is not None:
        told["the API server"] = answer.ahead_seconds
    for who, ahead in told.items():
        way = "ahead of" if ahead > 0 else "behind"
        what = f"{who} is {abs(ahead):.0f} s {way} this machine"
        remedy = "set this machine's clock by NTP; if it is right, tell AWS"
        if abs(ahead) >= SIGNED_FOR_SECONDS:
            yield say.fail(f"{what}: signatures are refused", remedy)
        elif abs(ahead) >= ODD_SECONDS:
            yield say.warn(what, remedy)
    if told and all(abs(ahead) < ODD_SECONDS for ahead in told.values()):
        yield say.ok(f"{' and '.join(told)} and this machine agree within {ODD_SECONDS} s")


def endpoint(facts: Facts) -> Iterator[Finding]:
    """Do the functions reach the API server from where they are?"""
    plane, say = facts.plane, Findings("endpoint")
    if plane is None:
        return
    if _is_inside(facts) and plane.is_private:
        yield say.ok("the functions are in a VPC and use the private endpoint")
    elif _is_inside(facts):
        what = "the functions are in a VPC, and the private endpoint is off: only a NAT leads to the public one"
        yield say.warn(what, f"{SWITCH} --name {facts.account.cluster if facts.account is not None else ''}")
    elif not plane.is_public:
        yield _outside(facts, say, "the API server has no public endpoint")
    elif EVERYWHERE not in plane.public_cidrs:
        yield _outside(facts, say, f"the public endpoint is open to {', '.join(plane.public_cidrs)} only")
    else:
        yield say.ok(f"{plane.endpoint} is public")


def _is_inside(facts: Facts) -> bool:
    functions = facts.stack.functions if facts.stack is not None else ()
    return not isinstance(functions, Unseen) and any(one.is_in_vpc for one in functions)


def _outside(facts: Facts, say: Findings, what: str) -> Finding:
    remedy = "deploy with joiner:network=private (docs/networking.md)"
    if facts.is_installed is False:
        return say.warn(f"{what}, and functions have no fixed address outside a VPC", remedy)
    if facts.stack is None or isinstance(facts.stack.functions, Unseen):
        unknown = Unseen(why="the functions were not seen")
        return say.unseen(f"{what}: whether functions are inside the VPC", unknown, "")
    return say.fail(f"{what}, and the functions are outside the VPC", remedy)
