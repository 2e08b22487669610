"""EC2's words -> the reason that a claim's condition names, and what may be done about it."""

from typing import Final

NO_CAPACITY: Final = frozenset(
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
"""EC2's codes for "not this offering, not now"."""
NO_SPOT_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
SPREAD_FULL: Final = "limit of instances in this spread placement group"
"""EC2's words, under several codes: the zone has as many of the group's machines as it may."""
NO_ADDRESSES: Final = "InsufficientFreeAddressesInSubnet"

_REASONS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    ((NO_SPOT_ROLE,), "SpotSLRCreationFailed"),
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
    ((NO_ADDRESSES,), NO_ADDRESSES),
)
_REMEDIES: Final = {
    "SpotSLRCreationFailed": "create it once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    "AMIAuthorizationFailure": "share the image with this account, or select another in spec.amiSelectorTerms",
    "Unauthorized": "look at the role of the function named provision, and at permission boundaries and SCPs",
    "SecurityGroupSubnetVPCMismatch": "select subnets and security groups of one VPC",
    "InstanceProfileNameInvalid": "spec.role or spec.instanceProfile of the EC2NodeClass names none that EC2 knows",
    "UserDataSizeLimitExceeded": "shorten spec.userData: EC2 takes 16 KiB",
    "InvalidAMIID": "look at spec.amiSelectorTerms",
    "AMINotFound": "the image is gone; status.amis is made anew every 5 minutes, look at spec.amiSelectorTerms",
    "FreeTierIneligible": "the account may only start types of the free tier",
    "FleetQuotaExceeded": "ask for a higher quota of fleets",
    "AccountPendingVerification": "wait until AWS has verified the account",
    "SpotQuotaExceeded": "ask for a higher spot quota, or allow on-demand",
    "VCPULimitExceeded": "ask for a higher quota of on-demand vCPUs, or allow other families",
    NO_ADDRESSES: "select larger or further subnets",
}


def reason_of(text: str) -> str:
    """Answer the reason for what EC2 said, ``code: message``; the first that matches, or `LaunchFailed`.

    >>> reason_of("UnauthorizedOperation: You are not authorized to perform this operation")
    'Unauthorized'
    """
    return next((reason for words, reason in _REASONS if all(one in text for one in words)), "LaunchFailed")


def remedy_of(reason: str) -> str:
    """Answer what may be done about it, "" if only EC2 can do something."""
    return _REMEDIES.get(reason, "")
