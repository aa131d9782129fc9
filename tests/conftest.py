"""What every test runs under: nothing leaves loopback, and nothing of the developer's own cloud set-up leaks in."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from tests.quick_java import QUICK

SPARK_ARCHIVE = Path(__file__).resolve().parents[1] / ".tools" / "spark.jsa"
CLOSED_PORT = "127.0.0.1:9"

for _name in list(os.environ):
    if _name.startswith(("AWS_", "GOOGLE_", "AZURE_", "ARCO_")):
        del os.environ[_name]
# Tests write two modules of one name and one size within a second: what was compiled of the first would pass for the second.
# The product itself is compiled before (tools/tests.sh).
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ["AWS_METADATA_ENDPOINT"] = f"http://{CLOSED_PORT}"
os.environ["GCE_METADATA_HOST"] = CLOSED_PORT
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# Code that runs once is not worth the better compiler, and classes that are mapped need not be loaded (tools/spark_archive.py):
# a session takes a third of the processor. An archive that does not fit is passed over without a word.
os.environ["SPARK_LAUNCHER_OPTS"] = QUICK
os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK} -Xlog:disable -XX:SharedArchiveFile={SPARK_ARCHIVE}"
# No test fails because a machine is slow.
settings.register_profile("arco", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("arco")
