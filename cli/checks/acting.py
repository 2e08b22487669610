"""Whether an installation acts on what it decides, in the words of everybody who shows it."""

from typing import Final, Literal

import msgspec

from shared.settings import Settings

State = Literal["active", "paused", "disruption-planned", "planned"]
_DEPLOY: Final = "deploy with -c joiner:"


class Acting(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of decisions."""

    state: State
    what: str
    remedy: str = ""
    """Empty: it is as most want it."""


def acting(settings: Settings) -> Acting:
    """Answer what *settings* make of it."""
    if settings.mode == "plan":
        what = "joiner:mode is plan: it decides and changes nothing"
        return Acting(state="planned", what=what, remedy=f"{_DEPLOY}mode=active")
    if settings.disruption == "plan":
        what = "it launches; it tells which nodes might go and keeps them until joiner:disruption is active"
        return Acting(state="disruption-planned", what=what, remedy=f"{_DEPLOY}disruption=active")
    if settings.disruption_paused not in ("", "false"):
        what = f"joiner:disruption-paused is {settings.disruption_paused}: nodes stay although they might go"
        return Acting(state="paused", what=what, remedy="deploy without it once you may")
    return Acting(state="active", what="it is active")
