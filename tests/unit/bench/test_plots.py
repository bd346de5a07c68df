from dataclasses import dataclass
from pathlib import Path

import pytest

from eventcube.bench.plots import Picture, _plain, _short, draw


@dataclass(frozen=True)
class Row:
    x: str
    mode: str
    strategy: str
    seconds: float
    view_bytes: int


ROWS = [
    Row(f"{n}, {part}", mode, strategy, 0.01 * n, held)
    for n in (1, 10)
    for part in ("split", "whole")
    for mode in ("batch", "by trigger")
    for strategy, held in (("iterative", 0), ("balanced", 2048))
    if (part, mode) != ("whole", "by trigger")
]


@pytest.mark.parametrize(
    ("picture", "said", "unsaid"),
    [
        (Picture(), ["seconds", "batch", "by trigger", "1, split", "10, whole"], ["KiB held"]),
        (Picture(panels=True), ["batch: split", "batch: whole", "by trigger: split"], ["1, split", "trigger: whole"]),
        (Picture(shows="KiB held", bars=True), ["KiB held", "1,", "whole"], ["seconds"]),
    ],
    ids=["lines", "panels", "bars"],
)
def test_what_a_picture_says(picture: Picture, said: list[str], unsaid: list[str], tmp_path: Path) -> None:
    assert draw(tmp_path / "drawn", "Title", "values", ROWS, picture).stat().st_size > 100
    # Matplotlib draws letters as shapes, with the words in a comment beside them.
    text = (tmp_path / "drawn.svg").read_text()
    for words in ("Title", "values", "iterative", "balanced", *said):
        assert f"<!-- {words} -->" in text
    for words in unsaid:
        assert words not in text


def test_numbers_are_plain_decimals() -> None:
    assert [_plain(v) for v in (0.0001, 0.6, 1.0, 20000.0)] == ["0.0001", "0.6", "1", "20,000"]
    assert [_short(v) for v in (0, 0.00774, 4.51, 57.2, 12345.6)] == ["0", "0.0077", "4.5", "57", "12,346"]
