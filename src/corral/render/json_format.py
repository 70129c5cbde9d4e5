"""JSON: one object, names to values, in the order in which they came.

Whatever a variable can hold, JSON can; there is no comment, hence no header.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.variables import Variables


def document(variables: Variables) -> str:
    """An indented JSON object in UTF-8 text, with a final newline."""
    import json

    return json.dumps(dict(variables), ensure_ascii=False, indent=2) + "\n"
