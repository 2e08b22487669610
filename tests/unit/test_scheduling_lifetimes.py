"""How old nodes become."""

from datetime import timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model.action import DeleteObject
from shared.model.labels import EXPIRY_JITTER
from shared.model.objects import Meta
from shared.scheduling.claims import claims
from shared.scheduling.lifetimes import expire_after
from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from tests.unit.catalogues import pod, pool, world
from tests.unit.lifecycle_cases import NOW, claim, cluster, node

DAY = timedelta(days=1)
NAMES = [f"default-{number}" for number in range(200)]


def jittering(percent: str) -> Meta:
    return Meta(name="default", annotations=((EXPIRY_JITTER, percent),))


def test_nodes_become_as_old_as_their_pool_says() -> None:
    assert {expire_after(pool(expire_after=DAY), name) for name in NAMES} == {DAY}
    assert expire_after(pool(expire_after=None, meta=jittering("10")), "a") is None


def test_nodes_that_were_born_together_expire_one_after_the_other() -> None:
    own = pool(expire_after=DAY, meta=jittering("10"))
    ages = [age for name in NAMES if (age := expire_after(own, name)) is not None]
    assert len(set(ages)) > 190
    assert DAY * 0.9 <= min(ages) < DAY * 0.905
    assert DAY * 0.995 < max(ages) <= DAY
    assert ages == [expire_after(own, name) for name in NAMES]


@pytest.mark.parametrize("text", ["much", "51", "-1", "0"])
def test_what_cannot_be_read_makes_no_node_younger(text: str) -> None:
    assert expire_after(pool(expire_after=DAY, meta=jittering(text)), "a") == DAY


@pytest.mark.parametrize(("expires", "gone"), [(None, False), (timedelta(days=3000), True)])
def test_without_a_time_a_claim_becomes_as_old_as_it_likes(expires: timedelta | None, *, gone: bool) -> None:
    old = claim(created=NOW - timedelta(days=3650), expire_after=expires)
    ended = [one for one in decide(cluster(node_claims=(old,), nodes=(node(),))) if isinstance(one, DeleteObject)]
    assert [one.why for one in ended] == (["expired"] if gone else [])


def test_a_claim_says_how_old_it_may_become() -> None:
    some = world(pod("x"), node_pools=(pool(expire_after=DAY, meta=jittering("50")),))
    [made] = claims(solve(some, options=Options()), some)
    assert made.expire_after == expire_after(some.node_pools[0], made.name) != DAY
