"""What moto does wrong, put right from outside, once and for the whole process."""

from functools import cache

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket


@cache
def mend() -> None:
    """Do it.

    It reads bucket policies without their conditions, so that one which wants TLS forbids everything; the account
    evaluates them whole.
    """
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL
