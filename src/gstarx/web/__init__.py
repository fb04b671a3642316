"""The explorer: a page to ask a model why, and the HTTP API behind it.

No science in here. The server moves JSON between browsers and worker processes and never loads a
deep-learning framework; the workers call the rooms above.
"""

from gstarx.web.settings import Limits, LoadedModel, ServedModel, ServedRun, Settings

__all__ = ["Limits", "LoadedModel", "ServedModel", "ServedRun", "Settings"]
