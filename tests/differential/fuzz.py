"""Random queries against the oracle, by the million: `python -m tests.differential.fuzz --cases 100000 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from random import Random

from tests.differential.compare import check, draw_cut
from tests.differential.shrink import shrink
from tests.oracle.generate import Case, random_case

CHUNK = 500
# Seeds of one run are apart from those of every other.
STRIDE = 10**9


@dataclass
class Tally:
    """What a stretch of cases came to; `failures` are seeds."""

    cases: int = 0
    matched: int = 0
    matches: int = 0
    failures: list[int] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.matched += other.matched
        self.matches += other.matches
        self.failures += other.failures

    def __str__(self) -> str:
        share = 100 * self.matched / self.cases if self.cases else 0.0
        return f"{self.cases} cases, {share:.1f} % with matches, {self.matches} matches, {len(self.failures)} failures"


def run(seeds: range) -> Tally:
    """The cases of some seeds, each with its own cut into batches."""
    tally = Tally()
    for seed in seeds:
        case = random_case(seed)
        tally.cases += 1
        try:
            found = check(*case, cut_of(seed, case))
        except Exception:  # noqa: BLE001 - whatever the engine raises is a finding
            tally.failures.append(seed)
        else:
            tally.matched += bool(found)
            tally.matches += len(found)
    return tally


def cut_of(seed: int, case: Case) -> list[int]:
    """How the events of a seed's case are cut into batches."""
    return draw_cut(Random(~seed), len(case.events))


def explain(seed: int) -> str:
    """A failing seed's case made small, and what goes wrong there."""
    case, cut = random_case(seed), cut_of(seed, random_case(seed))
    kind = type(_failure(case, cut))
    small = shrink(case, lambda c: type(_failure(c, cut)) is kind)
    failure = _failure(small, cut)
    assert failure is not None
    return f"seed {seed}:\n" + "".join(traceback.format_exception(failure, limit=-6)) + f"query: {small.query.text}\n"


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
    parser.add_argument("--explain", type=int, default=3, help="how many failures to make small and show")
    parser.add_argument("--case", type=int, help="run and explain only the case of this seed")
    arguments = parser.parse_args()
    if arguments.case is not None:
        tally = run(range(arguments.case, arguments.case + 1))
    else:
        first = arguments.seed * STRIDE
        tally = _run_all(range(first, first + arguments.cases), arguments.processes, arguments.explain)
    for seed in tally.failures[: arguments.explain]:
        sys.stdout.write(f"\n{explain(seed)}")
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
            if len(tally.failures) > 10 * enough:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return tally


if __name__ == "__main__":
    sys.exit(main())
