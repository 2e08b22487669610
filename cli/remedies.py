"""What helps the person at the keyboard where a cluster or an account does not answer, or says no."""

import re
from http import HTTPStatus
from typing import Final

from shared.errors import Fault, Forbidden, Gone, Throttled, Unreachable

SIGN_IN: Final = (
    "sign in (`aws sso login`), or choose another $AWS_PROFILE; `aws sts get-caller-identity` says who you are"
)
KUBECTL: Final = "see if kubectl gets an answer"
_WAYS_IN: Final = (
    (
        re.compile("CERTIFICATE_VERIFY_FAILED|certificate verify failed"),
        "certificate-authority-data is not that of the server: `aws eks update-kubeconfig` writes it anew",
    ),
    (re.compile("WRONG_VERSION_NUMBER"), "the kubeconfig's server says https, and there no TLS is spoken"),
    (
        re.compile("Failed to resolve|Name or service not known|nodename nor servname"),
        "no such host: was the cluster deleted? `aws eks update-kubeconfig` writes the server of today",
    ),
    (
        re.compile("[Tt]imed out"),
        "a private endpoint answers only within its VPC: is the VPN up? else see if kubectl does",
    ),
)
"""What a failure to reach the API server says -> what to do."""
_UNSIGNED: Final = re.compile(
    "Unable to locate credentials|Partial credentials|ExpiredToken|RequestExpired|token has expired|SSO session|"
    "InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|MissingAuthenticationToken|Error loading SSO Token|"
    "refresh failed|config profile .* could not be found"
)
_NO_BUCKET: Final = re.compile("NoSuchBucket")
_NO_ENDPOINT: Final = re.compile("Could not connect to the endpoint URL|Connect timeout")


def way_in(fault: Fault) -> str:
    """Answer what helps where an API server was not reached, or did not answer."""
    return next((remedy for pattern, remedy in _WAYS_IN if pattern.search(str(fault))), KUBECTL)


def of_answer(code: int, message: str) -> str:
    """Answer what helps where the API server answered *code* to a person; "" where its own words have to do."""
    if code == HTTPStatus.UNAUTHORIZED:
        return f"it does not know you: the token has expired, or is of another cluster: {SIGN_IN}"
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return "it is busy: try again in a minute"
    return "" if message else "its own words are missing: see what kubectl says"


def is_unsigned(said: Fault | str) -> bool:
    """Whether AWS was asked by nobody, or by somebody whose time is over: no right would help."""
    return bool(_UNSIGNED.search(str(said)))


def in_account(fault: Fault, *, embedded: bool = False) -> str:
    """Answer what helps where AWS did not answer; *embedded*: the command can do without an account."""
    otherwise = ", or use --embedded" if embedded else ""
    if is_unsigned(fault):
        return f"{SIGN_IN}{otherwise}"
    return _by_kind(fault, otherwise)


def _by_kind(fault: Fault, otherwise: str) -> str:
    match fault:
        case Gone() if _NO_BUCKET.search(str(fault)):
            remedy = "the stack's output JoinerBucketName has the name"
        case Gone():
            remedy = "check its name, the account and --region"
        case Forbidden():
            remedy = f"see that `aws sts get-caller-identity` answers and that it may do this{otherwise}"
        case Unreachable() if _NO_ENDPOINT.search(str(fault)):
            remedy = f"is there such a region? check --region, $AWS_REGION and the way there{otherwise}"
        case Unreachable():
            remedy = f"check --region and the way to it{otherwise}"
        case Throttled():
            remedy = "try again in a minute"
        case _:
            remedy = ""
    return remedy
