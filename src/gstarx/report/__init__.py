"""A report on explainers and graphs as one HTML file that needs no network."""

from gstarx.report.building import build_report
from gstarx.report.data import Explained, ExplainerRow, ReportData
from gstarx.report.writing import report_page, summary_page, write_report

__all__ = [
    "Explained",
    "ExplainerRow",
    "ReportData",
    "build_report",
    "report_page",
    "summary_page",
    "write_report",
]
