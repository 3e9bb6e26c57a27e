"""Finds the workflows of modules, files and directories."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterable, List

from .error_description import describe_error
from .errors import LoadError
from .workflow import Workflow


def load_workflows(sources: Iterable[str]) -> Dict[str, Workflow[Any, Any]]:
    """By id. :raises LoadError: with the reason."""
    workflows: Dict[str, Workflow[Any, Any]] = {}
    places: Dict[str, Any] = {}
    for source in sources:
        for place in _expand(source):
            for each in vars(_load(place)).values():
                if not isinstance(each, Workflow):
                    continue
                if workflows.setdefault(each.id, each) is not each:
                    raise LoadError(f"Two workflows have the id {each.id}: one is in {places[each.id]}, one in {place}.")
                places.setdefault(each.id, place)
    if not workflows:
        raise LoadError(f"No @workflow is in {', '.join(sources)}.")
    return workflows


def _expand(source: str) -> List[Any]:
    """A directory's own files, but neither its tests nor those whose names begin with an underscore."""
    path = Path(source)
    if path.is_dir():
        return [each for each in sorted(path.glob("[!_.]*.py")) if not each.name.startswith("test_")]
    return [path] if path.suffix == ".py" else [source]


def _load(place: Any) -> ModuleType:
    try:
        return importlib.import_module(place) if isinstance(place, str) else _load_file(place.resolve())
    except BaseException as error:
        described = describe_error(error)
        stack = f"\n{described['stack']}" if described["stack"] else ""
        raise LoadError(f"{place} cannot be loaded: {described['name']}: {described['message']}{stack}") from error


def _load_file(file: Path) -> ModuleType:
    _let_import_neighbours(str(file.parent))
    if _is_imported_by(file.stem, file):
        return importlib.import_module(file.stem)
    # Another module has the name, such as `email` of the standard library, or it is no name: `report.v2`.
    digest = hashlib.sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = f"{re.sub(r'[^A-Za-z0-9_]', '_', file.stem)}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"Python has no loader for {file}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_imported_by(name: str, file: Path) -> bool:
    if not name.isidentifier():
        return False
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == file


def _let_import_neighbours(directory: str) -> None:
    """Puts the directory after the standard library, so that a file `queue.py` does not replace a module of it."""
    if directory in sys.path:
        return
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    first = next((index for index, each in enumerate(sys.path) if each in packages or each.endswith("-packages")), len(sys.path))
    sys.path.insert(first, directory)
