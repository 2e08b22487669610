"""Tests of targeted kills: which scripts are run again for which call sites."""

from sim.fault_simulation.drawing.draw_script import draw_script
from sim.fault_simulation.events.call_sites import KillTarget
from sim.fault_simulation.targeted_kills import SiteSightings, with_kills


def test_script_selection_for_one_seed_does_not_depend_on_hashes() -> None:
    targets: list[KillTarget] = [(f"disrupt kube.list {letter}", "before") for letter in "abcdefgh"]
    scripts = [with_kills(draw_script(1), [target]) for target in targets]
    sightings = SiteSightings()
    for target, script in zip(targets, scripts, strict=True):
        sightings.add(script, [target])
    [targeted_script] = sightings.build_targeted_scripts(targets, len(targets))
    assert targeted_script == with_kills(scripts[-1], targets)
