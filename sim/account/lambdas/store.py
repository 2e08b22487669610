"""What Lambda keeps: a function is what it is now, what it was when it was published, and names that lead there."""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from sim.http.protocol import ApiError

LATEST: Final = "$LATEST"
NOT_FOUND: Final = 404
CONFLICT: Final = 409


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A function as it is or was."""

    number: str
    config: dict[str, Any]
    """In the API's words."""
    code: bytes

    @property
    def sha256(self) -> str:
        """Answer the code's digest as Lambda writes it."""
        return b64encode(sha256(self.code).digest()).decode()

    def is_like(self, other: "Version") -> bool:
        """Whether publishing both would make one version: a description alone does not make another."""
        mine, yours = ({**one.config, "Description": ""} for one in (self, other))
        return mine == yours and self.code == other.code


class Function:
    """One function with all that hangs on it."""

    def __init__(self, name: str, arn: str, latest: Version) -> None:
        """Have only *latest*."""
        self.name, self.arn, self.latest = name, arn, latest
        self.published: dict[str, Version] = {}
        self.count = 0
        self.aliases: dict[str, dict[str, Any]] = {}
        self.permissions: dict[str, dict[str, dict[str, Any]]] = {}
        """By qualifier ("" is the function itself), then by statement id."""
        self.invoke_configs: dict[str, dict[str, Any]] = {}
        """By qualifier."""
        self.reserved: int | None = None
        self.recursive_loop = "Terminate"
        """What becomes of the seventeenth call of one chain."""
        self.tags: dict[str, str] = {}

    def version(self, qualifier: str) -> Version:
        """Answer the version that *qualifier* leads to; of an alias, the one that most calls go to.

        Raises:
            ApiError: there is none.
        """
        if qualifier in ("", LATEST):
            return self.latest
        if qualifier in self.aliases:
            return self.version(self.aliases[qualifier]["FunctionVersion"])
        if qualifier not in self.published:
            raise ApiError("ResourceNotFoundException", f"Function not found: {self.arn}:{qualifier}", NOT_FOUND)
        return self.published[qualifier]

    def publish(self, description: str) -> Version:
        """Keep what it is now under a number; the last number again, if it has not changed since."""
        last = self.published.get(str(self.count))
        if last is not None and last.is_like(self.latest):
            return last
        self.count += 1
        config = {**self.latest.config, **({"Description": description} if description else {})}
        made = Version(number=str(self.count), config=config, code=self.latest.code)
        self.published[made.number] = made
        return made

    def routes(self, qualifier: str) -> list[tuple[str, float]]:
        """Answer the versions that calls of *qualifier* go to, each with its part of them, by number.

        Raises:
            ApiError: there is no such version or alias.
        """
        if qualifier not in self.aliases:
            return [(self.version(qualifier).number, 1.0)]
        alias = self.aliases[qualifier]
        others: dict[str, float] = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        parts = {**others, alias["FunctionVersion"]: 1.0 - sum(others.values())}
        return sorted(parts.items())

    def users_of(self, number: str) -> list[str]:
        """Answer the aliases that lead to the version *number*."""
        return sorted(name for name in self.aliases if number in dict(self.routes(name)))


class Layers:
    """All layers, by the ARN of a version."""

    def __init__(self) -> None:
        """Begin without any."""
        self._versions: dict[str, dict[str, Any]] = {}
        self._code: dict[str, bytes] = {}
        self._counts: dict[str, int] = {}

    def publish(self, arn: str, said: dict[str, Any], code: bytes) -> dict[str, Any]:
        """Add a version of the layer with *arn*; answer it in the API's words."""
        number = self._counts[arn] = self._counts.get(arn, 0) + 1
        content = {"CodeSha256": b64encode(sha256(code).digest()).decode(), "CodeSize": len(code)}
        made = {**said, "LayerArn": arn, "LayerVersionArn": f"{arn}:{number}", "Version": number, "Content": content}
        self._versions[made["LayerVersionArn"]], self._code[made["LayerVersionArn"]] = made, code
        return made

    def find(self, arn: str) -> dict[str, Any]:
        """Answer the version with *arn*.

        Raises:
            ApiError: there is none.
        """
        if arn not in self._versions:
            raise ApiError("ResourceNotFoundException", f"Layer version {arn} does not exist.", NOT_FOUND)
        return self._versions[arn]

    def code(self, arns: Iterable[str]) -> tuple[bytes, ...]:
        """Answer the zip files of the versions with *arns*.

        Raises:
            KeyError: one is gone.
        """
        return tuple(self._code[arn] for arn in arns)

    def remove(self, arn: str) -> None:
        """Forget the version; functions that have it keep it."""
        self._versions.pop(arn, None)

    def all(self) -> list[dict[str, Any]]:
        """Answer all versions."""
        return list(self._versions.values())
