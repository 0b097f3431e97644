"""What a Python function's answers depend on, as one short text: the same text, the same answers.

It is made from the function's byte code and constants, its defaults, the values that it closes over, and the globals
that it names; functions and classes of the user's own are followed, installed packages stand for themselves with their
version. Two texts that differ cost a recompute, so whatever cannot be told apart for sure is taken to differ: an object
that has no stable form gets a text that never comes again.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import sysconfig
import uuid
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from pyspark import cloudpickle

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Decimal, date, time, timedelta, type(Ellipsis))


Seen = dict[int, tuple[int, object]]
"""The values met so far by their identity, each with its place; held, so that no other value gets the identity."""


def fingerprint(*values: object) -> str:
    """The text for a function and whatever else belongs to it."""
    digest = hashlib.sha256()
    seen: Seen = {}
    for value in values:
        for part in _parts(value, seen):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:32]


def _parts(value: object, seen: Seen) -> Iterator[str]:
    """A value piece by piece; what was met before is named by its place, so that cycles end."""
    if isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}"
        return
    if isinstance(value, tuple | frozenset | CodeType):
        pass  # equal ones may or may not be the same object, and no cycle is made of them alone
    elif id(value) in seen:
        yield f"again {seen[id(value)][0]}"
        return
    else:
        seen[id(value)] = (len(seen), value)
    if isinstance(value, FunctionType):
        yield from _function(value, seen)
    elif isinstance(value, CodeType):
        yield from _code(value, seen)
    elif isinstance(value, ModuleType):
        yield from _module(value)
    elif isinstance(value, type):
        yield from _class(value, seen)
    elif isinstance(value, BuiltinFunctionType):
        yield f"builtin {value.__module__} {value.__qualname__} {_version(value.__module__)}"
    elif isinstance(value, MethodType):
        yield "method"
        yield from _parts(value.__func__, seen)
        yield from _parts(value.__self__, seen)
    elif isinstance(value, functools.partial):
        yield "partial"
        for part in (value.func, value.args, value.keywords):
            yield from _parts(part, seen)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} of {len(value)}"
        for item in value:
            yield from _parts(item, seen)
    elif isinstance(value, set | frozenset):
        yield f"{type(value).__name__} of {len(value)}"
        yield from sorted(" ".join(_parts(item, dict(seen))) for item in value)
    elif isinstance(value, Mapping):
        yield f"{type(value).__name__} of {len(value)}"
        for key, item in value.items():
            yield from _parts(key, seen)
            yield from _parts(item, seen)
    else:
        yield from _object(value, seen)


def _function(function: FunctionType, seen: Seen) -> Iterator[str]:
    if _installed(function.__module__):
        yield f"installed {function.__module__} {function.__qualname__} {_version(function.__module__)}"
        return
    yield "function"
    yield from _parts(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    yield from _parts(function.__kwdefaults__, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:
            yield "empty cell"
    for name in sorted(_globals_named(function.__code__)):
        if name in function.__globals__:
            yield f"global {name}"
            yield from _parts(function.__globals__[name], seen)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _parts(wrapped, seen)


def _code(code: CodeType, seen: Seen) -> Iterator[str]:
    """Byte code without its file and lines: moving a function does not change it."""
    yield f"code {sys.version_info[:2]} {code.co_code.hex()}"
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}"
    yield f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
    for constant in code.co_consts:
        yield from _parts(constant, seen)


def _globals_named(code: CodeType) -> set[str]:
    """The globals that a function and the functions inside it read."""
    named = {str(i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return named.union(*(_globals_named(constant) for constant in inner))


def _module(module: ModuleType) -> Iterator[str]:
    """An installed package by its version, a module of the user's own by its text."""
    name = module.__name__
    file = getattr(module, "__file__", None)
    if _installed(name) or file is None:
        yield f"module {name} {_version(name)}"
        return
    files = sorted(Path(file).parent.rglob("*.py")) if Path(file).name == "__init__.py" else [Path(file)]
    for path in files:
        try:
            yield f"module {name} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        except OSError:  # inside an archive, say
            yield uuid.uuid4().hex


_BESIDE_THE_POINT = ("__module__", "__doc__", "__firstlineno__", "__static_attributes__")


def _class(cls: type, seen: Seen) -> Iterator[str]:
    yield f"class {cls.__module__} {cls.__qualname__} {_version(cls.__module__)}"
    if _installed(cls.__module__):
        return
    for base in cls.__bases__:
        yield from _parts(base, seen)
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, property):
            value = (value.fget, value.fset)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, (FunctionType, tuple, *_PLAIN)) and name not in _BESIDE_THE_POINT:
            yield name
            yield from _parts(value, seen)


def _object(value: object, seen: Seen) -> Iterator[str]:
    """Any other object: its class and its attributes, or its bytes, which are only hashed and never read back.

    Pickling runs the object's own code, which may fail in any way. What cannot be told apart from other code counts as
    other code, in every process: its views are recomputed once more than needed, and never too seldom.
    """
    yield from _parts(type(value), seen)
    if not _installed(type(value).__module__) and hasattr(value, "__dict__"):
        yield from _parts(vars(value), seen)
        return
    try:
        yield hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    except Exception:
        yield uuid.uuid4().hex


@functools.cache
def _installed(module: str | None) -> bool:
    """Whether a module comes with Python or was installed, so that its version says what it does."""
    if module is None or module == "__main__":
        return False
    top = module.partition(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    roots = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    return file is not None and any(Path(file).is_relative_to(root) for root in roots if root)


def _version(module: str | None) -> str:
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names:
        return f"{sys.version_info[:3]}"
    return str(getattr(sys.modules.get(top), "__version__", ""))
