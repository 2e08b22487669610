"""Where a path of the Kubernetes API leads."""

import re
from typing import Final

import msgspec

from shared.errors import Gone

_PATH: Final = re.compile(
    r"(?:/api/(?P<core>v1)|/apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?/?"
)
_OF_A_NAMESPACE: Final = re.compile(r"/api/v1/namespaces/(?P<name>[^/]+)/(?P<subresource>status|finalize)/?")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A collection, an object of it (*name*), or the object's *subresource*; *namespace* empty: none or all."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """Answer ``pods`` or ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def parse_path(path: str) -> Place:
    """Parse ``/api/v1/…`` or ``/apis/<group>/<version>/…``.

    Raises:
        Gone: it is neither.
    """
    if found := _OF_A_NAMESPACE.fullmatch(path):
        return Place(plural="namespaces", **found.groupdict())
    if not (found := _PATH.fullmatch(path)):
        raise Gone(f"the server could not find the requested resource {path}")
    parts = {key: value for key, value in found.groupdict().items() if value and key != "core"}
    return Place(**parts)
