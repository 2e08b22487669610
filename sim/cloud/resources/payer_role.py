"""The payer account of the organization: its commitments, and the IAM role through which another account reads them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from sim.cloud.resources.commitments import AccountCommitments

PAYER_ACCOUNT_ID: Final = "444455556666"


class PayerRole(msgspec.Struct, frozen=True, kw_only=True):
    """A role, with the documents of its policies."""

    arn: str
    trust_policy: Mapping[str, Any]
    permissions_policy: Mapping[str, Any]


class PayerAccount:
    """The payer account; without a role, no other account can read it."""

    def __init__(self, commitments: AccountCommitments) -> None:
        """Start without a role."""
        self.commitments = commitments
        self.role: PayerRole | None = None

    def create_role(
        self, name: str, trust_policy: Mapping[str, Any], permissions_policy: Mapping[str, Any]
    ) -> PayerRole:
        """Create the role *name* in place of an earlier one."""
        arn = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/{name}"
        self.role = PayerRole(arn=arn, trust_policy=trust_policy, permissions_policy=permissions_policy)
        return self.role
