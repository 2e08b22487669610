"""Parse request paths of the Kubernetes API."""

import re
from typing import Final

import msgspec

from shared.errors import NotFound

_PATH_PATTERN: Final = re.compile(
    r"(?:/api/(?P<core>v1)|/apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?/?"
)
_NAMESPACE_SUBRESOURCE_PATTERN: Final = re.compile(
    r"/api/v1/namespaces/(?P<name>[^/]+)/(?P<subresource>status|finalize)/?"
)


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a request path: a collection, an object in it (*name*), or the object's *subresource*.

    An empty *namespace* means cluster-scoped or all namespaces.
    """

    plural: str
    group: str = ""
    version: str = "v1"
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """The resource name, such as ``pods`` or ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def parse_path(path: str) -> RequestInfo:
    """Parse ``/api/v1/…`` or ``/apis/<group>/<version>/…``.

    Raises:
        NotFound: the path has neither form.
    """
    if match := _NAMESPACE_SUBRESOURCE_PATTERN.fullmatch(path):
        return RequestInfo(plural="namespaces", **match.groupdict())
    if not (match := _PATH_PATTERN.fullmatch(path)):
        raise NotFound(f"the server could not find the requested resource {path}")
    parts = {key: value for key, value in match.groupdict().items() if value and key != "core"}
    return RequestInfo(**parts)
