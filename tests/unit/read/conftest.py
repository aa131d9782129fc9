"""The ground that every test of the room stands on."""

from unit.read.ground import ground

__all__ = ["ground"]
