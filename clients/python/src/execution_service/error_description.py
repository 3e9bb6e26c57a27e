"""How an exception is described to the caller of a run: with its causes, its notes, and the exceptions of a group."""

from __future__ import annotations

import traceback
import sysconfig
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .run import cut

_PACKAGE = str(Path(__file__).parent)
_LIBRARIES = tuple(str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_RELATED_MAX = 20


def describe_error(error: BaseException, own: Optional[str] = None) -> Dict[str, Any]:
    """Name, message and the author's frames of an error, each after those that led to it, then those of related ones.

    :param own: the directory of the author's code, if it is below that of a library.
    """
    lines = list(_frames(error, own))
    for relation, each in _related(error):
        lines.append(f"{relation} {type(each).__name__}: {cut(message_of(each), 1000)}")
        lines.extend(_frames(each, own))
    return {"name": type(error).__name__, "message": cut(message_of(error)), "stack": "\n".join(lines) or None}


def message_of(error: BaseException) -> str:
    """Its text, with what a group contains, and its notes."""
    texts = [str(error)]
    grouped = [f"{type(each).__name__}: {message_of(each)}" for each in _grouped(error)]
    if grouped:
        texts = [f"{texts[0]}: {'; '.join(grouped)}"]
    notes = getattr(error, "__notes__", None)
    return "\n".join([*texts, *(str(each) for each in notes or () if isinstance(notes, (list, tuple)))])


def _grouped(error: BaseException) -> List[BaseException]:
    """The exceptions of an ``ExceptionGroup``, also of its backport for Python before 3.11."""
    exceptions = getattr(error, "exceptions", None)
    is_group = isinstance(exceptions, (list, tuple)) and hasattr(error, "subgroup")
    return [each for each in exceptions or () if isinstance(each, BaseException)] if is_group else []


def _related(error: BaseException) -> Iterator[Tuple[str, BaseException]]:
    seen: Set[int] = {id(error)}
    waiting = _directly_related(error)
    while waiting and len(seen) <= _RELATED_MAX:
        relation, each = waiting.pop(0)
        if id(each) not in seen:
            seen.add(id(each))
            yield relation, each
            waiting = [*_directly_related(each), *waiting]


def _directly_related(error: BaseException) -> List[Tuple[str, BaseException]]:
    related = [("Contains", each) for each in _grouped(error)]
    if error.__cause__ is not None:
        related.append(("Caused by", error.__cause__))
    elif error.__context__ is not None and not error.__suppress_context__:
        related.append(("Raised while handling", error.__context__))
    return related


def _frames(error: BaseException, own: Optional[str]) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        is_own = own is not None and _is_below(path, own)
        is_library = frame.filename.startswith("<frozen") or any(_is_below(path, each) for each in (_PACKAGE, *_LIBRARIES))
        if is_own or not is_library:
            yield f'File "{_relative(path)}", line {frame.lineno}, in {frame.name}'


def _is_below(path: Path, directory: str) -> bool:
    return Path(directory) in path.parents


def _relative(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
