"""Java objects that Python names, let go in time.

To Python, a Java object and the methods that were called on it name each other, so that it goes only when Python looks
for such cycles. It looks at young objects often, and at old ones when these have become a quarter more, which may be
hundreds of refreshes later. Until then Java keeps what the object leads to: the plan of a query that has run, and the
hash tables of its joins, of megabytes each however few their rows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

YOUNG = 1
"""Objects that came since Python last looked at all of them, more or less: those of the last query are among them."""

SHARE = 0.03
"""Some grow old while a query runs. To look at all objects takes a tenth of a second or so, and may take this share of
the time: after a query of many joins, which takes seconds and leaves hundreds of megabytes, it is done each time."""


class JavaNames:
    """What the queries of an engine leave behind."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Nothing so far; the clock tells seconds."""
        self._clock = clock
        self._worked = 0.0
        self._looking = 0.0

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Forget what the work inside named, once it has ended."""
        start = self._clock()
        try:
            yield
        finally:
            self._worked += self._clock() - start
            if self._worked * SHARE < self._looking:
                gc.collect(YOUNG)
            else:
                self._look_at_all()

    def _look_at_all(self) -> None:
        start = self._clock()
        gc.collect()
        self._looking, self._worked = self._clock() - start, 0.0
