"""The collector against slow writers, as models: metadata files, nameless pointers, dense numbers, data files, markers.

Writers may sleep for any time at any step; collectors list, look, and delete one object a step. Whatever is deleted must be
needed by nobody, now or later. Records of transactions are collected in `transactions.py`, beside who needs them.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from specs.explorer import Local, Model, Shared, Step

ACTIONS = (
    "commit.staged",
    "commit.swung",
    "create.staged",
    "catalog.manifest_swung",
    "upkeep.boundary_raised",
    "upkeep.deleted",
)

GUARDS = {
    "number_at_most_current": "U2 a metadata file goes only if its commit number is not above the pointer's",
    "not_in_history": "U2 a metadata file goes only if no commit of the table's history names it",
    "only_upkeep_deletes": "T14, T20 the commit path deletes nothing, whatever became of its swing",
    "boundary_raised_first": "U1 the boundary is raised before a nameless pointer is deleted",
    "boundary_by_cas": "U1 the boundary is raised on the manifest in which the names were looked for",
    "create_checks_boundary": "U1 a create minted below the boundary is refused",
    "number_boundary_first": "T6 the boundary of dense numbers is raised before one is deleted",
    "writer_checks_boundary": "T6 whoever created a number looks at the boundary afterwards",
    "writer_looks_for_itself": "T6 a number below the boundary may have been read: its writer asks before it writes again",
    "grace": "T7 what is young stays",
    "stores_clock": "T7, T13 age is measured by the store's clock",
    "open_intents": "T7 what an open intent names stays",
    "files_before_intents": "T7 the prefix is listed before the intents are read",
    "intents_before_pointers": "T7 the intents are read before the pointers",
    "whole_prefix": "T8 everything that is live under a prefix is known before the first deletion",
    "old_keys_refused": "C11 a key past its lifetime is refused",
    "age_after_marker": "C11 the key's age is looked at again after the marker was claimed",
    "marker_outlives_key": "C11 a marker goes only after its key's lifetime and a grace",
    "markers_not_failed": "C11 the collector deletes markers and never marks one failed",
}

DELETED = "G (nothing is deleted that somebody still needs): "


class Scenario(Model):
    """A model whose actors are functions of the shared objects and a local state (held, place, …)."""

    name = "collector"
    guards: tuple[str, ...] = ()

    def __init__(self, without: str = "") -> None:
        assert not without or without in self.guards, without
        self._without = without

    def on(self, guard: str) -> bool:
        assert guard in GUARDS, guard
        return self._without != guard

    @abstractmethod
    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]: ...

    def steps(self, role: str, shared: Shared, local: Local) -> Iterable[Step]:
        return self.actors()[role](shared, local)

    @abstractmethod
    def start(self) -> Shared: ...

    def initial(self) -> tuple[Shared, tuple[Local, ...]]:
        return self.start(), tuple((0, "start") for _ in self.roles)


END: Local = (0, "end")
START: Local = (0, "start")


def swung(action: str, index: int, value: Any, landed: Local, silent: Local, *also: tuple[int, Any]) -> Iterator[Step]:
    """A conditional write that lands; or whose reply is lost, with or without the effect."""
    yield Step(action, landed, ((index, value), *also))
    yield Step(f"{action}, but the reply is lost", silent, ((index, value),), lost=True)
    yield Step(f"{action}? no: it has no effect, and no reply", silent, lost=True)


class MetadataFiles(Scenario):
    """Two requests, one of them made twice, commit to one table; two collectors remove metadata files that nobody needs."""

    guards = ("number_at_most_current", "not_in_history", "only_upkeep_deletes")
    roles = ("request 1", "request 1", "request 2", "collector", "collector")
    POINTER, FILES, TOLD = 0, 1, 2  # the pointer is the history of file names, whose last one is current

    def start(self) -> Shared:
        return ((0, 0),), frozenset([(0, 0)]), frozenset()

    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]:
        return {
            "request 1": lambda shared, local: self._request(1, shared, local),
            "request 2": lambda shared, local: self._request(2, shared, local),
            "collector": self._collector,
        }

    def dropped(self, local: Local) -> Local:
        return (0, "lost", *local[2:]) if local[1] == "swing" else local

    def _request(self, key: int, shared: Shared, local: Local) -> Iterator[Step]:
        history, files, told = shared
        match local[1]:
            case "start" if any(key == owner for _, owner in history):
                yield Step("reads the pointer: its commit is there", END, ((self.TOLD, told | {key}),))
            case "start":
                yield Step("reads the pointer", (1 << self.POINTER, "stage", (history[-1][0] + 1, key)))
            case "stage":
                place = "swing" if local[0] else "lost"
                after = (local[0], place, local[2])
                yield Step(f"commit.staged file {local[2]}", after, ((self.FILES, files | {local[2]}),))
            case "swing":
                also = (self.TOLD, told | {key})
                silent = (0, "silent", local[2])
                yield from swung(f"commit.swung to {local[2]}", self.POINTER, (*history, local[2]), END, silent, also)
            case "lost" | "silent" if not self.on("only_upkeep_deletes"):
                yield Step(f"cleans up: deletes file {local[2]}", START, ((self.FILES, files - {local[2]}),))
            case "lost" | "silent":
                yield Step("begins again", START)
            case _:
                pass  # it waits, or has come to its end

    def _collector(self, shared: Shared, local: Local) -> Iterator[Step]:
        history, files, _ = shared
        if local[1] == "start":
            yield Step("lists the files", (0, "listed", files))
        elif local[1] == "listed":
            garbage = frozenset(one for one in local[2] if self._is_garbage(one, history))
            yield Step("reads the pointer", (0, "delete", garbage) if garbage else START)
        else:
            for one in local[2]:
                rest = local[2] - {one}
                yield Step(
                    f"upkeep.deleted file {one}", (0, "delete", rest) if rest else START, ((self.FILES, files - {one}),)
                )

    def _is_garbage(self, one: tuple[int, int], history: tuple[tuple[int, int], ...]) -> bool:
        needed = history if self.on("not_in_history") else history[-1:]
        return one not in needed and (one[0] <= history[-1][0] or not self.on("number_at_most_current"))

    def broken(self, shared: Shared) -> str:
        history, files, told = shared
        if missing := [one for one in history if one not in files]:
            return f"{DELETED}the table's history names file {missing[0]}, which is deleted"
        owners = [owner for _, owner in history]
        if len(set(owners)) < len(owners) or not told <= set(owners):
            return "I (one key has at most one effect): a commit is lost or done twice"
        return ""


class NamelessPointers(Scenario):
    """Creates write a pointer, then the name; a collector removes pointers that have no name."""

    guards = ("boundary_raised_first", "boundary_by_cas", "create_checks_boundary")
    roles = ("create 1", "create 2", "collector", "collector")
    MANIFEST, POINTERS, TOLD = 0, 1, 2  # manifest: (names, boundary)

    def start(self) -> Shared:
        return (frozenset(), 0), frozenset(), frozenset()

    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]:
        return {
            "create 1": lambda shared, local: self._create(1, shared, local),
            "create 2": lambda shared, local: self._create(2, shared, local),
            "collector": self._collector,
        }

    def dropped(self, local: Local) -> Local:
        return (0, "staged") if local[1] == "name" else START if local[1] == "raise" else local

    def _create(self, uuid: int, shared: Shared, local: Local) -> Iterator[Step]:
        (names, boundary), pointers, told = shared
        match local[1]:
            case "start":
                yield Step("create.staged: writes its pointer", (0, "staged"), ((self.POINTERS, pointers | {uuid}),))
            case "staged" if uuid in names:
                yield Step("reads the manifest: its name is there", END, ((self.TOLD, told | {uuid}),))
            case "staged" if uuid < boundary and self.on("create_checks_boundary"):
                yield Step("reads the manifest: minted below the boundary, refused", END)
            case "staged":
                yield Step("reads the manifest", (1 << self.MANIFEST, "name"))
            case "name":
                value, also = (names | {uuid}, boundary), (self.TOLD, told | {uuid})
                yield from swung("catalog.manifest_swung: the name exists", self.MANIFEST, value, END, (0, "staged"), also)
            case _:
                pass  # it waits, or has come to its end

    def _collector(self, shared: Shared, local: Local) -> Iterator[Step]:
        (names, boundary), pointers, _ = shared
        match local[1]:
            case "start":
                yield Step("lists the pointers", (0, "listed", pointers))
            case "listed":
                nameless = local[2] - names
                place = "raise" if self.on("boundary_raised_first") else "delete"
                held = 1 << self.MANIFEST if place == "raise" and self.on("boundary_by_cas") else 0
                yield Step("reads the manifest", (held, place, nameless) if nameless else START)
            case "raise":
                value = (names, max(boundary, *(uuid + 1 for uuid in local[2])))
                deleting = (0, "delete", local[2])
                yield from swung("upkeep.boundary_raised", self.MANIFEST, value, deleting, START)
            case "delete":
                for uuid in local[2]:
                    rest = local[2] - {uuid}
                    after = (0, "delete", rest) if rest else START
                    yield Step(f"upkeep.deleted pointer {uuid}", after, ((self.POINTERS, pointers - {uuid}),))
            case _:
                pass  # it waits, or has come to its end

    def broken(self, shared: Shared) -> str:
        (names, _), pointers, told = shared
        if missing := names - pointers:
            return f"{DELETED}the table of create {min(missing)} has a name and no pointer"
        return "" if told <= names else "D (what was acknowledged is visible): a create is lost"


class DenseNumbers(Scenario):
    """Two writers create numbered objects, a reader takes them in order, a collector removes what was taken."""

    guards = ("number_boundary_first", "writer_checks_boundary", "writer_looks_for_itself")
    roles = ("writer 1", "writer 2", "reader", "collector")
    NUMBERS, BOUNDARY, TAKEN, TOLD = 0, 1, 2, 3
    SIZE = 4

    def start(self) -> Shared:
        return (0,) * self.SIZE, 0, (), frozenset()

    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]:
        return {
            "writer 1": lambda shared, local: self._writer(1, shared, local),
            "writer 2": lambda shared, local: self._writer(2, shared, local),
            "reader": self._reader,
            "collector": self._collector,
        }

    def _writer(self, me: int, shared: Shared, local: Local) -> Iterator[Step]:
        numbers, boundary, taken, told = shared
        match local[1]:
            case "start":
                yield Step("reads the boundary", (0, "list", boundary))
            case "list":
                free = [at for at in range(local[2], self.SIZE) if not any(numbers[at:])]
                if free:
                    yield Step(f"lists the numbers: {free[0]} is next", (0, "create", free[0]))
            case "create" if numbers[local[2]]:
                yield Step(f"finds number {local[2]} taken", START if numbers[local[2]] != me else (0, "check", local[2]))
            case "create":
                value = (*numbers[: local[2]], me, *numbers[local[2] + 1 :])
                check = (0, "check", local[2])
                yield Step(f"creates number {local[2]}", check, ((self.NUMBERS, value),))
                yield Step(
                    f"creates number {local[2]}, but the reply is lost",
                    (0, "silent", local[2]),
                    ((self.NUMBERS, value),),
                    True,
                )
            case "silent":
                is_mine = numbers[local[2]] == me
                yield Step(f"reads number {local[2]}", (0, "check" if is_mine else "ask", local[2]))
            case "check" if boundary > local[2] and self.on("writer_checks_boundary"):
                yield Step("reads the boundary: it is above", (0, "ask", local[2]))
            case "check":
                yield Step("reads the boundary: it counts", END, ((self.TOLD, told | {me}),))
            case "ask" if me in taken and self.on("writer_looks_for_itself"):
                yield Step("asks the reader's state: it was taken", END, ((self.TOLD, told | {me}),))
            case "ask":
                yield Step("writes again", START)
            case _:
                pass  # it waits, or has come to its end

    def _reader(self, shared: Shared, local: Local) -> Iterator[Step]:
        numbers, _, taken, _ = shared
        if len(taken) < self.SIZE and (one := numbers[len(taken)]):
            yield Step(f"takes number {len(taken)}", local, ((self.TAKEN, (*taken, one)),))

    def _collector(self, shared: Shared, local: Local) -> Iterator[Step]:
        numbers, boundary, taken, _ = shared
        match local[1]:
            case "start" if boundary < len(taken):
                place = "raise" if self.on("number_boundary_first") else "delete"
                yield Step("reads how far the reader is", (0, place, len(taken)))
            case "raise":
                place = "delete" if self.on("number_boundary_first") else "start"
                yield Step(f"raises the boundary to {local[2]}", (0, place, local[2]), ((self.BOUNDARY, local[2]),))
            case "delete":
                if present := [at for at in range(local[2]) if numbers[at]]:
                    value = (*numbers[: present[0]], 0, *numbers[present[0] + 1 :])
                    yield Step(f"deletes number {present[0]}", local, ((self.NUMBERS, value),))
                else:
                    after = START if self.on("number_boundary_first") else (0, "raise", local[2])
                    yield Step("has deleted everything below", after)
            case _:
                pass  # it waits, or has come to its end

    def broken(self, shared: Shared) -> str:
        numbers, _, taken, told = shared
        if len(set(taken)) < len(taken):
            return "I (one key has at most one effect): an entry was taken twice"
        if lost := [me for me in told if me not in taken and me not in numbers[len(taken) :]]:
            return (
                f"D (what was acknowledged is visible): the entry of writer {lost[0]} is below the boundary and never read"
            )
        return ""


class DataFiles(Scenario):
    """Two tables under one prefix. One job opens an intent and may sleep for ever, one has none and ends within the grace."""

    guards = ("grace", "stores_clock", "open_intents", "files_before_intents", "intents_before_pointers", "whole_prefix")
    roles = ("job with an intent", "job without", "time", "collector", "collector")
    FILES, TABLES, INTENTS, AHEAD = 0, 1, 2, 3  # file n is for table n
    NONE, YOUNG, OLD, GONE_YOUNG, GONE = range(5)

    def start(self) -> Shared:
        return (self.NONE, self.NONE), frozenset(), frozenset(), 0

    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]:
        return {
            "job with an intent": self._careful,
            "job without": self._plain,
            "time": self._time,
            "collector": self._collector,
        }

    def _aged(self, files: tuple[int, ...], one: int, age: int) -> tuple[int, tuple[int, ...]]:
        return self.FILES, (*files[:one], age, *files[one + 1 :])

    def _careful(self, shared: Shared, local: Local) -> Iterator[Step]:
        files, tables, intents, _ = shared
        match local[1]:
            case "start":
                yield Step("opens an intent for file 0", (0, "write"), ((self.INTENTS, intents | {0}),))
            case "write":
                yield Step("writes file 0", (0, "commit"), (self._aged(files, 0, self.YOUNG),))
            case "commit":
                yield Step("commits file 0 to table 0", (0, "close"), ((self.TABLES, tables | {0}),))
            case "close":
                yield Step("closes its intent", END, ((self.INTENTS, intents - {0}),))
            case _:
                pass  # it waits, or has come to its end

    def _plain(self, shared: Shared, local: Local) -> Iterator[Step]:
        """It commits before its file is old, or never: whoever opens no intent must be done within the grace."""
        files, tables, _, _ = shared
        if local[1] == "start":
            yield Step("writes file 1", (0, "commit"), (self._aged(files, 1, self.YOUNG),))
        elif local[1] == "commit" and files[1] in {self.YOUNG, self.GONE_YOUNG}:
            yield Step("commits file 1 to table 1", END, ((self.TABLES, tables | {1}),))

    def _time(self, shared: Shared, local: Local) -> Iterator[Step]:
        files, _, _, ahead = shared
        for one, age in enumerate(files):
            if age == self.YOUNG:
                yield Step(f"file {one} is older than the grace", local, (self._aged(files, one, self.OLD),))
        if not ahead:
            yield Step("the collector's clock runs ahead", local, ((self.AHEAD, 1),))

    def _collector(self, shared: Shared, local: Local) -> Iterator[Step]:
        """Local: (held, what is still to be read, files listed as old, what must stay)."""
        files, tables, intents, ahead = shared
        if local[1] == "start":
            local = (0, self._order(), frozenset(), frozenset())
        _, order, old, live = local
        match order[:1]:
            case ("files",):
                listed = frozenset(one for one, age in enumerate(files) if self._looks_old(age, ahead))
                yield Step("lists the prefix", (0, order[1:], listed, live))
            case ("intents",):
                yield Step("reads the intents", (0, order[1:], old, live | intents))
            case ("pointer 0",):
                yield Step("reads the pointer of table 0", (0, order[1:], old, live | (tables & {0})))
            case ("pointer 1",):
                yield Step("reads the pointer of table 1", (0, order[1:], old, live | (tables & {1})))
            case _:
                garbage = sorted(old - live)
                if not garbage:
                    yield Step("has nothing more to delete", START)
                else:
                    after = (0, (), old - {garbage[0]}, live)
                    gone = self.GONE_YOUNG if files[garbage[0]] in {self.YOUNG, self.GONE_YOUNG} else self.GONE
                    yield Step(f"upkeep.deleted file {garbage[0]}", after, (self._aged(files, garbage[0], gone),))

    def _order(self) -> tuple[str, ...]:
        pointers = ("pointer 0", "pointer 1") if self.on("whole_prefix") else ("pointer 0",)
        intents = ("intents",) if self.on("open_intents") else ()
        if not self.on("files_before_intents"):
            return (*intents, "files", *pointers)
        return ("files", *intents, *pointers) if self.on("intents_before_pointers") else ("files", *pointers, *intents)

    def _looks_old(self, age: int, ahead: int) -> bool:
        if age == self.YOUNG:
            return not self.on("grace") or bool(ahead and not self.on("stores_clock"))
        return age == self.OLD

    def broken(self, shared: Shared) -> str:
        files, tables, intents, _ = shared
        for one, age in enumerate(files):
            if age in {self.GONE_YOUNG, self.GONE} and (one in tables or one in intents):
                return f"{DELETED}file {one} is named by {'table' if one in tables else 'the intent for table'} {one}"
        return ""


class Markers(Scenario):
    """Two requests with one key commit to one table, while the key grows old and its marker is collected."""

    guards = ("old_keys_refused", "age_after_marker", "marker_outlives_key", "markers_not_failed")
    roles = ("request", "request", "time", "collector")
    MARKER, POINTER, AGE, TOLD = 0, 1, 2, 3  # the pointer counts what the key did; told: "ok", "failed"

    def start(self) -> Shared:
        return "", 0, 0, frozenset()

    def actors(self) -> dict[str, Callable[[Shared, Local], Iterable[Step]]]:
        return {"request": self._request, "time": self._time, "collector": self._collector}

    def dropped(self, local: Local) -> Local:
        return (local[0], "again") if local[1] in {"swing", "door"} and not local[0] >> self.POINTER & 1 else local

    def _request(self, shared: Shared, local: Local) -> Iterator[Step]:
        marker, done, age, told = shared
        match local[1]:
            case "start":
                refused = age > 0 and self.on("old_keys_refused")
                yield Step("looks at the key's age", END if refused else (0, "point"))
            case "point":
                yield Step("reads the pointer", (1 << self.POINTER, "claim"))
            case "claim" if marker in {"done", "failed"}:
                answer = "ok" if marker == "done" else "failed"
                yield Step(f"reads the marker: {marker}; answers", END, ((self.TOLD, told | {answer}),))
            case "claim":
                # An existing marker is a takeover: history is asked before anything is swung.
                after = "door" if self.on("age_after_marker") and self.on("old_keys_refused") else "swing"
                if not local[0] >> self.POINTER & 1 or (marker and done):
                    after = "again"
                yield Step("claims the marker", (local[0], after), ((self.MARKER, "open"),))
            case "door":
                yield Step("looks at the key's age again", END if age > 0 else (local[0], "swing"))
            case "swing":
                also = (self.TOLD, told | {"ok"})
                yield from swung("commit.swung", self.POINTER, done + 1, (0, "finalize"), (0, "again"), also)
            case "again" if done:
                yield Step("finds its commit in the history", (0, "finalize"), ((self.TOLD, told | {"ok"}),))
            case "again":
                yield Step("does not find its commit in the history", (0, "point"))
            case "finalize" if marker == "open":
                yield Step("finalizes the marker", END, ((self.MARKER, "done"),))
            case _:
                pass  # it waits, or has come to its end

    def _time(self, shared: Shared, local: Local) -> Iterator[Step]:
        if shared[self.AGE] < 2:
            says = ("the key is past its lifetime", "the key is past its lifetime and the grace")[shared[self.AGE]]
            yield Step(says, local, ((self.AGE, shared[self.AGE] + 1),))

    def _collector(self, shared: Shared, local: Local) -> Iterator[Step]:
        marker, _, age, _ = shared
        if marker and (age == 2 or not self.on("marker_outlives_key")):
            yield Step("upkeep.deleted the marker", local, ((self.MARKER, ""),))
        if marker == "open" and not self.on("markers_not_failed"):
            yield Step("marks the marker failed", local, ((self.MARKER, "failed"),))

    def broken(self, shared: Shared) -> str:
        _, done, _, told = shared
        if done > 1:
            return "I (one key has at most one effect): one request was committed twice"
        if "failed" in told and (done or "ok" in told):
            return "E (what was refused is never visible): a request was told as failed, and it landed"
        return ""


SCENARIOS: tuple[type[Scenario], ...] = (MetadataFiles, NamelessPointers, DenseNumbers, DataFiles, Markers)
