"""Descriptions of settings: the strings below the fields that declare them."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from itertools import pairwise


def read_descriptions(struct_type: type) -> Mapping[str, str]:
    """Return the description of each field by name, on one line; Python does not keep the strings at run time."""
    descriptions: dict[str, str] = {}
    for parent in reversed(struct_type.__mro__):
        if parent.__module__.partition(".")[0] in ("infra", "shared"):
            descriptions |= _read_class_descriptions(parent)
    return descriptions


def _read_class_descriptions(struct_type: type) -> Mapping[str, str]:
    [node] = ast.parse(textwrap.dedent(inspect.getsource(struct_type))).body
    statements = node.body if isinstance(node, ast.ClassDef) else []
    return {
        field.target.id: " ".join(str(ast.literal_eval(below.value)).split())
        for field, below in pairwise(statements)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr)
    }
