"""What every test runs under: nothing leaves loopback, and nothing of the developer's own cloud set-up leaks in."""

import os

CLOSED_PORT = "127.0.0.1:9"

for _name in list(os.environ):
    if _name.startswith(("AWS_", "GOOGLE_", "AZURE_", "ARCO_")):
        del os.environ[_name]
os.environ["AWS_METADATA_ENDPOINT"] = f"http://{CLOSED_PORT}"
os.environ["GCE_METADATA_HOST"] = CLOSED_PORT
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
