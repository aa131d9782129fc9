"""Importing a project loads no NumPy on PySpark's behalf, and nobody who needs NumPy can tell."""

import subprocess
import sys
from pathlib import Path

import pytest

LATE = "from arco.servo.sdk.late_numpy import numpy_when_it_counts\nwith numpy_when_it_counts():\n    import pyspark.sql\n"
AS_EVER = "import pyspark.sql\n"
COUNTED = """
import pickle, sys
import pyspark.statcounter as module
from pyspark.core.rdd import StatCounter
counter = StatCounter([3.0, 1, 2.5])
other = pickle.loads(pickle.dumps(counter)).mergeStats(StatCounter([7, float("nan")]))
for one in (counter, other, StatCounter()):
    print(one, type(one.maxValue), type(one.sampleStdev()), sorted(one.asDict().items()))
print(isinstance(counter, module.StatCounter), module.StatCounter.__module__, module.__file__, module.__spec__.name)
print([getattr(module, one) for one in ("maximum", "minimum", "sqrt")], "numpy" in sys.modules)
print(module.__builtins__ is __builtins__.__dict__)
"""


def said_by(code: str, *path: Path) -> str:
    paths = "".join(f"sys.path.insert(0, {str(one)!r}); " for one in path)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {paths}\n{code}"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_pyspark_is_imported_without_numpy() -> None:
    assert said_by(AS_EVER + "print('numpy' in sys.modules)") == "True\n"  # or this file has nothing to do any more
    assert said_by(LATE + "print('numpy' in sys.modules, 'pyspark.statcounter' in sys.modules)") == "False True\n"
    assert said_by(LATE + "print([one for one in sys.meta_path if 'arco' in type(one).__module__])") == "[]\n"


def test_statistics_are_the_same_to_the_type_and_numpy_is_in_its_place_afterwards() -> None:
    late, as_ever = said_by(LATE + COUNTED), said_by(AS_EVER + COUNTED)
    assert late == as_ever
    assert "numpy.float64" in late
    assert "<ufunc 'maximum'>" in late


@pytest.mark.parametrize("first", [LATE + "import numpy\n", "import numpy\n" + LATE, LATE.rstrip() + ", numpy\n"])
def test_whoever_imports_numpy_gets_numpy(first: str) -> None:
    assert said_by(first + "from numpy import maximum\nprint(maximum, numpy.maximum(1, 2), numpy.ndarray)") == (
        "<ufunc 'maximum'> 2 <class 'numpy.ndarray'>\n"
    )
    assert said_by(first + COUNTED) == said_by(AS_EVER + COUNTED)


def test_without_numpy_python_counts(tmp_path: Path) -> None:
    missing = "sys.modules['numpy'] = None\n"
    assert said_by(missing + LATE + COUNTED) == said_by(missing + AS_EVER + COUNTED)
    broken = tmp_path / "numpy.py"
    broken.write_text("raise ImportError('broken')\n")
    late = said_by(LATE + COUNTED, tmp_path)
    assert late == said_by(AS_EVER + COUNTED, tmp_path)
    assert "[<built-in function max>, <built-in function min>, <built-in function sqrt>]" in late


def test_fingerprints_know_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(
        "import math\nimport pyspark\nfrom pyspark import statcounter\nfrom pyspark.sql import DataFrame, functions as f\n"
        "from pyspark.statcounter import StatCounter, maximum\nfrom arco import asset, source\n"
        "EMPTY = StatCounter()\nraw = source('raw.a')\n"
        "class Mine(StatCounter):\n    top = maximum\n    def spread(self): return self.max() - self.min()\n"
        "def standing(a, by=maximum): return by(a, 1)\n@asset(inputs={'raw': raw})\ndef a(raw: DataFrame):\n"
        "    import numpy as np\n    def bigger(a, b, by=maximum): return by(a, b)\n    bigger(1, 2); standing(1)\n"
        "    StatCounter([1]); maximum(1, 2); statcounter.sqrt(4); EMPTY; Mine()\n"
        "    return raw.select(f.lit(np.pi))\n"
    )
    load = (
        "from pathlib import Path; from arco.servo.sdk.project import load_project\n"
        f"made = load_project(Path({str(tmp_path)!r}), name='s', namespace='s')\n"
        "print('numpy' in sys.modules, made.code_version, [one.fingerprint for one in made.assets.values()])"
    )
    late, before, afterwards = (said_by(first + load).split(" ", 1) for first in ("", "import numpy\n", AS_EVER))
    assert (late[0], before[0], afterwards[0]) == ("False", "True", "True")
    assert late[1] == before[1] == afterwards[1]
