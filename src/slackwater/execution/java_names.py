"""Java objects that Python names, let go in time.

To Python, a Java object and the methods that were called on it name each other, so that it goes only when Python looks
for such cycles. It looks at young objects often, and at old ones when these have become a quarter more, which may be
hundreds of refreshes later. Until then Java keeps what the object leads to: the plan of a query that has run, and the
hash tables of its joins.
"""

from __future__ import annotations

import gc

YOUNG = 1
"""Objects that came since Python last looked at all of them, more or less: those of the last refresh are among them."""

EVERY = 50
"""Some grow old while a refresh runs. To look at all objects takes a tenth of a second: once in so many refreshes."""


class JavaNames:
    """What the refreshes of an engine leave behind."""

    def __init__(self) -> None:
        """Nothing so far."""
        self._refreshes = 0

    def let_go(self) -> None:
        """Forget what a refresh that has ended named."""
        self._refreshes += 1
        if self._refreshes % EVERY:
            gc.collect(YOUNG)
        else:
            gc.collect()
