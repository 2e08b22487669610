"""What was known of the account at a cycle: the last recorded answers of `catalog`."""

from msgspec.structs import replace

from cli.journal.journal import Cycle, Journal
from cli.replay.changes import ChangedCluster
from cli.replay.cycle_lookup import RecordStore
from cli.replay.selectors import RecordedSelections, build_recorded_answers
from cli.terminal.errors import InputError
from shared.model.decisions.decision_answers import AccountAnswersRecord, find_answer
from shared.report.journal.decision_record import DecisionRecord


def load_recorded_selections(
    journal: Journal, store: RecordStore, cycle: Cycle, record: DecisionRecord
) -> RecordedSelections:
    """Return the selections known at *cycle*, which has the decision record *record*.

    A decision record of `catalog` that cannot be read is ignored; the statuses of node classes are always known.
    """
    classes, now = record.cluster.node_classes, record.cluster.taken_at
    is_catalog_record = find_answer(record.inputs.answers, AccountAnswersRecord) is not None
    catalog_record = record if is_catalog_record else _find_catalog_record(journal, store, cycle)
    account = find_answer(catalog_record.inputs.answers, AccountAnswersRecord) if catalog_record is not None else None
    if catalog_record is None or account is None:
        return RecordedSelections(classes=classes, now=now)
    answers_by_class = dict(account.answers)
    class_answers = tuple(
        (node_class, answers_by_class[node_class.name])
        for node_class in catalog_record.cluster.node_classes
        if node_class.name in answers_by_class
    )
    return RecordedSelections(classes=classes, catalog_answers=class_answers, now=now)


def _find_catalog_record(journal: Journal, store: RecordStore, cycle: Cycle) -> DecisionRecord | None:
    """Return the last decision record of `catalog` before *cycle*, None if there is none."""
    earlier_entries = (
        earlier_cycle.entry
        for earlier_cycle in reversed(journal.cycles)
        if earlier_cycle.entry.function == "catalog"
        and earlier_cycle.entry.snapshot
        and earlier_cycle.entry.at <= cycle.entry.at
    )
    catalog_entry = next(earlier_entries, None)
    if catalog_entry is None:
        return None
    try:
        return store.load_record(catalog_entry.snapshot)
    except InputError:
        return None


def with_node_class_answers(
    record: DecisionRecord, changes: ChangedCluster, selections: RecordedSelections
) -> DecisionRecord:
    """Return *record*; if it is one of `catalog`, with the answers that changed node classes would have got."""
    account = find_answer(record.inputs.answers, AccountAnswersRecord)
    if account is None or not changes.changed_node_classes:
        return record
    answers_by_class = dict(account.answers)
    for node_class in changes.cluster.node_classes:
        if node_class.name in changes.changed_node_classes:
            answers_by_class[node_class.name] = build_recorded_answers(
                node_class, answers_by_class.get(node_class.name), selections
            )
    changed_account = replace(account, answers=tuple(sorted(answers_by_class.items())))
    return replace(record, inputs=replace(record.inputs, answers=(changed_account,)))
