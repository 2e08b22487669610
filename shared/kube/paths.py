"""What a path of the Kubernetes API leads to, and how a page of a collection is asked for."""

import re
from typing import Final
from urllib.parse import urlencode

_OBJECT: Final = re.compile(
    r"(?:/api/[^/]+|/apis/[^/]+/[^/]+)"
    r"(?:/namespaces/[^/]+/[^/]+/[^/]+|/(?!namespaces/[^/]+/)[^/]+/[^/]+)"
)


def is_object(path: str) -> bool:
    """Answer whether *path* names one object, not a collection or a subresource.

    >>> [is_object(f"/api/v1/{end}") for end in ("namespaces/shop", "namespaces/shop/pods/cart", "nodes/a")]
    [True, True, True]
    >>> [is_object(f"/api/v1/{end}") for end in ("namespaces", "namespaces/shop/pods", "nodes", "nodes/a/status")]
    [False, False, False, False]
    """
    return bool(_OBJECT.fullmatch(path))


def list_path(path: str, *, label_selector: str, field_selector: str, limit: int, continue_token: str) -> str:
    """Answer *path* with the query for one page; what is empty, or a *limit* of 0, is not asked for.

    >>> list_path("/api/v1/pods", label_selector="a=b", field_selector="", limit=2, continue_token="")
    '/api/v1/pods?labelSelector=a%3Db&limit=2'
    >>> list_path("/api/v1/pods", label_selector="", field_selector="", limit=0, continue_token="")
    '/api/v1/pods'
    """
    query = {
        "labelSelector": label_selector,
        "fieldSelector": field_selector,
        "limit": str(limit) if limit else "",
        "continue": continue_token,
    }
    said = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{said}" if said else path
