"""Sources: where a table's changes come from, applied exactly once."""

from slackwater.sources.landing import LandingDirectory
from slackwater.sources.polls import LandedFile, Poll, RejectedFile

__all__ = ["LandedFile", "LandingDirectory", "Poll", "RejectedFile"]
