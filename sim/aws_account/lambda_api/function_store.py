"""The state of Lambda: each function has $LATEST, its published versions, and aliases of versions."""

from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

import msgspec

from sim.aws_http.protocol import ApiError

LATEST_QUALIFIER: Final = "$LATEST"
HTTP_NOT_FOUND: Final = 404
HTTP_CONFLICT: Final = 409


class FunctionVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The code and configuration of a function: $LATEST or a published version."""

    number: str
    config: dict[str, Any]
    """The configuration in the API's format."""
    code: bytes

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of the code in base64, as Lambda writes it."""
        return b64encode(sha256(self.code).digest()).decode()

    def is_same_version(self, other_version: "FunctionVersion") -> bool:
        """Return whether publishing both gives one version: a changed description alone does not make a new version."""
        config, other_config = ({**version.config, "Description": ""} for version in (self, other_version))
        return config == other_config and self.code == other_version.code


class Function:
    """One function with its versions, aliases, permissions and settings."""

    def __init__(self, name: str, arn: str, latest: FunctionVersion) -> None:
        """Start with only *latest*."""
        self.name, self.arn, self.latest = name, arn, latest
        self.version_by_number: dict[str, FunctionVersion] = {}
        self.version_count = 0
        self.aliases: dict[str, dict[str, Any]] = {}
        self.permissions: dict[str, dict[str, dict[str, Any]]] = {}
        """Policy statements by qualifier ("" is the function itself), then by statement id."""
        self.invoke_configs: dict[str, dict[str, Any]] = {}
        """Event invoke configurations, by qualifier."""
        self.reserved_concurrency: int | None = None
        self.recursive_loop = "Terminate"
        """What Lambda does at the 17th invocation of one chain: ``Terminate`` or ``Allow``."""
        self.tags: dict[str, str] = {}

    def get_version(self, qualifier: str) -> FunctionVersion:
        """Return the version that *qualifier* selects; for a weighted alias, its primary version.

        Raises:
            ApiError: there is no such version.
        """
        if qualifier in ("", LATEST_QUALIFIER):
            return self.latest
        if qualifier in self.aliases:
            return self.get_version(self.aliases[qualifier]["FunctionVersion"])
        if qualifier not in self.version_by_number:
            raise ApiError("ResourceNotFoundException", f"Function not found: {self.arn}:{qualifier}", HTTP_NOT_FOUND)
        return self.version_by_number[qualifier]

    def publish_version(self, description: str) -> FunctionVersion:
        """Publish $LATEST as a new version; return the last version if nothing changed since."""
        last = self.version_by_number.get(str(self.version_count))
        if last is not None and last.is_same_version(self.latest):
            return last
        self.version_count += 1
        config = {**self.latest.config, **({"Description": description} if description else {})}
        version = FunctionVersion(number=str(self.version_count), config=config, code=self.latest.code)
        self.version_by_number[version.number] = version
        return version

    def list_routes(self, qualifier: str) -> list[tuple[str, float]]:
        """Return the versions to which *qualifier* routes, each with its weight, by version number.

        Raises:
            ApiError: there is no such version or alias.
        """
        if qualifier not in self.aliases:
            return [(self.get_version(qualifier).number, 1.0)]
        alias = self.aliases[qualifier]
        weight_by_version: dict[str, float] = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        weights = {**weight_by_version, alias["FunctionVersion"]: 1.0 - sum(weight_by_version.values())}
        return sorted(weights.items())

    def find_aliases_of_version(self, number: str) -> list[str]:
        """Return the aliases that route to the version *number*."""
        return sorted(name for name in self.aliases if number in dict(self.list_routes(name)))


class LayerStore:
    """All layers, by the ARN of a layer version."""

    def __init__(self) -> None:
        """Start without layers."""
        self.version_by_arn: dict[str, dict[str, Any]] = {}
        """The existing layer versions in the API's format."""
        self.code_by_arn: dict[str, bytes] = {}
        """The zip files, also of deleted layer versions: functions that use one keep its code."""
        self._version_count_by_arn: dict[str, int] = {}

    def publish_layer_version(self, arn: str, description: dict[str, Any], code: bytes) -> dict[str, Any]:
        """Add a version of the layer with *arn* and return it in the API's format."""
        number = self._version_count_by_arn[arn] = self._version_count_by_arn.get(arn, 0) + 1
        content = {"CodeSha256": b64encode(sha256(code).digest()).decode(), "CodeSize": len(code)}
        version_arn = f"{arn}:{number}"
        self.code_by_arn[version_arn] = code
        self.version_by_arn[version_arn] = {
            **description,
            "LayerArn": arn,
            "LayerVersionArn": version_arn,
            "Version": number,
            "Content": content,
        }
        return self.version_by_arn[version_arn]

    def get_layer_version(self, arn: str) -> dict[str, Any]:
        """Return the layer version with *arn*.

        Raises:
            ApiError: there is no such layer version.
        """
        if arn not in self.version_by_arn:
            raise ApiError("ResourceNotFoundException", f"Layer version {arn} does not exist.", HTTP_NOT_FOUND)
        return self.version_by_arn[arn]
