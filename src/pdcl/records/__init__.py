"""A run on disk, and many runs as one table."""

from pdcl.records.naming import run_name
from pdcl.records.reading import read_config, read_events, read_result
from pdcl.records.record import Record
from pdcl.records.table import Row, Survey, scan, survey

__all__ = ["Record", "Row", "Survey", "read_config", "read_events", "read_result", "run_name", "scan", "survey"]
