"""Named tuples that cost next to nothing to define.

To type checkers `NamedTuple` here is `typing.NamedTuple`, and values behave the same. At run time
typing's own turns every annotation into a compiled forward reference: 0.3 to 1 ms for each class
(measured with CPython 3.11), and a quick command defines some eighty of them. This one only reads
the names of the annotations.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter

    class _Meta(type):
        """Makes a tuple class of a class body: fields in the order of their annotations."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {f: namespace[f] for f in fields if f in namespace}
            for index, field in enumerate(fields):
                namespace[field] = _tuplegetter(index, None)
            methods = {k: v for k, v in _METHODS.items() if k not in namespace}
            namespace |= methods
            namespace |= {
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            return type.__new__(type, name, (tuple,), namespace)

    def _new(cls, *values, **named):
        fields = cls._fields
        if named or len(values) != len(fields):
            values = _complete(cls, values, named)
        return tuple.__new__(cls, values)

    def _complete(cls, values, named):
        fields, defaults = cls._fields, cls._field_defaults
        found = list(values)
        for field in fields[len(values) :]:
            if field in named:
                found.append(named.pop(field))
            elif field in defaults:
                found.append(defaults[field])
            else:
                raise TypeError(f"{cls.__name__}() misses the field {field!r}")
        if named or len(found) != len(fields):
            wrong = sorted(named) or f"{len(found)} values"
            raise TypeError(f"{cls.__name__}() does not take {wrong}")
        return found

    def _make(cls, values):
        return cls(*values)

    def _replace(self, /, **changes):
        made = type(self)(*(changes.pop(f, v) for f, v in zip(self._fields, self, strict=True)))
        if changes:
            raise ValueError(f"got unexpected field names: {sorted(changes)}")
        return made

    def _asdict(self):
        return dict(zip(self._fields, self, strict=True))

    def _repr(self):
        pairs = ", ".join(f"{f}={v!r}" for f, v in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({pairs})"

    def _newargs(self):
        return tuple(self)

    _METHODS = {
        "__new__": _new,
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _newargs,
    }

    class NamedTuple(metaclass=_Meta):
        """The base of every value that crosses layers."""
