"""What a model of the table spec says of its keys: its JSON Schema with the text below each field.

Read from the source, and only when somebody asks: Pydantic would do it each time that a command starts.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

from pydantic import BaseModel

from pinot_assets.core.json_object import JsonObject


def described_schema(model: type[BaseModel]) -> JsonObject:
    """JSON Schema of a model, by the keys in the YAML, each property with a `description`."""
    schema = model.model_json_schema(by_alias=True)
    keys = {name: field.alias or name for name, field in model.model_fields.items()}
    for name, text in _texts_below(model):
        if name in keys:
            schema["properties"][keys[name]]["description"] = text
    return schema


def _texts_below(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Each field of a class, and the text that follows it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
        ):
            assert isinstance(text.value, ast.Constant)
            yield field.target.id, " ".join(str(text.value.value).split())
