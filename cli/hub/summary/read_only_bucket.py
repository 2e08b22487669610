"""A bucket to which nothing is written."""

from typing import NoReturn

from shared.errors import Invalid


class ReadOnlyBucket:
    """A bucket of the hub: nothing can be written."""

    def put(self, key: str, body: bytes) -> NoReturn:  # noqa: ARG002 - the signature of Bucket
        """Refuse the write.

        Raises:
            Invalid: always.
        """
        raise Invalid(f"{key}: `joiner hub` does not write")
