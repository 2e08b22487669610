"""Command lines in user data: the arguments of bootstrap.sh and the flags of the kubelet."""

import re
import shlex
from collections.abc import Iterable, Mapping


def bootstrap_arguments(name: str, text: str) -> Mapping[str, str] | None:
    """Answer the arguments of the last call of bootstrap.sh in *text* by their long name, `cluster` being the first.

    Raises:
        ValueError: the call in the part called *name* cannot be read.
    """
    joined = text.replace("\r", "").replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if not line.lstrip().startswith("#")]
    calls = [found for line in lines for found in [re.search(r"bootstrap\.sh(?P<arguments>.*)", line)] if found]
    if not calls:
        return None
    words = _words(name, calls[-1]["arguments"])
    arguments, position = _long_options(words, takes_anything=True)
    if not position:
        raise ValueError(f"{name}: bootstrap.sh is called without a cluster")
    return {**arguments, "cluster": position[0]}


def _words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error} in {text!r}") from error


def _long_options(words: list[str], *, takes_anything: bool = False) -> tuple[dict[str, str], list[str]]:
    """Split *words* into ``--name value`` or ``--name=value``, and the rest; *takes_anything*: dashes as value, too."""
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = ""
    for word in words:
        if word.startswith("--") and not (waiting and takes_anything):
            waiting, equals, value = word[2:].partition("=")
            options[waiting] = value
            waiting = "" if equals else waiting
        elif waiting:
            options[waiting], waiting = word, ""
        else:
            rest.append(word)
    return options, rest


def kubelet_flags(name: str, flags: Iterable[str]) -> dict[str, str]:
    """Answer *flags*, as ``--node-labels="a=b"``, by name; the last of a name wins, node labels are added up.

    Raises:
        ValueError: a flag of the part called *name* has an open quote, or is none.
    """
    found: dict[str, str] = {}
    for text in flags:
        options, rest = _long_options(_words(name, text))
        if rest:
            raise ValueError(f"{name}: {rest[0]!r} is not a kubelet flag")
        labels = [each["node-labels"] for each in (found, options) if each.get("node-labels")]
        found.update(options)
        if labels:
            found["node-labels"] = ",".join(labels)
    return found


def pairs(name: str, text: str, *, separator: str = "=") -> dict[str, str]:
    """Read ``a=b,c=d``.

    Raises:
        ValueError: an entry of the part called *name* has no *separator*.
    """
    result = {}
    for entry in filter(None, text.split(",")):
        key, found, value = entry.partition(separator)
        if not found or not key:
            raise ValueError(f"{name}: {entry!r} is not key{separator}value")
        result[key] = value
    return dict(sorted(result.items()))


def taint_from_text(name: str, text: str) -> dict[str, str]:
    """Read ``key=value:Effect`` or ``key:Effect``.

    Raises:
        ValueError: *text*, in the part called *name*, has no effect.
    """
    front, found, effect = text.rpartition(":")
    if not found:
        raise ValueError(f"{name}: taint {text!r} has no effect")
    key, _, value = front.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
