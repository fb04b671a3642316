"""The explorer: a web page that explains predictions, and its HTTP API.

The server passes JSON between browsers and worker processes and never imports torch; the workers
call the other packages.
"""

from gstarx_explorer.memory import default_memory as default_memory
from gstarx_explorer.settings import Limits, LoadedModel, ServedModel, ServedRun, Settings
from gstarx_explorer.settings import is_loopback as is_loopback

__all__ = ["Limits", "LoadedModel", "ServedModel", "ServedRun", "Settings"]
