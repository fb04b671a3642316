"""Other packages' models and games.

Each module needs its package, which is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gstarx.integrations import chemprop as chemprop
    from gstarx.integrations import shapiq as shapiq

__all__ = ["chemprop", "shapiq"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"gstarx.integrations.{name}")
    raise AttributeError(f"module 'gstarx.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
