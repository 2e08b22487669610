"""The ledger's rows: read once per round for all NodePools, written once for each that launches something.

So a launch of a thousand claims costs two calls of the table for its limits, not a thousand.
"""

from typing import Final

import msgspec

from shared.errors import Conflict
from shared.launch.breaker import pool_of
from shared.launch.groups import LaunchPlan
from shared.launch.ledger import Book
from shared.model.cluster import Cluster
from shared.ports import Fence, Row, World

KIND: Final = "ledger"


def read_books(world: World, cluster: Cluster) -> tuple[Book, ...]:
    """Answer the rows of NodePools; none is read where none has limits.

    A row that cannot be read promises nothing; what the rows of open launches say is counted all the same.

    Raises:
        Fault: the table did not answer.
    """
    if not any(pool.limits is not None and pool.limits.amounts for pool in cluster.node_pools):
        return ()
    return tuple(_book(row) for row in world.table.rows(KIND))


def promise(plan: LaunchPlan, cluster: Cluster, world: World, fence: Fence | None) -> LaunchPlan:
    """Write down what *plan* takes of limits, and answer the plan without the new launches that somebody overtook.

    Raises:
        Fault: the table did not answer; nothing was launched.
    """
    if world.settings.mode == "plan":
        return plan
    lost = {book.pool for book in plan.books if not _is_written(book, world, fence)}
    known = {group.name for group in cluster.launch_groups}
    kept = (one for one in plan.launches if one.group.name in known or pool_of(one.group.request) not in lost)
    return msgspec.structs.replace(plan, launches=tuple(kept))


def _is_written(book: Book, world: World, fence: Fence | None) -> bool:
    body = msgspec.json.encode(book).decode()
    try:
        world.table.write(KIND, book.pool, body, version=book.version, fence=fence)
    except Conflict:
        return False
    return True


def _book(row: Row) -> Book:
    try:
        read = msgspec.json.decode(row.body, type=Book)
    except msgspec.DecodeError:
        read = Book(pool=row.name)
    return msgspec.structs.replace(read, pool=row.name, version=row.version)
