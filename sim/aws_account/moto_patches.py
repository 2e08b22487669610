"""Fixes of moto by monkey patching, once for the whole process."""

from functools import cache

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket


@cache
def patch_moto() -> None:
    """Disable moto's own evaluation of bucket policies.

    moto ignores the conditions of bucket policies, so that a policy which requires TLS denies everything; the account
    evaluates the complete policies itself.
    """
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL
