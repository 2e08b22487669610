"""What is wrong with a request: a parameter, and the error with which AWS responds."""

from typing import Final

import msgspec

CLIENT_SIDE_CODE: Final = "ParamValidation"
"""The code of a problem for which botocore does not send the request at all."""


class RequestProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for which AWS rejects a request."""

    code: str
    """AWS's error code, or `CLIENT_SIDE_CODE`."""
    message: str
    rule: str = ""
    """The id of the rule in `rules.toml`; empty: the service model."""


class RejectedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that AWS would reject."""

    function: str
    """The function that made the request; empty: not a function of the stack."""
    call: str
    """Service and operation, as ``ec2:DescribeInstances``."""
    problem: RequestProblem

    def describe(self) -> str:
        """Return the rejection as one line."""
        caller = self.function or "the deployer"
        return f"AWS rejects {self.call} of {caller}: {self.problem.code}: {self.problem.message}"
