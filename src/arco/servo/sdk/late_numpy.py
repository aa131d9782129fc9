"""While a project is imported, PySpark's statistics of RDDs do not bring NumPy along; they fetch it when they first count.

`pyspark.statcounter` is all that makes `import pyspark` load NumPy: for three functions, which nothing that only imports a
project ever calls, and which take as long to load as half of PySpark. Its code is run as it stands. Only its own import of NumPy
is answered with stand-ins; when one is first called, NumPy's functions take their places, or what the module itself takes where
NumPy is not there. Whoever else imports NumPy gets NumPy, at once: a project's own import of it is none of this file's business.

What must never enter: another module than this one. A name that others import from a module, a base class for instance, cannot be
fetched late without being seen.
"""

import builtins
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

_MODULE = "pyspark.statcounter"
_WITHOUT_NUMPY: dict[str, Callable[..., Any]] = {"maximum": max, "minimum": min, "sqrt": math.sqrt}


@contextmanager
def numpy_when_it_counts() -> Iterator[None]:
    """For the time of an import. What was imported before stays as it is."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE or "numpy" in sys.modules or find_spec("numpy") is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """As ever, but that `from numpy import …` of this one module is answered here. No other module's import passes by."""

        def imported(
            name: str, globals_: Any = None, locals_: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
        ) -> Any:
            if name == "numpy" and level == 0 and fromlist and set(fromlist) <= _WITHOUT_NUMPY.keys():
                return SimpleNamespace(**{one: _Late(module, one, fromlist) for one in fromlist})
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)

        vars(module)["__builtins__"] = {**vars(builtins), "__import__": imported}
        super().exec_module(module)
        vars(module)["__builtins__"] = vars(builtins)


class _Late:
    """One of NumPy's functions, which is not there yet."""

    def __init__(self, module: ModuleType, name: str, names: Sequence[str]) -> None:
        self._module, self._name, self._names = module, name, tuple(names)

    def __call__(self, *args: Any) -> Any:
        try:
            numpy = import_module("numpy")
            found = {one: getattr(numpy, one) for one in self._names}
        except ImportError:
            found = {one: _WITHOUT_NUMPY[one] for one in self._names}
        vars(self._module).update(found)
        return found[self._name](*args)


_Late.__module__, _Late.__qualname__ = (
    "numpy",
    "ufunc",
)  # as what it stands for: a fingerprint may be taken of who holds one
