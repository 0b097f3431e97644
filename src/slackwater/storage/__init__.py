"""What the warehouse's data means: the catalog, the writer's lease, and the records both speak in."""

from slackwater.storage.catalog import Catalog
from slackwater.storage.database import sqlite_url
from slackwater.storage.lease import WriterLease
from slackwater.storage.records import (
    CommitRecord,
    LeaseRecord,
    NewSegment,
    NewSourceFile,
    NewState,
    RefreshRecord,
    SegmentRecord,
    SourceFileRecord,
    SourceRecord,
    StateRecord,
    TableRecord,
    ViewRecord,
)
from slackwater.storage.transaction import Transaction

__all__ = [
    "Catalog",
    "CommitRecord",
    "LeaseRecord",
    "NewSegment",
    "NewSourceFile",
    "NewState",
    "RefreshRecord",
    "SegmentRecord",
    "SourceFileRecord",
    "SourceRecord",
    "StateRecord",
    "TableRecord",
    "Transaction",
    "ViewRecord",
    "WriterLease",
    "sqlite_url",
]
