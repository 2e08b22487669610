"""The end of a stack: its nodes go with it, or keep it; and nobody is left who might still launch one.

A function that looked at NodePools decides on what it saw for as long as it may run. So whoever finds none asks again
once every such function is over.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec

from functions.installer.manifests import Manifest, name_of
from functions.installer.plan import empty
from functions.installer.shell import CLAIMS, CLASSES, PAUSE, Installer, Refused
from shared.errors import Gone
from shared.model.holds import HOME, LAUNCHES, Hold, holds_from, holds_text
from shared.model.labels import LAUNCHES_PAUSED

POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
PLANNED: Final = timedelta(seconds=60)
"""Longer than a function may run that looks at NodePools."""
PROFILE: Final = "karpenter.k8s.aws/instance-profile-name"
"""Annotation of a NodeClaim that was launched."""
REMEDY: Final = "kubectl delete nodepools --all, and wait; or deploy with joiner:on-destroy=purge (or abandon) first"
WHO: Final = "cloudformation"
PAUSED: Final = timedelta(hours=1)
"""So long launches are paused while a stack is deleted; if that fails they go on by themselves."""
NAMESPACE: Final = f"/api/v1/namespaces/{HOME}"


def emptied(installer: Installer) -> tuple[str, ...]:
    """End NodePools, so that no node is made anew, NodeClaims, and EC2NodeClasses; wait for the functions to do so.

    Raises:
        Refused: some were left at the deadline; once more will go on.
        Fault: the API server did not let us, until the deadline.
    """
    _end(installer, "NodeClaims", POOLS, CLAIMS)
    _end(installer, "EC2NodeClasses", CLASSES)
    return ("all NodePools, NodeClaims and EC2NodeClasses are gone",)


def left(installer: Installer, profiles: tuple[str, ...]) -> tuple[str, ...]:
    """Look that no node has one of *profiles*, or is about to: with its role it would lose the cluster.

    Where there are NodePools launches are paused from now on, and it is looked again once nobody plans any more.

    Raises:
        Refused: some do; nothing is paused.
        Fault: the API server did not let us, until the deadline.
    """
    _refuse(installer, profiles)
    if installer.patiently(lambda: any(True for _ in installer.objects(POOLS))):
        installer.patiently(lambda: _pause(installer))
        installer.wait(PLANNED)
        try:
            _refuse(installer, profiles)
        except Refused:
            resumed(installer)
            raise
    return ()


def resumed(installer: Installer) -> None:
    """Take back what `left` paused.

    Raises:
        Fault: the API server did not let us, until the deadline.
    """
    installer.patiently(lambda: _say(installer, ()))


def _end(installer: Installer, what: str, *collections: str) -> None:
    """Delete all that is in *collections* until there is none in the last, *what*, and the first has rested.

    Raises:
        Refused: some were left at the deadline.
    """
    seen_at: datetime | None = None
    while True:
        stand = installer.patiently(lambda: _asked(installer, collections))
        seen_at = installer.clock() if stand and len(collections) > 1 else seen_at
        names = installer.patiently(lambda: [name_of(one) for _, one in installer.objects(collections[-1])])
        is_quiet = seen_at is None or installer.clock() - seen_at >= PLANNED
        if not names and is_quiet:
            return
        if installer.clock() + PAUSE > installer.deadline:
            some = (
                f"{len(names)} {what} are still going: {', '.join(names[:5])}" if names else "NodePools went just now"
            )
            raise Refused(f"{some}; delete the stack again")
        installer.wait(PAUSE)


def _asked(installer: Installer, collections: tuple[str, ...]) -> bool:
    """Delete all that is in *collections*; answer whether something was in the first."""
    found = [tuple(installer.objects(each)) for each in collections]
    installer.carried_out(empty(*found))
    return bool(found[0])


def _refuse(installer: Installer, profiles: tuple[str, ...]) -> None:
    claims = installer.patiently(lambda: [one for _, one in installer.objects(CLAIMS)])
    names = [name_of(one) for one in claims if _is_bound(one, profiles)]
    if names:
        raise Refused(f"{len(names)} nodes run with the stack's role: {', '.join(names[:5])}; {REMEDY}")


def _is_bound(claim: Manifest, profiles: tuple[str, ...]) -> bool:
    """Whether *claim* has one of *profiles*, or may come to have it: nobody knows before it was launched."""
    given = (claim["metadata"].get("annotations") or {}).get(PROFILE)
    is_launched = bool((claim.get("status") or {}).get("providerID"))
    return given in profiles if given or is_launched else True


def _pause(installer: Installer) -> None:
    now = installer.clock()
    hold = Hold(what=LAUNCHES, until=now + PAUSED, by=WHO, since=now, because="the stack of Joiner is being deleted")
    _say(installer, (hold,))


def _say(installer: Installer, ours: tuple[Hold, ...]) -> None:
    """Let *ours* stand beside what others hold back; what cannot be read holds everything back already."""
    with suppress(Gone, ValueError):
        metadata = msgspec.json.decode(installer.kube.read(NAMESPACE))["metadata"]
        text = (metadata.get("annotations") or {}).get(LAUNCHES_PAUSED, "")
        others = tuple(one for one in holds_from(text, LAUNCHES) if one.by != WHO)
        said = holds_text((*others, *ours))
        if said != text:
            annotations = {LAUNCHES_PAUSED: said or None}
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
            installer.kube.patch(NAMESPACE, msgspec.json.encode(body))
