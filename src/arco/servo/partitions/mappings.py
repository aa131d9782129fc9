"""How the partitions of one asset need those of another: a mapping from downstream to upstream, and back.

`needed` says which upstream partitions a set of downstream ones reads; `touched` says which downstream partitions could have
read a set of upstream ones, so a change upstream is known to concern exactly those. Both work on ranges. Upstream partitions
that do not exist are left out by whoever asks. A mapping names dimensions; `check` says at definition time whether it fits.
"""

from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Protocol

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import PartitionKey, Scalar
from arco.servo.partitions.axes import Axis, Bounds, TimeAxis
from arco.servo.partitions.partitioning import Partitioning, product
from arco.servo.partitions.sets import PartitionSet

Box = Sequence[Bounds]
Values = abc.Mapping[str, Scalar]
"""A partition by the values of its dimensions, or of some of them."""


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
    """Every partition needs the newest of the other: along its first dimension of time, or of what it has."""

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        if not upstream.axes:
            raise InvalidInput("last() needs an input with partitions", hint="leave the mapping out")

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        if not downstream or not ends.all_upstream:
            return PartitionSet.nothing(len(ends.upstream.axes))
        place = next((at for at, axis in enumerate(ends.upstream.axes) if isinstance(axis, TimeAxis)), 0)
        _, end = _extent(ends.all_upstream, place)
        slices = [[*box[:place], (end - 1, end), *box[place + 1 :]] for box in ends.all_upstream.boxes()]
        return PartitionSet.of(len(ends.upstream.axes), slices) & ends.all_upstream

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        is_newest = bool(upstream & self.needed(ends.all_downstream, ends))
        return ends.all_downstream if is_newest else PartitionSet.nothing(len(ends.downstream.axes))

    def describe(self) -> str:
        return "last"


@dataclass(frozen=True, slots=True)
class Window:
    """The same period and its neighbours: from `first` to `last` periods away, along the shared time dimensions.

    (0, 0) is the identity. Periods are those of what is read. A dimension that only one of the two has: downstream partitions
    read all of an extra upstream dimension, and every value of an extra downstream dimension reads the same. A coarser
    downstream period reads all the finer ones in it, a finer one reads the coarser that holds it.
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
                raise InvalidInput(
                    f"{self.dimension} is not a time dimension of both", hint=f"both have {', '.join(times) or 'none'}"
                )
            if len(times) != 1 and self.dimension is None:
                raise InvalidInput("a window needs one time dimension that both have", hint="name it")
        for name in shared:
            one, other = _axis(upstream, name), _axis(downstream, name)
            if isinstance(one, TimeAxis) != isinstance(other, TimeAxis):
                raise InvalidInput(f"dimension {name} is {one.kind} upstream and {other.kind} downstream")

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        if ends.is_line:
            return _moved_along(downstream, self.first, self.last, ends.all_upstream)
        carried = _carried(downstream, ends.downstream, ends.upstream, ends.all_upstream)
        return self._shifted(carried, ends, self.first, self.last) & ends.all_upstream

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        if ends.is_line:
            return _moved_along(upstream, -self.last, -self.first, ends.all_downstream)
        shifted = self._shifted(upstream, ends, -self.last, -self.first)
        return _carried(shifted, ends.upstream, ends.downstream, ends.all_downstream) & ends.all_downstream

    def describe(self) -> str:
        if (self.first, self.last) == (0, 0):
            return "identity"
        return f"window {self.first}..{self.last}{f' of {self.dimension}' if self.dimension else ''}"

    def _shifted(self, partitions: PartitionSet, ends: Ends, before: int, after: int) -> PartitionSet:
        """An upstream set, moved. Both ways it is moved upstream: a window counts in the periods of what is read."""
        if not (before or after):
            return partitions
        for place, axis in enumerate(ends.upstream.axes):
            if isinstance(axis, TimeAxis) and axis.name in ends.downstream.names and self.dimension in {None, axis.name}:
                partitions = partitions.along(place, lambda first, end: (first + before, end + after))
        return partitions


@dataclass(frozen=True, slots=True)
class Custom:
    """A function of the project's own: from one partition, by its values, to those that it reads.

    It is asked for one partition after the other, so it costs more than the others. A dimension that an answer does not name is
    taken whole; a time stands for the period that it lies in; what is not there is left out.
    """

    needs: Callable[[dict[str, Scalar]], Iterable[Values]]

    def check(self, upstream: Partitioning, downstream: Partitioning) -> None:
        """Fits if its author says so."""

    def needed(self, downstream: PartitionSet, ends: Ends) -> PartitionSet:
        boxes = [box for point in downstream.points() for box in self._boxes(point, ends)]
        return PartitionSet.of(len(ends.upstream.axes), boxes) & ends.all_upstream

    def touched(self, upstream: PartitionSet, ends: Ends) -> PartitionSet:
        found = [
            [(one, one + 1) for one in point]
            for point in ends.all_downstream.points()
            if any(PartitionSet.box(box) & upstream for box in self._boxes(point, ends))
        ]
        return PartitionSet.of(len(ends.downstream.axes), found)

    def describe(self) -> str:
        return f"custom {self._name}"

    def _boxes(self, point: Sequence[int], ends: Ends) -> Iterator[Box]:
        """What one partition reads, as ordinals."""
        if not ends.all_upstream:
            return
        made = ends.downstream.key(point)
        for wanted in self._answers(made):
            with self._placed():
                spans = _spans_of(wanted, ends)
            if all(spans):
                yield [span for span in spans if span is not None]

    def _answers(self, made: PartitionKey) -> list[Values]:
        """What the function says of one partition, or on which line it broke: it is the project's own, and may raise anything."""
        try:
            return list(self.needs(dict(made)))
        except Exception as error:
            lines = [one.lineno for one in extract_tb(error.__traceback__) if one.filename == self._where[0]]
            raise InvalidInput(
                f"{self._where[0]}:{lines[-1] if lines else self._where[1]}: {self._name} raised"
                f" {type(error).__name__}: {clip(' '.join(str(error).split()))} for {made}",
                hint="a mapping answers for every partition that is made",
            ) from error

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """What is wrong with an answer is said with the line of the function."""
        try:
            yield
        except InvalidInput as error:
            file, line = self._where
            raise InvalidInput(f"{file}:{line}: {self._name}: {error.message}", hint=error.hint) from error

    @property
    def _where(self) -> tuple[str, int]:
        code = getattr(self.needs, "__code__", None)
        return ("?", 0) if code is None else (code.co_filename, code.co_firstlineno)

    @property
    def _name(self) -> str:
        return str(getattr(self.needs, "__name__", self.needs))


def _spans_of(wanted: Values, ends: Ends) -> list[Bounds | None]:
    """One answer of a function, as ordinals: a span for each dimension of what is read, None where it has no such value."""
    if not isinstance(wanted, abc.Mapping):
        raise InvalidInput(f"it answers {clip(repr(wanted))}, which is no partition", hint='answer a list: [{"date": …}]')
    unknown = sorted(str(one) for one in set(wanted) - set(ends.upstream.names))
    if unknown:
        known = ", ".join(ends.upstream.names) or "none"
        raise InvalidInput(f"it names the dimension {unknown[0]!r}", hint=f"what is read has {known}")
    return [_place_of(axis, wanted, _extent(ends.all_upstream, n)) for n, axis in enumerate(ends.upstream.axes)]


def _place_of(axis: Axis, wanted: Values, whole: Bounds) -> Bounds | None:
    """The ordinals of one dimension that an answer means; None if there are none."""
    if axis.name not in wanted:
        return whole
    value = wanted[axis.name]
    if isinstance(axis, TimeAxis):
        place = axis.containing(axis.moment(value))
        return place, place + 1
    try:
        place = axis.ordinal(value)
    except InvalidInput:
        return None
    return place, place + 1


def _axis(partitioning: Partitioning, name: str) -> Axis:
    return next(axis for axis in partitioning.axes if axis.name == name)


def _carried(partitions: PartitionSet, here: Partitioning, there: Partitioning, everything: PartitionSet) -> PartitionSet:
    """A set carried over to the other asset's axes, dimension by dimension. It may reach beyond what there is."""
    if not partitions or not everything:
        return PartitionSet.nothing(len(there.axes))
    whole = {axis.name: _extent(everything, place) for place, axis in enumerate(there.axes)}
    boxes = []
    for box in partitions.boxes():
        spans = dict(zip(here.names, box, strict=True))
        boxes.append([_spans(axis, spans, here, whole[axis.name]) for axis in there.axes])
    return PartitionSet.of(len(there.axes), [bounds for parts in boxes for bounds in product(parts)])


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


def _spans(axis: Axis, spans: dict[str, Bounds], here: Partitioning, whole: Bounds) -> list[Bounds]:
    """What a span of one asset's dimension is on the other's."""
    if axis.name not in spans:
        return [whole]
    first, end = spans[axis.name]
    source = _axis(here, axis.name)
    if isinstance(axis, TimeAxis) and isinstance(source, TimeAxis):
        if axis.period is source.period:
            return [(first, end)]
        # The periods that overlap the span of time.
        return [(axis.containing(source.first_moment(first)), axis.containing(source.last_moment(end - 1)) + 1)]
    found = []
    for ordinal in range(first, end):
        value = source.value(ordinal)
        try:
            place = axis.ordinal(value)
        except InvalidInput:
            continue
        found.append((place, place + 1))
    return found
