"""Installed OpenCL drivers that the loader does not find by itself.

PoCL's wheel puts itself where pyopencl's loader looks. Intel's wheel does not (its ``.icd`` file names a
folder of another machine), nor does NVIDIA's driver inside containers (the library is there, the ``.icd``
file is not). For those, ``.icd`` files are written into a folder of ours, together with the system's, and the
loader is pointed to that folder. Nothing is done where the user has set ``OCL_ICD_VENDORS``, or where nothing
is missing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from polyloom.caches import cache_folder, unusable_pocl_cache
from polyloom.files import exists, is_folder

VARIABLE = "OCL_ICD_VENDORS"
SYSTEM = Path("/etc/OpenCL/vendors")
_NVIDIA = "libnvidia-opencl.so.1"
_NVIDIA_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib",
)


@dataclass(frozen=True)
class Surroundings:
    """Where drivers may lie: injected in tests."""

    system: Path = SYSTEM
    libraries: tuple[Path, ...] = ()
    intel: Path | None = None

    @staticmethod
    def here() -> Surroundings:
        """Look around on this machine."""
        extra = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        folders = map(Path, (*extra, *_NVIDIA_FOLDERS))
        return Surroundings(libraries=tuple(f for f in folders if f.is_absolute()), intel=intel_library())


def intel_library() -> Path | None:
    """Return the library of Intel's CPU runtime, if its wheel is installed here."""
    try:
        files = metadata.distribution("intel-opencl-rt").files or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(f.locate())).resolve() for f in files if f.name == "libintelocl.so")
    return next((path for path in found if exists(path)), None)


def pip_library() -> Path | None:
    """Return the OpenCL library that came with PyOpenCL, which finds the drivers of other wheels."""
    found = importlib.util.find_spec("pyopencl")
    folders = [] if found is None else found.submodule_search_locations or []
    libraries = (path for folder in folders for path in Path(folder).glob(".libs/libOpenCL*.so*"))
    return next(iter(sorted(libraries)), None)


def missing_drivers(around: Surroundings) -> dict[str, str]:
    """Return ``.icd`` files to add, name to content, for drivers that no ``.icd`` file names."""
    named = " ".join(system_drivers(around.system).values())
    found: dict[str, str] = {}
    if around.intel is not None and str(around.intel) not in named:
        found["polyloom-intel.icd"] = str(around.intel)
    nvidia = next((folder / _NVIDIA for folder in around.libraries if exists(folder / _NVIDIA)), None)
    if nvidia is not None and "libnvidia-opencl" not in named:
        found["polyloom-nvidia.icd"] = str(nvidia)
    return found


def system_drivers(folder: Path) -> dict[str, str]:
    """Return the ``.icd`` files of a folder, name to content; those that cannot be read are left out."""
    return dict(_readable(sorted(folder.glob("*.icd")) if is_folder(folder) else []))


def _readable(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            yield path.name, path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue


def show_drivers_to_loader(around: Surroundings | None = None) -> Path | None:
    """Point the loader to all drivers; must run before the first call into OpenCL.

    Returns the folder that it looks in now, or None where nothing had to be done. A folder that cannot be
    written is no error: the drivers that the loader finds by itself remain.
    """
    if VARIABLE in os.environ or sys.platform != "linux":
        return None
    look = around or Surroundings.here()
    missing = missing_drivers(look)
    if not missing:
        return None
    folder = _written({**system_drivers(look.system), **missing})
    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    return folder


def installed_drivers() -> list[str]:
    """Return a sentence on each driver that is installed, and what may keep it from showing devices."""
    found = []
    with suppress(metadata.PackageNotFoundError):
        found.append(f"PoCL {metadata.version('pocl-binary-distribution')} is installed and shows no device")
        cache = unusable_pocl_cache()
        if cache:
            found.append(f"PoCL needs its cache folder, and `{cache}` (POCL_CACHE_DIR) cannot be written")
    if VARIABLE in os.environ:
        found.append(f"{VARIABLE} is set: the loader looks for drivers in `{os.environ[VARIABLE]}`")
    else:
        named = system_drivers(SYSTEM).items()
        found += [f"`{name}` in {SYSTEM} names `{library}`, which shows no device" for name, library in named]
    return found


def _written(drivers: Mapping[str, str]) -> Path | None:
    """Write the files, each whole, into a folder that is named after what they say."""
    digest = hashlib.sha256(repr(sorted(drivers.items())).encode()).hexdigest()[:16]
    folder = cache_folder() / "opencl-vendors" / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, library in drivers.items():
            _write(folder / name, library + "\n")
    except OSError:
        return None
    return folder


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
