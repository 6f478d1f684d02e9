"""Pictures, tables and the HTML report of a run."""

from robot_fb.reports.page import write_report

__all__ = ["write_report"]
