"""Whether an installation acts on its decisions; every command uses the same text."""

from typing import Final, Literal

import msgspec

from shared.settings import Settings

ModeState = Literal["active", "paused", "disruption-planned", "planned"]
_DEPLOY_HINT: Final = "write into clusters/NAME.yaml and deploy: "


class OperatingMode(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation does with its decisions."""

    state: ModeState
    message: str
    fix: str = ""
    """How to activate Joiner completely; "" if it is."""


def describe_mode(settings: Settings) -> OperatingMode:
    """Return the operating mode that *settings* result in."""
    if settings.mode == "plan":
        message = "the setting mode is plan: Joiner decides and changes nothing"
        return OperatingMode(state="planned", message=message, fix=f"{_DEPLOY_HINT}mode: active")
    if settings.disruption == "plan":
        message = "the setting disruption is plan: Joiner launches nodes; it reports nodes to disrupt, but keeps them"
        return OperatingMode(state="disruption-planned", message=message, fix=f"{_DEPLOY_HINT}disruption: active")
    if settings.disruption_paused not in ("", "false"):
        message = f"the setting disruption-paused is {settings.disruption_paused}: Joiner does not disrupt nodes"
        return OperatingMode(state="paused", message=message, fix="to resume, deploy without this setting")
    return OperatingMode(state="active", message="Joiner is active")
