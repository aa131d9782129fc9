"""Bytes of a file that was read already, or is being made, for PyIceberg: it asks for files, and here nothing is opened.

What must never enter: a store.
"""

from io import BytesIO
from typing import Any

from pyiceberg.io import InputFile, OutputFile


class HeldFile(InputFile):
    """Bytes that were read already."""

    def __init__(self, location: str, data: bytes) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:  # noqa: FBT001 - PyIceberg's signature
        return BytesIO(self._data)


class MadeFile(OutputFile):
    """Bytes that PyIceberg makes, kept until they are written."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.data = b""

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return HeldFile(self.location, self.data)

    def create(self, overwrite: bool = False) -> Any:  # noqa: FBT001 - PyIceberg's signature
        return _Keeping(self)


class _Keeping(BytesIO):
    def __init__(self, file: MadeFile) -> None:
        super().__init__()
        self._file = file

    def close(self) -> None:
        if not self.closed:
            self._file.data = self.getvalue()
        super().close()
