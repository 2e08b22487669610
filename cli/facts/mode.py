"""Whether an installation acts on its decisions, in the same words for every command that shows it."""

from typing import Final, Literal

import msgspec

from shared.settings import Settings

ModeState = Literal["active", "paused", "disruption-planned", "planned"]
_DEPLOY_COMMAND: Final = "deploy with -c joiner:"


class OperatingMode(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation does with its decisions."""

    state: ModeState
    message: str
    remedy: str = ""
    """Empty if the mode is the usual one."""


def describe_mode(settings: Settings) -> OperatingMode:
    """Return the operating mode that *settings* result in."""
    if settings.mode == "plan":
        message = "joiner:mode is plan: it decides and changes nothing"
        return OperatingMode(state="planned", message=message, remedy=f"{_DEPLOY_COMMAND}mode=active")
    if settings.disruption == "plan":
        message = "it launches; it tells which nodes might go and keeps them until joiner:disruption is active"
        return OperatingMode(state="disruption-planned", message=message, remedy=f"{_DEPLOY_COMMAND}disruption=active")
    if settings.disruption_paused not in ("", "false"):
        message = f"joiner:disruption-paused is {settings.disruption_paused}: nodes stay although they might go"
        return OperatingMode(state="paused", message=message, remedy="deploy without it once you may")
    return OperatingMode(state="active", message="it is active")
