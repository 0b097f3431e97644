"""What becomes of written files when the commit that was to name them failed."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.errors import SlackwaterError
from slackwater.storage.catalog import Catalog
from slackwater.storage.files import WarehouseFiles
from slackwater.storage.sql_errors import UNKNOWN


def remove_uncommitted(files: WarehouseFiles, catalog: Catalog, paths: Iterable[str], error: BaseException) -> None:
    """Remove the files that no commit names; never fails.

    An error does not say that there was no commit: Ctrl-C can come just after it, and a connection can break in the
    middle. Where nobody knows, or the catalog cannot be asked, the files stay until the next sweep.
    """
    if isinstance(error, SlackwaterError) and error.details.get("committed") == UNKNOWN:
        return
    try:
        named = catalog.settled_paths()
    except Exception:
        return  # the error that brought us here is the one to tell
    for path in paths:
        if path not in named:
            files.remove(path)
