"""Signatures and types as they are written: in the source, or in the stub of a compiled module.

What Python makes of them names the parts of every alias, and is too long to be read.
"""

import __future__

import ast
import importlib.machinery
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pdoc.doc

EMPTY = inspect.Signature.empty
ALIAS = re.compile(r"Alias for field number \d+")  # what Python says of the fields of a NamedTuple
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


class Written(str):
    """An annotation that is shown as it is."""

    def __repr__(self) -> str:
        return str(self)


def write(
    doc: pdoc.doc.Doc, owner: pdoc.doc.Doc | None, page_of: Callable[[type], str | None]
) -> None:
    """Give a function its signature, or a variable its type, as written.

    owner: the class that it stands in. page_of: tells the module of a class that has a page, so
        that there can be a link to it.
    """
    names = vars(sys.modules[doc.taken_from[0]])
    if isinstance(doc, pdoc.doc.Function):
        texts = types_of_function(doc, owner)
        shown = {name: Written(linked(text, names, page_of)) for name, text in texts.items()}
        doc.signature = doc.signature.replace(
            parameters=[
                found.replace(annotation=shown.get(name, EMPTY), default=default_of(found))
                for name, found in doc.signature.parameters.items()
            ],
            return_annotation=EMPTY if doc.name == "__init__" else shown.get("return", EMPTY),
        )
    elif isinstance(doc, pdoc.doc.Variable):
        doc.docstring = ALIAS.sub("", doc.docstring)
        text = type_of_variable(doc, owner)
        if text is not None:
            doc.annotation = Written(linked(text, names, page_of))


def default_of(parameter: inspect.Parameter) -> Any:
    """A default; an object that only tells that nothing was given is three dots."""
    return Written("...") if type(parameter.default) is object else parameter.default


def types_of_function(function: pdoc.doc.Function, owner: pdoc.doc.Doc | None) -> dict[str, str]:
    """The types of the parameters, and "return"."""
    definition = parsed(function)
    if isinstance(definition, ast.FunctionDef):
        found = [node for node in ast.walk(definition.args) if isinstance(node, ast.arg)]
        written = {node.arg: node.annotation for node in found} | {"return": definition.returns}
        types = {name: ast.unparse(node) for name, node in written.items() if node is not None}
    else:  # from a stub, or made by Python for a class with fields
        annotations = {
            name: parameter.annotation for name, parameter in function.signature.parameters.items()
        }
        annotations["return"] = function.signature.return_annotation
        types = fields_of(owner) | {
            name: annotation for name, annotation in annotations.items() if type(annotation) is str
        }
    types.pop("self", None)
    own = types.pop("cls", "")
    if owner is not None and own == f"type[{types.get('return')}]":
        types["return"] = owner.fullname
    return types


def type_of_variable(variable: pdoc.doc.Variable, owner: pdoc.doc.Doc | None) -> str | None:
    """The type of a property or a field; None if none is written."""
    if isinstance(variable.annotation, str):  # of a stub
        return variable.annotation
    definition = parsed(variable)
    if isinstance(definition, ast.FunctionDef) and definition.returns is not None:
        return ast.unparse(definition.returns)
    return fields_of(owner).get(variable.name)


def fields_of(owner: pdoc.doc.Doc | None) -> dict[str, str]:
    """The types of the fields of a class."""
    definition = None if owner is None else parsed(owner)
    return {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for node in getattr(definition, "body", ())
        if isinstance(node, ast.AnnAssign)
    }


def parsed(doc: pdoc.doc.Doc) -> ast.stmt | None:
    """The source of something in a Python module; None if there is none."""
    if is_compiled(doc.taken_from[0]) or not doc.source:
        return None
    return ast.parse(textwrap.dedent(doc.source)).body[0]


def linked(text: str, names: dict[str, Any], page_of: Callable[[type], str | None]) -> str:
    """A type, of whose names those that have a page stand behind that of their module, and others
    without the one of the package's that they come from."""

    def without_module(match: re.Match[str]) -> str:
        module = names.get(match[1])
        own = isinstance(module, ModuleType) and module.__name__.startswith("tokbpe.")
        return "" if own else match[0]

    def with_module(match: re.Match[str]) -> str:
        found = names.get(match[0])
        page = page_of(found) if isinstance(found, type) else None
        return match[0] if page is None else f"{page}.{match[0]}"

    bare = re.sub(r"(?<![\w.])(\w+)\.", without_module, unquoted(text))
    return NAME.sub(with_module, bare)


def unquoted(text: str) -> str:
    """A type whose names are quoted because they follow later."""
    return text if "Literal[" in text else re.sub("['\"]", "", text)


# Stubs


def take_stub(member: pdoc.doc.Doc) -> None:
    """Give what comes from a compiled module the signatures that are written in its stub."""
    module, name = member.taken_from
    if is_compiled(module):
        take(member, getattr(stub_of(module), name))


def take(member: pdoc.doc.Doc, written: Any) -> None:
    if isinstance(member, pdoc.doc.Class):
        of_stub = {**vars(written), "__init__": vars(written).get("__new__")}
        # What a stub leaves out is internal.
        member.own_members = [part for part in member.own_members if of_stub.get(part.name)]
        for part in member.own_members:
            take(part, of_stub[part.name])
    elif isinstance(member, pdoc.doc.Function):
        member.signature = inspect.signature(written)
        # Cython puts a signature of its own in front.
        member.docstring = re.sub(r"\A[\w.]+\(.*\n\n", "", member.docstring)
    elif isinstance(written, property):
        member.annotation = inspect.signature(written.fget).return_annotation


def is_compiled(module: str) -> bool:
    loader = getattr(sys.modules.get(module), "__loader__", None)
    return isinstance(loader, importlib.machinery.ExtensionFileLoader)


@cache
def stub_of(name: str) -> ModuleType:
    """The stub of a module as a module, of whose types nothing is made."""
    stub = ModuleType(name)
    path = Path(__file__).parents[2].joinpath(*name.split(".")).with_suffix(".pyi")
    flags = __future__.annotations.compiler_flag
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", flags), vars(stub))
    return stub
