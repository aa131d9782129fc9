"""How the partitions of one asset need those of another: a mapping from downstream to upstream, and back.

`needed` says which upstream partitions a set of downstream ones reads; `touched` says which downstream partitions could have
read a set of upstream ones, so a change upstream is known to concern exactly those. Both work on ranges. Upstream partitions
that do not exist are left out by whoever asks. A mapping names dimensions; `check` says at definition time whether it fits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from arco.kernel.errors import InvalidInput
from arco.servo.partitions.axes import Axis, TimeAxis
from arco.servo.partitions.partitioning import Partitioning, product
from arco.servo.partitions.sets import PartitionSet


@dataclass(frozen=True, slots=True)
class Ends:
    """The two assets that a mapping connects, as they are partitioned, and everything there is upstream and downstream."""

    upstream: Partitioning
    downstream: Partitioning
    all_upstream: PartitionSet
    all_downstream: PartitionSet
    is_line: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked once for every task, so answered once.
        object.__setattr__(self, "is_line", _is_same_line(self.upstream, self.downstream))


class Mapping(Protocol):
    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        """Raises why it does not fit."""
        ...

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet: ...

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet: ...

    def describe(self) -> str:
        """One text for documents and fingerprints."""
        ...


@dataclass(frozen=True, slots=True)
class All:
    """Every partition needs all of the other."""

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        """Always fits."""

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        return ends.all_upstream if downstream else PartitionSet.nothing(len(ends.upstream.axes))

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        return ends.all_downstream if upstream else PartitionSet.nothing(len(ends.downstream.axes))

    def describe(self) -> str:
        return "all"


@dataclass(frozen=True, slots=True)
class Last:
    """Every partition needs the newest of the other, along its first dimension."""

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        if not upstream.axes:
            raise InvalidInput("last() needs an input with partitions", hint="leave the mapping out")

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        if not downstream or not ends.all_upstream:
            return PartitionSet.nothing(len(ends.upstream.axes))
        newest = max(bounds[0][1] for bounds in ends.all_upstream.boxes()) - 1
        slices = [[(newest, newest + 1), *box[1:]] for box in ends.all_upstream.boxes()]
        return PartitionSet.of(len(ends.upstream.axes), slices) & ends.all_upstream

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        is_newest = bool(upstream & self.needed(ends.all_downstream, ends))
        return ends.all_downstream if is_newest else PartitionSet.nothing(len(ends.downstream.axes))

    def describe(self) -> str:
        return "last"


@dataclass(frozen=True, slots=True)
class Window:
    """The same period and its neighbours: from `first` to `last` periods away, along the shared time dimensions.

    (0, 0) is the identity. A dimension that only one of the two has: downstream partitions read all of an extra upstream
    dimension, and every value of an extra downstream dimension reads the same. A coarser downstream period reads all the
    finer ones in it, a finer one reads the coarser that holds it.
    """

    first: int = 0
    last: int = 0
    dimension: str | None = None

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        shared = set(upstream.names) & set(downstream.names)
        if self.last < self.first:
            raise InvalidInput("the window ends before it begins")
        if (self.first, self.last) != (0, 0):
            times = [axis.name for axis in upstream.axes if isinstance(axis, TimeAxis) and axis.name in shared]
            if self.dimension is not None and self.dimension not in times:
                raise InvalidInput(f"{self.dimension} is not a time dimension of both", hint=f"both have {times or 'none'}")
            if len(times) != 1 and self.dimension is None:
                raise InvalidInput("a window needs one time dimension that both have", hint="name it")
        for name in shared:
            one, other = _axis(upstream, name), _axis(downstream, name)
            if isinstance(one, TimeAxis) != isinstance(other, TimeAxis):
                raise InvalidInput(f"dimension {name} is {one.kind} upstream and {other.kind} downstream")

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        if ends.is_line:
            return _moved_along(
                downstream, *self._shift(self.first, self.last)(ends.upstream.axes[0].name), ends.all_upstream
            )
        return _carried(downstream, ends.downstream, ends.upstream, ends.all_upstream, self._shift(self.first, self.last))

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        if ends.is_line:
            shift = self._shift(-self.last, -self.first)(ends.upstream.axes[0].name)
            return _moved_along(upstream, *shift, ends.all_downstream)
        return _carried(upstream, ends.upstream, ends.downstream, ends.all_downstream, self._shift(-self.last, -self.first))

    def describe(self) -> str:
        if (self.first, self.last) == (0, 0):
            return "identity"
        return f"window {self.first}..{self.last}{f' of {self.dimension}' if self.dimension else ''}"

    def _shift(self, first: int, last: int) -> Callable[[str], tuple[int, int]]:
        return lambda name: (first, last) if self.dimension in {None, name} else (0, 0)


@dataclass(frozen=True, slots=True)
class Custom:
    """Two functions of the project's own, on sets. `name` stands for them in fingerprints."""

    name: str
    needs: Callable[[PartitionSet, Ends], PartitionSet]
    touches: Callable[[PartitionSet, Ends], PartitionSet]

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        """Fits if its author says so."""

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        return self.needs(downstream, ends) & ends.all_upstream

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        return self.touches(upstream, ends) & ends.all_downstream

    def describe(self) -> str:
        return f"custom {self.name}"


def _axis(partitioning: Partitioning, name: str) -> Axis:
    return next(axis for axis in partitioning.axes if axis.name == name)


def _carried(
    partitions: PartitionSet,
    here: Partitioning,
    there: Partitioning,
    everything: PartitionSet,
    shift: Callable[[str], tuple[int, int]],
) -> PartitionSet:
    """A set carried over to the other asset's axes, dimension by dimension."""
    if not partitions or not everything:
        return PartitionSet.nothing(len(there.axes))
    whole = {axis.name: _extent(everything, place) for place, axis in enumerate(there.axes)}
    boxes = []
    for box in partitions.boxes():
        spans = dict(zip(here.names, box, strict=True))
        boxes.append([_moved(axis, spans, here, shift, whole[axis.name]) for axis in there.axes])
    carried = PartitionSet.of(len(there.axes), [bounds for parts in boxes for bounds in product(parts)])
    return carried & everything


def _moved_along(partitions: PartitionSet, before: int, after: int, everything: PartitionSet) -> PartitionSet:
    """A set on the one time axis that both ends have."""
    if not partitions or not (before or after):
        return partitions & everything
    moved = [((one.first + before, one.end + after),) for one in partitions.ranges]
    return (PartitionSet.box(moved[0]) if len(moved) == 1 else PartitionSet.of(1, moved)) & everything


def _is_same_line(here: Partitioning, there: Partitioning) -> bool:
    """Whether both have one dimension, and the same: then ordinals mean the same on both sides."""
    if len(here.axes) != 1 or len(there.axes) != 1:
        return False
    one, other = here.axes[0], there.axes[0]
    return (
        isinstance(one, TimeAxis) and isinstance(other, TimeAxis) and (one.name, one.period) == (other.name, other.period)
    )


def _extent(partitions: PartitionSet, place: int) -> tuple[int, int]:
    bounds = [box[place] for box in partitions.boxes()]
    return min(first for first, _ in bounds), max(end for _, end in bounds)


def _moved(
    axis: Axis,
    spans: dict[str, tuple[int, int]],
    here: Partitioning,
    shift: Callable[[str], tuple[int, int]],
    whole: tuple[int, int],
) -> list[tuple[int, int]]:
    name = axis.name
    if name not in spans:
        return [whole]
    first, end = spans[name]
    source = _axis(here, name)
    if isinstance(axis, TimeAxis) and isinstance(source, TimeAxis):
        before, after = shift(name)
        if axis.period is source.period:
            return [(first + before, end + after)]
        # The target's periods that overlap the span of time; a shift counts in the target's periods.
        begin = axis.containing(source.first_moment(first))
        last = axis.containing(source.last_moment(end - 1))
        return [(begin + before, last + 1 + after)]
    found = []
    for ordinal in range(first, end):
        value = source.value(ordinal)
        try:
            place = axis.ordinal(value)
        except InvalidInput:
            continue
        found.append((place, place + 1))
    return found
