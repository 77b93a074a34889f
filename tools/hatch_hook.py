"""What the build of a wheel asks: whether machine code goes into it, and how it is named then."""

from __future__ import annotations

import os
from importlib.metadata import distribution
from importlib.metadata import version as version_of
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILERS = ("numba", "llvmlite")
VARIABLE = "EVENTIDE_SHIPPED"
"""Names the folder with machine code; without it the wheel is pure Python, and compiles."""


class ShippedKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Puts machine code into a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Add the folder with machine code, if one is named."""
        folder = os.environ.get(VARIABLE)
        if folder is None:
            return
        build_data["pure_python"] = False
        build_data["tag"] = tag_of("numba")
        build_data["force_include"][folder] = "eventide/kernels/machine_code/shipped"
        # With others its code would be left aside.
        build_data["dependencies"] += [f"{each}=={version_of(each)}" for each in COMPILERS]


def tag_of(package: str) -> str:
    """Return the tag of an installed wheel: our machine code runs where numba's own does."""
    lines = (distribution(package).read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in lines if line.startswith("Tag: ")]
    return "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
