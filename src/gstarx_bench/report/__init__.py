"""A report on explainers and graphs as one HTML file that needs no network."""

from gstarx_bench.report.building import ReportOptions, build_report
from gstarx_bench.report.data import Explained, ExplainerRow, ReportData
from gstarx_bench.report.writing import render as render
from gstarx_bench.report.writing import report_page, summary_page, write_report

__all__ = [
    "Explained",
    "ExplainerRow",
    "ReportData",
    "ReportOptions",
    "build_report",
    "report_page",
    "summary_page",
    "write_report",
]
