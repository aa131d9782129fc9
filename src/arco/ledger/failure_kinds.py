"""The words for what a failure is: ten categories and the lost lease. Whoever writes that an attempt failed uses one of them."""

from enum import StrEnum


class Category(StrEnum):
    SCHEMA_VIOLATION = "schema_violation"
    DATA_QUALITY = "data_quality"
    MISSING_DEPENDENCY = "missing_dependency"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    TIMEOUT = "timeout"
    STORAGE = "storage"
    TRANSFORM = "transform"
    CONFIGURATION = "configuration"
    UPSTREAM = "upstream"
    RATE_LIMITED = "rate_limited"
    LOST_LEASE = "lost_lease"
