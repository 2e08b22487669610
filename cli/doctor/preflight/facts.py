"""Facts that only the preflight checks need; a part that could not be read has a `ReadFailure`."""

import msgspec

from cli.facts.model import AccountFacts, DoctorFacts, ReadFailure


class ZoneFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A zone that is enabled in the account."""

    name: str
    kind: str
    """``availability-zone``, ``local-zone`` or ``wavelength-zone``."""
    state: str


class DeploymentPermissions(msgspec.Struct, frozen=True, kw_only=True):
    """What IAM's policy simulator says that the caller may not do."""

    unassumable_roles: tuple[str, ...] = ()
    """Names of the CDK's roles that the caller may not assume."""
    denied_bootstrap_actions: tuple[str, ...] = ()
    """Empty if the account is bootstrapped already."""


class PreflightFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts of a preflight."""

    doctor: DoctorFacts
    account: AccountFacts
    """The account of `doctor`."""
    bootstrap_version: int | ReadFailure | None
    """Version of the CDK's bootstrap stack in the account and region; None if there is none."""
    has_spot_role: bool | ReadFailure
    """Whether the service-linked role for Spot exists."""
    zones: tuple[ZoneFacts, ...] | ReadFailure
    permissions: DeploymentPermissions | ReadFailure
    has_prices: bool | ReadFailure
    """Whether the AWS Price List API responds with a price for the region."""
    node_version: str
    """Version of Node.js on this computer, for example ``22.20.0``; empty if there is none."""
    python_version: str
