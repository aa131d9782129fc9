"""What PyIceberg says of transforms and of default values: the one file of this room that imports it.

It is loaded when a rule is asked for that is PyIceberg's own. What must never enter: a rule of our own.
"""

from pyiceberg.conversions import from_json
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType, PrimitiveType


def can_transform(transform: str, primitive: str) -> bool:
    """Whether values of a primitive type can go through a transform; both are known spellings."""
    return parse_transform(transform).can_transform(_type(primitive))


def can_read(primitive: str, value: str) -> bool:
    """Whether a text is a value of a primitive type."""
    try:
        from_json(_type(primitive), value)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _type(primitive: str) -> PrimitiveType:
    parsed = IcebergType.model_validate(primitive)
    if not isinstance(parsed, PrimitiveType):
        raise TypeError(f"{primitive} is not primitive")
    return parsed
