"""What was converted, as an API server and the planner judge it: refused where the field stood in the old manifest."""

from typing import Any

from cli.conversion.accepted import complaints, unread
from cli.conversion.beyond import faults, field_of, unplannable
from cli.conversion.elsewhere import IN_V1
from cli.conversion.remarks import Path, Remarks, spelled
from cli.conversion.remedies import remedy_for, value_at
from cli.conversion.sources import Written

Object = dict[str, Any]


def refuse_unaccepted(one: Written, value: Object, remarks: Remarks) -> None:
    """Refuse what an API server would of *value*, which *one* became; what is refused for better reasons is enough."""
    said = [remark.path for remark in remarks.said if remark.level == "refused"]
    for path, why in faults(value):
        place = _origin(one, spelled(path))[0]
        if not any(place[: len(other)] == other for other in said):
            remarks.refuse(place, why)
    better = [remark.path for remark in remarks.said if remark.level == "refused"]
    for complaint in complaints(value):
        field, _, why = complaint.partition(": ")
        path, is_leaf = _origin(one, field)
        if path not in better and (not said or (is_leaf and not any(path[: len(other)] == other for other in said))):
            how = remedy_for(field, why, value_at(one.value, path))
            remarks.refuse(path, f"{value['kind']} of v1 takes no such {field}: {why}: {how}")
    if not remarks.is_refused():
        for message in unplannable(value):
            field = field_of(message)
            remarks.refuse(_origin(one, field)[0], message.removeprefix(f"{field}: "))
    if value.get("apiVersion") == one.value["apiVersion"]:
        for path, close in unread(value):
            remarks.refuse(path, f"is no field of {value['kind']} v1: {hint_for(path, close)}")


def hint_for(path: Path, close: str) -> str:
    """Answer what to do about the field at *path* of an object of v1, which has none such; *close* is one like it."""
    if path[-1] in IN_V1:
        return IN_V1[str(path[-1])]
    return f"did you mean {close}? Correct or remove it" if close else "correct or remove it"


def _origin(one: Written, field: str) -> tuple[Path, bool]:
    """Answer where in *one* that stands which is *field* of v1, or what is nearest to it; and whether it is a value."""
    places = {spelled(path): path for path in one.lines}
    plain = field.replace("[", ".").replace("]", "") if field not in places else field
    spots = {name.replace("[", ".").replace("]", ""): path for name, path in places.items()} if plain != field else {}
    for name in (field, field.replace("template.spec.", ""), field.replace("template.metadata.", "")):
        path = places.get(name) or spots.get(name.replace("[", ".").replace("]", ""))
        if path is not None:
            return path, not any(other[: len(path)] == path != other for other in one.lines)
    return (places.get("spec", ()), False) if "." not in field else (_origin(one, field.rpartition(".")[0])[0], False)
