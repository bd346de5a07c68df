"""Pictures of benchmarks, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(path: Path, title: str, axis: str, rows: Sequence[Any]) -> Path:
    """Time over the settings, a line for each strategy and a picture for each mode; gives the PNG's path."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    modes = list(dict.fromkeys(r.mode for r in rows))
    figure, areas = plt.subplots(1, len(modes), figsize=(5.5 * len(modes), 4.2), squeeze=False, layout="constrained")
    for area, mode in zip(areas[0], modes, strict=True):
        own = [r for r in rows if r.mode == mode]
        places = list(dict.fromkeys(r.x for r in own))
        for strategy in dict.fromkeys(r.strategy for r in own):
            points = [(places.index(r.x), r.seconds) for r in own if r.strategy == strategy]
            area.plot(*zip(*points, strict=True), marker="o", label=strategy, linewidth=2 if strategy == "auto" else 1)
        area.set_yscale("log")
        area.set_xticks(range(len(places)), places, rotation=20 if max(map(len, places)) > 6 else 0)
        area.set_xlabel(axis)
        area.set_ylabel("seconds")
        area.set_title(mode, fontsize="medium")
        area.grid(visible=True, which="major", alpha=0.3)
    areas[0][0].legend(fontsize="small")
    figure.suptitle(title)
    for ending in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=120)
    plt.close(figure)
    return path.with_suffix(".png")
