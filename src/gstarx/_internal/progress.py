"""Progress bars: of notebooks in notebooks, of text elsewhere."""

import warnings

with warnings.catch_warnings():
    # a notebook without ipywidgets shows bars of text, which needs no warning
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm

__all__ = ["tqdm"]
