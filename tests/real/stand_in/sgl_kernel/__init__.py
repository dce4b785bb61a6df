"""Stands in for `sgl_kernel`, whose CPU build no package index carries: every name imports, no kernel runs.

SGLang imports names from it, and calls none for a dense model on a processor without AMX. A call says so.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

__version__ = "0.4.10"


class _Missing:
    """A kernel that is not here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{self._name} is not built here")

    def __getattr__(self, name: str) -> _Missing:
        return _missing(self._name, name)


class _Module(types.ModuleType):
    """A submodule whose every name is missing."""

    def __getattr__(self, name: str) -> _Missing:
        return _missing(self.__name__, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        inside = name.startswith(f"{__name__}.")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if inside else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _Module(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


def _missing(place: str, name: str) -> _Missing:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"{place}.{name}")


def __getattr__(name: str) -> _Missing:
    return _missing(__name__, name)


sys.meta_path.append(_Finder())
