"""A receiver of Prometheus remote write as a protocol."""

from typing import Protocol


class RemoteWrite(Protocol):
    """The endpoint of the setting `remote-write-url`."""

    def write(self, body: bytes) -> None:
        """Post a WriteRequest in the snappy block format, in one attempt.

        Raises:
            Invalid: samples of the request were refused; others may have been accepted.
            Fault: the endpoint did not respond, or refused the caller or the rate.
        """
