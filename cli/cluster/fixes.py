"""Fixes to suggest when a cluster or an account does not respond, or denies access."""

import re
from http import HTTPStatus
from typing import Final

from shared.errors import Fault, Forbidden, NotFound, Throttled, Unreachable

SIGN_IN_HINT: Final = (
    "sign in (`aws sso login`) or set another $AWS_PROFILE; `aws sts get-caller-identity` shows your identity"
)
KUBECTL_HINT: Final = "check with kubectl"
_CONNECTION_FIXES: Final = (
    (
        re.compile("CERTIFICATE_VERIFY_FAILED|certificate verify failed"),
        "certificate-authority-data does not match the server: run `aws eks update-kubeconfig`",
    ),
    (re.compile("WRONG_VERSION_NUMBER"), "the kubeconfig uses https, but the server does not use TLS"),
    (
        re.compile("Failed to resolve|Name or service not known|nodename nor servname"),
        "the host does not exist: if the cluster was created again, run `aws eks update-kubeconfig`",
    ),
    (
        re.compile("[Tt]imed out"),
        "a private endpoint responds only within its VPC: check the VPN, then check with kubectl",
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
    return next((fix for pattern, fix in _CONNECTION_FIXES if pattern.search(str(fault))), KUBECTL_HINT)


def suggest_response_fix(code: int, message: str) -> str:
    """Return the fix if the API server responded with *code*; "" if its own message is sufficient."""
    if code == HTTPStatus.UNAUTHORIZED:
        return f"the token has expired or belongs to another cluster: {SIGN_IN_HINT}"
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return "the API server is overloaded: try again in a minute"
    return "" if message else "the response has no message: check with kubectl"


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
            fix = "the bucket's name is the stack output JoinerBucketName"
        case NotFound():
            fix = "check the name, the account and --region"
        case Forbidden():
            fix = f"check your identity with `aws sts get-caller-identity`, and its permissions{embedded_hint}"
        case Unreachable() if _NO_ENDPOINT_PATTERN.search(str(fault)):
            fix = f"check --region, $AWS_REGION and the network{embedded_hint}"
        case Unreachable():
            fix = f"check --region and the network{embedded_hint}"
        case Throttled():
            fix = "try again in a minute"
        case _:
            fix = ""
    return fix
