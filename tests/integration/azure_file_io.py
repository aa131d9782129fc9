"""PyArrow's access to Azure for PyIceberg, which releases up to 0.12 lead to a container that cannot exist.

They take `container@account.dfs.core.windows.net` for the name of the container (apache/iceberg-python#2698); the next
release keeps the account out of it (#3884), as here. Nothing but that is changed: settings come from the server.
"""

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties


class AccountApart(PyArrowFileIO):
    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        container, _, inside = path.partition("/")
        return scheme, netloc, f"{container.partition('@')[0]}/{inside}"
