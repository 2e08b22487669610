"""Parse command lines in user data: the arguments of bootstrap.sh and the flags of the kubelet."""

import re
import shlex
from collections.abc import Iterable, Mapping


def parse_bootstrap_arguments(name: str, text: str) -> Mapping[str, str] | None:
    """Return the arguments of the last bootstrap.sh call in *text* by long name, the first one as `cluster`.

    Raises:
        ValueError: the call in the part *name* is malformed.
    """
    unfolded_text = text.replace("\r", "").replace("\\\n", " ")
    lines = [line for line in unfolded_text.splitlines() if not line.lstrip().startswith("#")]
    call_matches = [match for line in lines for match in [re.search(r"bootstrap\.sh(?P<arguments>.*)", line)] if match]
    if not call_matches:
        return None
    words = _split_words(name, call_matches[-1]["arguments"])
    arguments, positional = _parse_long_options(words, allow_dashed_values=True)
    if not positional:
        raise ValueError(f"{name}: bootstrap.sh is called without a cluster")
    return {**arguments, "cluster": positional[0]}


def _split_words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error} in {text!r}") from error


def _parse_long_options(words: list[str], *, allow_dashed_values: bool = False) -> tuple[dict[str, str], list[str]]:
    """Split *words* into ``--name value`` or ``--name=value`` options, and positional words.

    *allow_dashed_values*: the value of an option may begin with dashes.
    """
    options: dict[str, str] = {}
    positional: list[str] = []
    option_name = ""
    for word in words:
        if word.startswith("--") and not (option_name and allow_dashed_values):
            option_name, equals, value = word[2:].partition("=")
            options[option_name] = value
            option_name = "" if equals else option_name
        elif option_name:
            options[option_name], option_name = word, ""
        else:
            positional.append(word)
    return options, positional


def parse_kubelet_flags(name: str, flags: Iterable[str]) -> dict[str, str]:
    """Return *flags*, such as ``--node-labels="a=b"``, by name; the last value wins, node labels are joined.

    Raises:
        ValueError: a flag of the part *name* has an open quote, or a word is not a flag.
    """
    values_by_flag: dict[str, str] = {}
    for text in flags:
        options, positional = _parse_long_options(_split_words(name, text))
        if positional:
            raise ValueError(f"{name}: {positional[0]!r} is not a kubelet flag")
        labels = [
            flag_values["node-labels"] for flag_values in (values_by_flag, options) if flag_values.get("node-labels")
        ]
        values_by_flag.update(options)
        if labels:
            values_by_flag["node-labels"] = ",".join(labels)
    return values_by_flag


def parse_pairs(name: str, text: str, *, separator: str = "=") -> dict[str, str]:
    """Parse ``a=b,c=d``.

    Raises:
        ValueError: an entry of the part *name* has no *separator*.
    """
    result = {}
    for entry in filter(None, text.split(",")):
        key, found_separator, value = entry.partition(separator)
        if not found_separator or not key:
            raise ValueError(f"{name}: {entry!r} is not key{separator}value")
        result[key] = value
    return dict(sorted(result.items()))


def parse_taint(name: str, text: str) -> dict[str, str]:
    """Parse ``key=value:Effect`` or ``key:Effect``.

    Raises:
        ValueError: *text*, in the part *name*, has no effect.
    """
    key_and_value, found_separator, effect = text.rpartition(":")
    if not found_separator:
        raise ValueError(f"{name}: taint {text!r} has no effect")
    key, _, value = key_and_value.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
