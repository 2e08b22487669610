"""EC2's refusal of a launch, with its error code and, approximately, its message."""


class Refused(Exception):
    """One offering is refused; *code* is EC2's error code, the message its text."""

    def __init__(self, code: str, message: str) -> None:
        """Set the code and the message."""
        super().__init__(message)
        self.code = code
