"""Which segments hold exactly the changes of a range of versions. Pure: knows records, not SQL.

Merges nest: a merge supersedes all that its owner had, live, in a range of versions, so two merges either lie apart
or one holds the other. The answer is therefore found from the top: take a merge that lies inside the range as a whole,
skip one that lies outside, and look into one that straddles an end, as long as what it was made of is still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from slackwater.errors import CatalogError
from slackwater.storage.records import MergeRecord, SegmentRecord, broken


def cover(
    segments: Iterable[SegmentRecord],
    merges: Iterable[MergeRecord],
    after: int,
    upto: int,
    *,
    per_version: bool = False,
) -> tuple[SegmentRecord, ...]:
    """Choose the segments of one owner that together hold exactly its changes in `(after, upto]`.

    Args:
        segments: the owner's segments, superseded ones included.
        merges: the owner's merges.
        after: the version before the first one wanted.
        upto: the last version wanted.
        per_version: use no segment that mixes versions.

    Raises:
        CatalogError: HISTORY_COMPACTED where an end of the range lies in a merge whose inputs were removed.
    """
    originals: dict[int | None, list[SegmentRecord]] = defaultdict(list)
    outputs: dict[int, list[SegmentRecord]] = defaultdict(list)
    inner: dict[int | None, list[MergeRecord]] = defaultdict(list)
    for segment in segments:
        if segment.merge_id is None:
            originals[segment.superseded_by].append(segment)
        else:
            outputs[segment.merge_id].append(segment)
    for merge in merges:
        inner[merge.superseded_by].append(merge)

    chosen: list[SegmentRecord] = []
    open_merges: list[int | None] = [None]
    while open_merges:
        parent = open_merges.pop()
        chosen += (segment for segment in originals[parent] if after < segment.first_version <= upto)
        for merge in inner[parent]:
            if merge.last_version <= after or merge.first_version > upto:
                continue
            whole = after < merge.first_version and merge.last_version <= upto
            if whole and not (per_version and merge.first_version < merge.last_version):
                chosen += outputs[merge.id]
            elif merge.inputs_kept:
                open_merges.append(merge.id)
            else:
                raise _compacted(merge, after, upto)
    return tuple(sorted(chosen, key=lambda segment: (segment.first_version, -segment.sign, segment.id)))


def merged_range(
    chosen: Sequence[SegmentRecord], live_segments: Sequence[SegmentRecord], live_merges: Sequence[MergeRecord]
) -> tuple[int, int]:
    """Give the versions a merge of the chosen segments stands for; they must be all that is live in that range."""
    ids = {segment.id for segment in chosen}
    first = min(segment.first_version for segment in chosen)
    last = max(segment.last_version for segment in chosen)
    # A merge without outputs has no segment to leave out, but the range may still cut it in two.
    live: tuple[SegmentRecord | MergeRecord, ...] = (*live_segments, *live_merges)
    for found in live:
        apart = found.last_version < first or found.first_version > last
        inside = first <= found.first_version and found.last_version <= last
        covered = found.id in ids if isinstance(found, SegmentRecord) else inside
        if not (apart or covered):
            raise broken(f"a merge of versions {first} to {last} leaves out {found}", chosen=sorted(ids))
    return first, last


def _compacted(merge: MergeRecord, after: int, upto: int) -> CatalogError:
    return CatalogError(
        "HISTORY_COMPACTED",
        f"the changes after version {after} up to {upto} cannot be told apart any more: "
        f"versions {merge.first_version} to {merge.last_version} were merged",
        f"ask for version {merge.last_version} or later",
        {"after": after, "upto": upto, "first_version": merge.first_version, "last_version": merge.last_version},
    )
