"""Random queries against the oracle, by the million: `python -m tests.differential.fuzz --cases 100000 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.differential.compare import DisagreementError, check, describe, draw_cut
from tests.differential.shrink import shrink
from tests.oracle.generate import Case, random_case

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


def run(seeds: range) -> Tally:
    """The cases of some seeds, each with its own cut into batches."""
    tally = Tally()
    for seed in seeds:
        case = random_case(seed)
        tally.cases += 1
        cut = cut_of(seed, case)
        try:
            found = check(*case, cut)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is a finding
            tally.failures.setdefault(_kind(error), []).append(seed)
        else:
            tally.matched += bool(found)
            tally.matches += len(found)
    return tally


def cut_of(seed: int, case: Case) -> list[int]:
    """How the events of a seed's case are cut into batches."""
    return draw_cut(Random(~seed), len(case.events))


def explain(seed: int) -> str:
    """A failing seed's case made small, and what goes wrong there."""
    case = random_case(seed)
    cut = cut_of(seed, case)
    failure = _failure(case, cut)
    if failure is None:
        return f"seed {seed}: no failure\n"
    kind = _kind(failure)

    def fails(smaller: Case) -> bool:
        error = _failure(smaller, cut)
        return error is not None and _kind(error) == kind

    small = shrink(case, fails)
    failure = _failure(small, cut) or failure
    shown = [f"seed {seed}: {kind}", *traceback.format_exception(failure, limit=-4)]
    if not isinstance(failure, DisagreementError):
        shown += [f"query:   {small.query.text}", f"options: {small.options}", f"cut:     {cut}", "events:"]
        shown += [f"  {describe(event)}" for event in small.events]
    return "\n".join(line.rstrip("\n") for line in shown) + "\n"


def _kind(error: Exception) -> str:
    """What failures with one cause most likely share: the exception, and the place it came from."""
    if isinstance(error, DisagreementError):
        return "disagreement"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name} ({Path(frame.filename).name}:{frame.lineno})"


def _failure(case: Case, cut: Sequence[int]) -> Exception | None:
    try:
        check(*case, cut)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is a finding
        return error
    return None


def main() -> int:
    """Run the cases asked for; the exit code is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--explain", type=int, default=3, help="how many failures of each kind to make small and show")
    parser.add_argument("--case", type=int, help="run and explain only the case of this seed")
    arguments = parser.parse_args()
    if arguments.case is not None:
        tally = run(range(arguments.case, arguments.case + 1))
    else:
        first = arguments.seed * STRIDE
        tally = _run_all(range(first, first + arguments.cases), arguments.processes, arguments.explain)
    for seeds in tally.failures.values():
        for seed in sorted(seeds)[: arguments.explain]:
            sys.stdout.write(f"\n{explain(seed)}")
    for kind, seeds in tally.failures.items():
        sys.stdout.write(f"{len(seeds)} x {kind}: seeds {sorted(seeds)[:10]}\n")
    sys.stdout.write(f"{tally}\n")
    return 1 if tally.failures else 0


def _run_all(seeds: range, processes: int, enough: int) -> Tally:
    """Run in processes, telling how it goes; stops early once there are plenty of failures to look at."""
    tally, told = Tally(), time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        chunks = [pool.submit(run, seeds[i : i + CHUNK]) for i in range(0, len(seeds), CHUNK)]
        for chunk in as_completed(chunks):
            tally.add(chunk.result())
            if time.monotonic() - told > 5:
                told = time.monotonic()
                sys.stdout.write(f"{tally}\n")
                sys.stdout.flush()
            if tally.failed > 100 * enough:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return tally


if __name__ == "__main__":
    sys.exit(main())
