"""What a path of the Kubernetes API leads to."""

import re
from typing import Final

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
