"""Lambda's retries of asynchronous invocations: a failed one after one minute, then after two more minutes.

A throttled invocation is retried at growing intervals, until it is too old.
"""

from datetime import timedelta
from typing import Final

DEFAULT_ASYNC_RETRIES: Final = 2
"""Lambda's default number of retries of a failed asynchronous invocation."""
_FIRST_RETRY_DELAY: Final = timedelta(minutes=1)
_MAX_THROTTLE_DELAY_S: Final = 300


def compute_retry_delay(failures: int, max_retries: int) -> timedelta | None:
    """Return the delay of the next retry after that many failures; None: there is no further retry.

    >>> [str(compute_retry_delay(failures, max_retries=2)) for failures in (1, 2, 3)]
    ['0:01:00', '0:02:00', 'None']
    """
    return _FIRST_RETRY_DELAY * failures if failures <= max_retries else None


def compute_throttle_delay(throttles: int) -> timedelta:
    """Return the delay of the next retry of an invocation that was throttled that many times.

    >>> [str(compute_throttle_delay(throttles)) for throttles in (1, 2, 3, 80)]
    ['0:00:01', '0:00:02', '0:00:04', '0:05:00']
    """
    return timedelta(seconds=min(2 ** (throttles - 1), _MAX_THROTTLE_DELAY_S))
