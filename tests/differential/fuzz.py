"""Random queries against the oracle, by the million: `python -m tests.differential.fuzz --cases 100000 --seed 1`.

A run goes through all modes of `modes.py`, or keeps to the one that `--mode` names.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.differential.compare import DisagreementError, describe
from tests.differential.modes import MODES
from tests.differential.shrink import shrink
from tests.oracle.generate import Case, Workload

CHUNK = 500
# Seeds of one run are apart from those of every other.
STRIDE = 10**9


@dataclass
class Tally:
    """What a stretch of cases came to; `failures` has the seeds for each kind of failure."""

    cases: int = 0
    matched: int = 0
    matches: int = 0
    failures: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.matched += other.matched
        self.matches += other.matches
        for kind, seeds in other.failures.items():
            self.failures.setdefault(kind, []).extend(seeds)

    @property
    def failed(self) -> int:
        return sum(map(len, self.failures.values()))

    def __str__(self) -> str:
        share = 100 * self.matched / self.cases if self.cases else 0.0
        return f"{self.cases} cases, {share:.1f} % with matches, {self.matches} matches, {self.failed} failures"


def run(mode: str, seeds: range) -> Tally:
    """The cases of some seeds, each with its own cut into batches."""
    tally = Tally()
    for seed in seeds:
        tally.cases += 1
        try:
            found = MODES[mode].check(MODES[mode].draw(Random(seed)), Random(~seed))
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is a finding
            tally.failures.setdefault(_kind(error), []).append(seed)
        else:
            tally.matched += bool(found)
            tally.matches += found
    return tally


def explain(mode: str, seed: int) -> str:
    """A failing seed's case made small, and what goes wrong there."""
    case = MODES[mode].draw(Random(seed))
    failure = _failure(mode, case, seed)
    if failure is None:
        return f"{mode}, seed {seed}: no failure\n"
    kind = _kind(failure)

    def fails(smaller: Case | Workload) -> bool:
        error = _failure(mode, smaller, seed)
        return error is not None and _kind(error) == kind

    small = shrink(case, fails)
    failure = _failure(mode, small, seed) or failure
    shown = [f"{mode}, seed {seed}: {kind}", *traceback.format_exception(failure, limit=-4)]
    if not isinstance(failure, DisagreementError):
        queries = small.queries if isinstance(small, Workload) else [small.query]
        shown += [*(f"query:   {query.text}" for query in queries), f"options: {small.options}", "events:"]
        shown += [f"  {describe(event)}" for event in small.events]
    return "\n".join(line.rstrip("\n") for line in shown) + "\n"


def _kind(error: Exception) -> str:
    """What failures with one cause most likely share: the exception, and the place it came from."""
    if isinstance(error, DisagreementError):
        return "disagreement"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name} ({Path(frame.filename).name}:{frame.lineno})"


def _failure(mode: str, case: Case | Workload, seed: int) -> Exception | None:
    try:
        MODES[mode].check(case, Random(~seed))
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is a finding
        return error
    return None


def main() -> int:
    """Run the cases asked for; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, help="keep to one mode")
    parser.add_argument("--cases", type=int, default=100_000, help="in all modes together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--explain", type=int, default=3, help="how many failures of each kind to make small and show")
    parser.add_argument("--case", type=int, help="run and explain only the case of this seed")
    arguments = parser.parse_args()
    modes = [arguments.mode] if arguments.mode else list(MODES)
    if arguments.case is not None:
        tallies = {mode: run(mode, range(arguments.case, arguments.case + 1)) for mode in modes}
    else:
        first = arguments.seed * STRIDE
        seeds = range(first, first + arguments.cases // len(modes))
        tallies = _run_all(modes, seeds, arguments.processes, arguments.explain)
    for mode, tally in tallies.items():
        for seeds_of in tally.failures.values():
            for seed in sorted(seeds_of)[: arguments.explain]:
                sys.stdout.write(f"\n{explain(mode, seed)}")
        for kind, seeds_of in tally.failures.items():
            sys.stdout.write(f"{mode}: {len(seeds_of)} x {kind}: seeds {sorted(seeds_of)[:10]}\n")
    for mode, tally in tallies.items():
        sys.stdout.write(f"{mode}: {tally}\n")
    return 1 if any(tally.failures for tally in tallies.values()) else 0


def _run_all(modes: list[str], seeds: range, processes: int, enough: int) -> dict[str, Tally]:
    """Run in processes, telling how it goes; stops early once there are plenty of failures to look at."""
    tallies, told = {mode: Tally() for mode in modes}, time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        chunks = {
            pool.submit(run, mode, seeds[i : i + CHUNK]): mode for i in range(0, len(seeds), CHUNK) for mode in modes
        }
        for chunk in as_completed(chunks):
            tallies[chunks[chunk]].add(chunk.result())
            if time.monotonic() - told > 5:
                told = time.monotonic()
                sys.stdout.write("; ".join(f"{mode}: {tally}" for mode, tally in tallies.items()) + "\n")
                sys.stdout.flush()
            if sum(tally.failed for tally in tallies.values()) > 100 * enough:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return tallies


if __name__ == "__main__":
    sys.exit(main())
