"""The explorer: a web page that explains predictions, and its HTTP API.

The server passes JSON between browsers and worker processes and never imports torch; the workers
call the other packages.
"""

from gstarx_explorer.settings import Kept, Limits, ServedModel, ServedRun, Settings

__all__ = ["Kept", "Limits", "ServedModel", "ServedRun", "Settings"]
