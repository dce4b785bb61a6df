"""Runs the serving benchmark of an installed sglang wheel, unchanged, without the engine's GPU packages.

    python run_sglang.py python|rust ARGUMENTS OF THE BENCHMARK

Importing `sglang` the usual way brings torch and CUDA. The benchmark itself needs of the engine one constant and a
tokenizer's loader; both are given here, and the packages' own `__init__` files are left out.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import runpy
import sys
import sysconfig
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(sysconfig.get_paths()["purelib"]) / "sglang"
SERVING = "sglang.benchmark.serving"


def stand_in(name: str, folder: Path | None = None, **names: object) -> None:
    """Put a module in place of a package's own."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=folder is not None)
    if folder is not None:
        module.__path__ = [str(folder)]
    module.__dict__.update(names)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)


def load_tokenizer(folder: str, **_: object) -> Any:
    """Load a tokenizer from a folder, as the engine would."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


stand_in("sglang", ROOT, __version__=version("sglang"))
stand_in("sglang.srt", ROOT / "srt")
which, arguments = sys.argv[1], sys.argv[2:]
if which == "rust":
    stand_in("sglang.srt.rust_extensions", ROOT / "srt" / "rust_extensions")
    bench = importlib.import_module("sglang.srt.rust_extensions._bench")
    bench.run_argv(["sglang-bench", *arguments])
else:
    stand_in("sglang.srt.utils", ROOT / "srt" / "utils")
    stand_in("sglang.srt.disaggregation", ROOT / "srt" / "disaggregation")
    stand_in("sglang.srt.disaggregation.utils", FAKE_BOOTSTRAP_HOST="2.2.2.2")
    stand_in("sglang.srt.utils.hf_transformers_utils", get_tokenizer=load_tokenizer)
    sys.argv = [SERVING, *arguments]
    runpy.run_module(SERVING, run_name="__main__", alter_sys=True)
