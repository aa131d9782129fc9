"""Receipts of a workspace as events, for whoever folds them and whoever reads before that. The catalog finds metadata files."""

from arco.catalog.workspace import Workspace
from arco.fold.receipt_events import ReceiptEvents


def receipts_of(parts: Workspace) -> ReceiptEvents:
    return ReceiptEvents(parts.tier1.store, parts.scope, parts.files.find, parts.clock, parts.entropy)
