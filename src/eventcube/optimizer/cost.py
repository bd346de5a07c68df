"""The unit of cost, and what is asked of a nested part: the numbers from which strategies state their costs.

The unit is one event looked at in a join. The formulas follow Ray et al. 2013 (CSV), eq. 1-6, and the constants turn
the fixed work of this engine into that unit; they were measured once. Paper's name = ours: |S| = events of a component
in an interval; C_compute = `recompute_cost`; C_VA = `look_up_cost`; C_upd = `update_cost`; 1 - Ov = `missing`;
Pt = 1/k! for k components in the order of a SEQ; P = `selectivity`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from eventcube.plan.steps import (
    Bind,
    FlatCases,
    Part,
    Program,
    Reject,
    StandalonePart,
    Union,
    form_of,
    recomputed,
)

# One join step, however few partial matches it extends.
BIND = 3_000.0
# One call that recomputes a part, and that looks into a view; where a key or an equality makes the view sort by value.
RECOMPUTE_CALL, VIEW_CALL, SORTED_VIEW_CALL = 6_000.0, 10_000.0, 40_000.0
# One step for one outer row, and a look-up for one in a view.
STEP, LOOK_UP, SORTED_LOOK_UP = 3.0, 4.0, 10.0
# One result that is kept in a view, that is written beside its outer row, and that is tested after that.
KEEP, MATERIALIZE, TEST = 5.0, 2.0, 6.0
# One interval that is recorded, for strategies that keep intervals.
RECORD = 8.0
# One partial match whose range is sought, or only counted, a fence that narrows it, and one event that extends the
# match: so much, and for each event that the match has already. These and the next ones fit the times of random plans.
RANGE, COUNTED, FENCE, EXTEND, COPY = 2.3, 0.5, 2.1, 0.65, 0.3
# One partial match that is tested: by the stack of an event (and if it is kept), by the state of one, by order or
# window, as the latest of twins, and against a negated part.
NARROW, NARROWED, BY_STATE, IN_ORDER, KEEP_LATEST, REJECT = 0.25, 1.8, 1.2, 1.0, 3.7, 6.0
# Partial matches that go through a step at a time, and what one such call costs, however few there are.
CHUNK, CALL = 65_536, 5_000.0
# One candidate that a join looks at to make matches of it, and only to count them or to see if there is one; and one
# candidate or block of candidates that it looks at by a min-max index.
EXPANDED, TESTED, INDEXED = 1.0, 0.45, 1.2
# One line of memory that is looked up in links or windows, with so many events in it, if there are more than so many.
LINE, EVENTS_IN_LINE, CACHED = 1.5, 8, 1 << 17
# One event of a store: the start, or the end, of its window, and its link into a stack; one event of a stack that is
# sought in another one. All this is found once, whoever needs it.
WINDOW, LINK, DIFFERENCE = 5.0, 0.3, 2.0


@dataclass(frozen=True, slots=True)
class PartProfile:
    """What the cost of a nested part depends on in its plan.

    Recomputed, only what meets the conditions is left from component `filtered_from` on (the last component is number
    0); `last_filtered`: the last event to be bound has conditions, so that even to count all have to be looked at. A
    view tests the conditions with outer events after the look-up (`residual`) or splits by one (`keyed`). To find the
    nearest result of one last event `scanned` components are gone through. `flat_cases` is how many cases the flat form
    of a negated part has, None without one.
    """

    negated: bool
    slots: tuple[int, ...]
    last: tuple[int, ...]
    ordered: bool
    filtered_from: int
    last_filtered: bool
    residual: bool = False
    keyed: bool = False
    scanned: int = 0
    flat_cases: int | None = None

    @classmethod
    def of(cls, part: Part) -> PartProfile:
        """The profile of a part; one that can only be recomputed is taken to be a SEQ."""
        program = recomputed(part)
        final = program[-1]
        filtered = not isinstance(final, Bind) or bool(final.compare or final.filters or final.distinct)
        profile = cls(isinstance(part, Reject), (), (), True, _filtered_from(program), filtered)
        standalone = form_of(part, StandalonePart)
        if standalone is None:
            return profile if isinstance(part, Reject) else replace(profile, slots=part.slots, last=part.slots[-1:])
        return replace(
            profile,
            slots=standalone.slots,
            last=standalone.last,
            ordered=standalone.ordered,
            residual=bool(standalone.residual),
            keyed=standalone.key is not None,
            scanned=_scanned(standalone.nearest),
            flat_cases=None if form_of(part, FlatCases) is None else len(standalone.slots),
        )


@dataclass(frozen=True, slots=True)
class Load:
    """What a set of outer rows asks of a part.

    `partial` are the partial results of one interval after its last 1, 2, … components, if conditions let all through.
    `extended` are those of one last event in a wide interval after 1, 2, … more components: wide intervals decide how
    far back a last event is asked for. `windowed` are the same in a whole window. `missing` last events are not in the
    view yet. `ends` is how many different ends the intervals have, and `ends_inside` how many of them lie in one
    interval. `materialize`: results are made, not only counted. `sorted_view`: a view has to sort events by value.
    """

    part: PartProfile
    outer_rows: float
    materialize: bool
    sorted_view: bool = False
    partial: tuple[float, ...] = ()
    extended: tuple[float, ...] = ()
    windowed: tuple[float, ...] = ()
    missing: float = 0.0
    selectivity: float = 1.0
    ends: float = 0.0
    ends_inside: float = 0.0

    @property
    def only_emptiness(self) -> bool:
        """Whether a view only has to know if there is a result, and keeps none."""
        return self.part.negated and not self.part.residual

    @property
    def results(self) -> float:
        """Results over all outer rows."""
        return self.outer_rows * self.selectivity * (self.partial[-1] if self.partial else 0.0)

    def recompute_cost(self) -> float:
        """Computing the part for each outer row (eq. 1, 2)."""
        start, partial = self.part.filtered_from, self.partial
        if not (self.materialize or self.part.last_filtered):
            partial = partial[:-1]
        work = sum(partial[:start]) + self.selectivity * sum(partial[start:])
        return RECOMPUTE_CALL + self.outer_rows * (STEP + work)

    def look_up_cost(self) -> float:
        """Looking into a view for each outer row, which is constant here because runs are sorted (eq. 5)."""
        call, row = (SORTED_VIEW_CALL, SORTED_LOOK_UP) if self.sorted_view else (VIEW_CALL, LOOK_UP)
        # What is tested after the look-up is all made.
        tested = TEST * self.partial[-1] if self.part.residual and self.partial else 0.0
        return call + self.outer_rows * (row + tested)

    def update_cost(self, extended: tuple[float, ...] | None = None) -> float:
        """Extending a view by the results of missing last events (eq. 4); `extended` instead of those of the load."""
        steps = self.extended if extended is None else extended
        if self.only_emptiness:
            return self.missing * (1.0 + sum(steps[: self.part.scanned]))
        return self.missing * (1.0 + sum(steps) + KEEP * self.selectivity * (steps[-1] if steps else 1.0))

    def output_cost(self) -> float:
        """Writing the results of a view beside their outer rows, unless that is done to test them anyway."""
        made = self.materialize and not self.part.negated and not self.part.residual
        return MATERIALIZE * self.results if made else 0.0


# What a load would cost by one strategy; None: the strategy does not compete for such a part.
Cost = Callable[[Load], float | None]


def _filtered_from(program: Program) -> int:
    for i, step in enumerate(program):
        if isinstance(step, Bind) and (step.key is not None or step.compare or step.filters):
            return i if step.key is not None else i + 1
    return len(program)


def _scanned(program: Program) -> int:
    count = 0
    for step in program:
        match step:
            case Bind(latest=False) if not step.is_anchor:
                count += 1
            case Union(programs):
                count += max(map(_scanned, programs))
    return count
