"""Charts of benchmarks, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# A colour-blind safe colour and a marker for each strategy or contestant, the same in every chart.
STYLES = {
    "iterative": ("#444444", "s"),
    "rewrite": ("#e69f00", "D"),
    "semantic": ("#56b4e9", "v"),
    "aggressive": ("#d55e00", "^"),
    "passive": ("#cc79a7", "P"),
    "balanced": ("#009e73", "o"),
    "auto": ("#0072b2", "*"),
    "together": ("#0072b2", "o"),
    "one after the other": ("#444444", "s"),
    "DuckDB": ("#e69f00", "D"),
    "counting": ("#0072b2", "o"),
    "enumeration": ("#444444", "s"),
    "plain scan": ("#009e73", "^"),
    "independent": ("#444444", "s"),
    "top-down": ("#e69f00", "v"),
    "bottom-up": ("#56b4e9", "^"),
    "chase": ("#009e73", "o"),
    "sase": ("#444444", "s"),
    "fla": ("#e69f00", "D"),
    "prc": ("#009e73", "o"),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """The kind of a chart."""

    shows: str = "seconds"
    """`seconds` or `KiB held`."""
    bars: bool = False
    """Bars instead of lines, for settings without an order."""
    panels: bool = False
    """The name of a setting is its place on the axis and, after a comma, its panel."""


@dataclass(frozen=True, slots=True)
class _Point:
    mode: str
    part: str
    place: str
    strategy: str
    value: float


def draw(path: Path, title: str, axis: str, rows: Sequence[Any], picture: Picture) -> Path:
    """Draw all strategies over the settings, in a panel for each mode; returns the path of the PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = [_point(row, picture) for row in rows]
    modes = list(dict.fromkeys(p.mode for p in points))
    parts = list(dict.fromkeys(p.part for p in points))
    panels = [[p for p in points if (p.mode, p.part) == (mode, part)] for mode in modes for part in parts]
    down, across = (len(modes), len(parts)) if picture.panels else (1, len(modes))
    figure, areas = plt.subplots(
        *(down, across),
        figsize=(1 + 5 * across, 0.9 + 3.9 * down),
        sharey="row" if picture.panels else False,
        squeeze=False,
        layout="constrained",
        width_ratios=[len({p.place for p in panel}) for panel in panels] if picture.bars else None,
    )
    for area, panel in zip(areas.flat, panels, strict=True):
        if not panel:
            area.set_axis_off()
            continue
        area.set_yscale("log")
        (_bars if picture.bars else _lines)(area, panel)
        area.set(xlabel=axis, ylabel=picture.shows)
        area.set_title(": ".join(filter(None, (panel[0].mode, panel[0].part))), fontsize="medium")
    for area in areas.flat:
        _plain_scale(area)
    handles = {label: h for a in areas.flat for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(title)
    for ending in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=120)
    plt.close(figure)
    return path.with_suffix(".png")


def _point(row: Any, picture: Picture) -> _Point:
    value = row.seconds if picture.shows == "seconds" else row.view_bytes / 1024
    place, _, part = row.x.partition(", ") if picture.panels else (row.x, "", "")
    return _Point(row.mode, part, place, row.strategy, value)


def _series(points: Sequence[_Point]) -> tuple[list[str], dict[str, list[float]]]:
    """The places in order, and each strategy's values at them; NaN where there is none."""
    places = list(dict.fromkeys(p.place for p in points))
    values = {(p.strategy, p.place): p.value for p in points}
    strategies = dict.fromkeys(p.strategy for p in points)
    return places, {s: [values.get((s, place), np.nan) for place in places] for s in strategies}


def _lines(area: Any, points: Sequence[_Point]) -> None:
    places, series = _series(points)
    for strategy, values in series.items():
        colour, mark = STYLES[strategy]
        size, thick = (9, 2) if strategy == "auto" else (6, 1.2)
        area.plot(values, color=colour, marker=mark, markersize=size, linewidth=thick, label=strategy)
    area.set_xticks(range(len(places)), places)
    area.margins(x=0.08)


def _bars(area: Any, points: Sequence[_Point]) -> None:
    places, series = _series(points)
    width = 0.8 / len(series)
    heights = [p.value for p in points if p.value]
    upright = max(len(_short(p.value)) for p in points) > 3
    for number, (strategy, values) in enumerate(series.items()):
        colour = STYLES[strategy][0]
        middle = np.arange(len(places)) + (number - (len(series) - 1) / 2) * width
        area.bar(middle, [v or np.nan for v in values], width * 0.92, color=colour, label=strategy)
        for x, value in zip(middle, values, strict=True):
            # A logarithmic scale has no zero: write it at the bottom.
            area.annotate(
                *(_short(value), (x, value or min(heights) / 2), (0, 3)),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                rotation=90 if upright else 0,
                color="black" if value else colour,
            )
    area.set(xlim=(-0.5, len(places) - 0.5), ylim=(min(heights) / 2, max(heights) * 2))
    area.set_xticks(range(len(places)), [place.replace(", ", ",\n") for place in places])
    area.tick_params(axis="x", length=0)


def _plain_scale(area: Any) -> None:
    """Label the logarithmic scale with plain numbers, enough to show its range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = area.get_ylim()
    area.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else range(1, 10)))
    area.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    area.yaxis.set_minor_formatter(NullFormatter())
    area.tick_params(labelleft=True)
    area.grid(visible=True, which="major", axis="y", alpha=0.3)
    area.set_axisbelow(True)


def _plain(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _short(value: float) -> str:
    """Two significant digits, in plain decimals."""
    return _plain(float(f"{value:.2g}")) if value < 100 else f"{value:,.0f}"
