"""Where the time of a refresh goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timer:
    """Seconds by phase."""

    started: float = field(default_factory=time.perf_counter)
    phases: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def phase(self, name: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.phases[name] = self.phases.get(name, 0.0) + now - self._last
        self._last = now

    def total(self) -> dict[str, float]:
        """All phases and their sum."""
        return {**self.phases, "total": time.perf_counter() - self.started}
