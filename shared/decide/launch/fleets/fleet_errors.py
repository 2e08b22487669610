"""EC2's error messages -> the reason in a claim's condition, and the fix."""

from typing import Final

from shared.model.ec2.fleet import NO_SPOT_ROLE_CODE

CAPACITY_ERROR_CODES: Final = frozenset(
    (
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    )
)
"""EC2's codes for an offering that is currently unavailable."""
SPREAD_GROUP_FULL_MESSAGE: Final = "limit of instances in this spread placement group"
"""EC2's message, with several codes: the zone has the maximum instances of the spread placement group."""
NO_ADDRESSES_CODE: Final = "InsufficientFreeAddressesInSubnet"

_REASON_BY_WORDS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    ((NO_SPOT_ROLE_CODE,), "SpotSLRCreationFailed"),
    (("Not authorized for images",), "AMIAuthorizationFailure"),
    (("UnauthorizedOperation",), "Unauthorized"),
    (("AccessDenied",), "Unauthorized"),
    (("AuthFailure",), "Unauthorized"),
    (("ExpiredToken",), "Unauthorized"),
    (("InvalidParameter", "belong to different networks"), "SecurityGroupSubnetVPCMismatch"),
    (("iamInstanceProfile.name is invalid",), "InstanceProfileNameInvalid"),
    (("Invalid IAM Instance Profile name",), "InstanceProfileNameInvalid"),
    (("InvalidLaunchTemplateId.NotFound",), "LaunchTemplateNotFound"),
    (("InvalidLaunchTemplateName.NotFound",), "LaunchTemplateNotFound"),
    (("User data is limited to",), "UserDataSizeLimitExceeded"),
    (("InvalidAMIID.Malformed",), "InvalidAMIID"),
    (("InvalidAMIID.NotFound",), "AMINotFound"),
    (("RequestLimitExceeded",), "RequestLimitExceeded"),
    (("InternalError",), "InternalError"),
    (("not eligible for Free Tier",), "FreeTierIneligible"),
    (("MaxFleetCountExceeded",), "FleetQuotaExceeded"),
    (("PendingVerification",), "AccountPendingVerification"),
    (("MaxSpotInstanceCountExceeded",), "SpotQuotaExceeded"),
    (("VcpuLimitExceeded",), "VCPULimitExceeded"),
    ((NO_ADDRESSES_CODE,), NO_ADDRESSES_CODE),
)
_FIX_BY_REASON: Final = {
    "SpotSLRCreationFailed": "create it once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    "AMIAuthorizationFailure": "share the image with this account, or select another in spec.amiSelectorTerms",
    "Unauthorized": "check the role of the function provision, its permissions boundary and the SCPs",
    "SecurityGroupSubnetVPCMismatch": "select subnets and security groups of one VPC",
    "InstanceProfileNameInvalid": (
        "correct spec.role or spec.instanceProfile of the EC2NodeClass: the instance profile does not exist"
    ),
    "UserDataSizeLimitExceeded": "shorten spec.userData: EC2 accepts 16 KiB",
    "InvalidAMIID": "check spec.amiSelectorTerms",
    "AMINotFound": (
        "the image does not exist any more; status.amis is refreshed every 5 minutes, check spec.amiSelectorTerms"
    ),
    "FreeTierIneligible": "upgrade the account: it can only launch free-tier instance types",
    "FleetQuotaExceeded": "request a higher quota for EC2 Fleet",
    "AccountPendingVerification": "wait until AWS has verified the account",
    "SpotQuotaExceeded": "request a higher Spot quota, or allow on-demand",
    "VCPULimitExceeded": "request a higher quota for on-demand vCPUs, or allow other instance families",
    NO_ADDRESSES_CODE: "select larger or additional subnets",
}


def get_failure_reason(text: str) -> str:
    """Return the reason for EC2's error ``code: message``: the first that matches, or `LaunchFailed`.

    >>> get_failure_reason("UnauthorizedOperation: You are not authorized to perform this operation")
    'Unauthorized'
    """
    return next((reason for words, reason in _REASON_BY_WORDS if all(word in text for word in words)), "LaunchFailed")


def get_failure_fix(reason: str) -> str:
    """Return how to fix *reason*, "" if only AWS can fix it."""
    return _FIX_BY_REASON.get(reason, "")
