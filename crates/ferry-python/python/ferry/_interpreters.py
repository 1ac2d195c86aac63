"""Refuses to be imported in a subinterpreter, before the native part is."""

from __future__ import annotations

import importlib


def _refuse() -> None:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        # Newer versions of Python return the number with its origin.
        current, main = (
            found[0] if isinstance(found, tuple) else found
            for found in (module.get_current(), module.get_main())
        )
        if current != main:
            raise ImportError(
                "ferry can't be imported in a subinterpreter: PyO3, with which it is built, keeps one state for the process"
            )
        return


_refuse()
