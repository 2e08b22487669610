"""Fixes to suggest when a cluster or an account does not respond, or denies access."""

import re
from http import HTTPStatus
from typing import Final

from shared.errors import Fault, Forbidden, NotFound, Throttled, Unreachable

SIGN_IN_HINT: Final = (
    "sign in (`aws sso login`), or choose another $AWS_PROFILE; `aws sts get-caller-identity` says who you are"
)
KUBECTL_HINT: Final = "see if kubectl gets an answer"
_CONNECTION_FIXES: Final = (
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
"""Error text of a failed connection to the API server -> the fix."""
_CREDENTIAL_ERROR_PATTERN: Final = re.compile(
    "Unable to locate credentials|Partial credentials|ExpiredToken|RequestExpired|token has expired|SSO session|"
    "InvalidClientTokenId|UnrecognizedClient|InvalidAccessKeyId|MissingAuthenticationToken|Error loading SSO Token|"
    "refresh failed|config profile .* could not be found"
)
_NO_BUCKET_PATTERN: Final = re.compile("NoSuchBucket")
_NO_ENDPOINT_PATTERN: Final = re.compile("Could not connect to the endpoint URL|Connect timeout")


def suggest_connection_fix(fault: Fault) -> str:
    """Return the fix if an API server cannot be reached or does not respond."""
    return next((remedy for pattern, remedy in _CONNECTION_FIXES if pattern.search(str(fault))), KUBECTL_HINT)


def suggest_response_fix(code: int, message: str) -> str:
    """Return the fix if the API server responded with *code*; "" if its own message is sufficient."""
    if code == HTTPStatus.UNAUTHORIZED:
        return f"it does not know you: the token has expired, or is of another cluster: {SIGN_IN_HINT}"
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return "it is busy: try again in a minute"
    return "" if message else "its own words are missing: see what kubectl says"


def is_credential_error(error: Fault | str) -> bool:
    """Return whether AWS got no valid credentials: permissions would not help."""
    return bool(_CREDENTIAL_ERROR_PATTERN.search(str(error)))


def suggest_account_fix(fault: Fault, *, embedded: bool = False) -> str:
    """Return the fix if AWS did not respond or denied access; *embedded*: the command also runs without an account."""
    embedded_hint = ", or use --embedded" if embedded else ""
    if is_credential_error(fault):
        return f"{SIGN_IN_HINT}{embedded_hint}"
    return _suggest_fix_by_kind(fault, embedded_hint)


def _suggest_fix_by_kind(fault: Fault, embedded_hint: str) -> str:
    match fault:
        case NotFound() if _NO_BUCKET_PATTERN.search(str(fault)):
            remedy = "the stack's output JoinerBucketName has the name"
        case NotFound():
            remedy = "check its name, the account and --region"
        case Forbidden():
            remedy = f"see that `aws sts get-caller-identity` answers and that it may do this{embedded_hint}"
        case Unreachable() if _NO_ENDPOINT_PATTERN.search(str(fault)):
            remedy = f"is there such a region? check --region, $AWS_REGION and the way there{embedded_hint}"
        case Unreachable():
            remedy = f"check --region and the way to it{embedded_hint}"
        case Throttled():
            remedy = "try again in a minute"
        case _:
            remedy = ""
    return remedy
