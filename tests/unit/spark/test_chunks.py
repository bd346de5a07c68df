"""Which chunks a new one takes the place of."""

from __future__ import annotations

from eventcube.engine.state import Version
from eventcube.spark.chunks import PER_TIER, Chunk, Manifest, place_of_next


def grown(rows: list[int], retained: int) -> list[tuple[int, int]]:
    """The tier and rows of each chunk after micro-batches with so many rows, of which all stay."""
    chunks: tuple[Chunk, ...] = ()
    total = 0
    for fresh in rows:
        total += fresh
        chunks, tier = place_of_next(chunks, fresh, max(total, retained))
        kept = sum(chunk.rows for chunk in chunks)
        chunks = (*chunks, Chunk(len(chunks), tier, total - kept, 0, Version()))
    return [(chunk.tier, chunk.rows) for chunk in chunks]


def test_rows_are_written_once_while_they_stay() -> None:
    assert grown([5, 5, 5], 0) == [(0, 5)] * 3


def test_a_whole_state_takes_the_place_of_chunks_that_are_half_empty() -> None:
    chunks = (Chunk(0, 0, 60, 0, Version()), Chunk(1, 0, 40, 0, Version()))
    assert place_of_next(chunks, 20, 60) == (chunks, 0)
    assert place_of_next(chunks, 20, 59) == ((), 0)
    assert place_of_next(chunks, 0, 0) == ((), 0)


def test_there_are_few_chunks_however_many_micro_batches() -> None:
    for count in (PER_TIER, 100, 1000, 5000):
        assert len(grown([1] * count, 10**6)) <= 3 * PER_TIER
    assert grown([1] * (2 * PER_TIER), 10**6)[:2] == [(0, 1), (1, PER_TIER)]


def test_a_manifest_is_read_as_it_was_written() -> None:
    manifest = Manifest((Chunk(3, 1, 20, 900, Version(1, 2, 3, 4, 5)), Chunk(4, 0, 7, 350, Version(2, 3, 4, 5, 5))), 17)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
    assert Manifest.from_bytes(Manifest().to_bytes()) == Manifest()
