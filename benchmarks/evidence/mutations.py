"""Which small faults can be put into a source file: `sites(file)` are its mutants, `site.code()` compiles one.

A comparison, an arithmetic operator, `and`, `min` and `any` become their counterparts; a number becomes one more and
`True` becomes `False`; `not`, `-` and `~` are dropped; a condition is negated, two branches are swapped; a keyword
argument, an assignment to an attribute, a call or a `raise` is deleted; `return x` becomes `return None`.
"""

from __future__ import annotations

import ast
import copy
import importlib.machinery
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.FloorDiv, ast.Mod), (ast.Pow, ast.Mult), (ast.MatMult, ast.Mult),
    (ast.BitAnd, ast.BitOr), (ast.And, ast.Or),
]  # fmt: skip
OTHER = {b: a for a, b in reversed(PAIRS)} | dict(PAIRS)
NAMES = {"min": "max", "amin": "amax", "any": "all"}
NAMES |= {b: a for a, b in NAMES.items()}


def changed(node: ast.AST, **fields: Any) -> Any:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def without(items: list[Any], i: int, *instead: Any) -> list[Any]:
    return [*items[:i], *instead, *items[i + 1 :]]


def negated(test: ast.expr) -> list[ast.expr]:
    """Nothing where another operator gives the same: a `not` that is dropped, `==` that becomes `!=`."""
    same = isinstance(test, ast.UnaryOp) or (isinstance(test, ast.Compare) and len(test.ops) == 1)
    same = same and not isinstance(getattr(test, "ops", [None])[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    return [] if same else [ast.UnaryOp(ast.Not(), test)]


def mutants(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield changed(node, ops=without(node.ops, i, OTHER[type(op)]()))
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OTHER:
            yield changed(node, op=OTHER[type(node.op)]())
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()) if node.value + 1 != node.value:
            yield ast.Constant(node.value + 1)
        case ast.UnaryOp():
            yield node.operand
        case ast.If() | ast.While():
            yield from (changed(node, test=test) for test in negated(node.test))
        case ast.IfExp():
            yield changed(node, body=node.orelse, orelse=node.body)
        case ast.comprehension():
            for i, test in enumerate(node.ifs):
                yield from (changed(node, ifs=without(node.ifs, i, new)) for new in negated(test))
        case ast.Call():
            match node.func:
                case ast.Name(id=name) if name in NAMES:
                    yield changed(node, func=changed(node.func, id=NAMES[name]))
                case ast.Attribute(attr=name) if name in NAMES:
                    yield changed(node, func=changed(node.func, attr=NAMES[name]))
            for i, keyword in enumerate(node.keywords):
                if keyword.arg is not None:
                    yield changed(node, keywords=without(node.keywords, i))
        case ast.Assign(targets=[ast.Attribute()]) | ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))


def is_text_or_hint(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef(name="__repr__") | ast.JoinedStr():
            return True
        case ast.Assign(value=ast.BinOp(op=ast.BitOr(), left=ast.Name() | ast.BinOp())):  # a name for a type: A = B | C
            return node.targets[0].id[0].isupper() if isinstance(node.targets[0], ast.Name) else False
    return False


def places(node: ast.AST, statement: ast.AST) -> Iterator[tuple[Any, str, int | None, Any]]:
    """Every (parent, field, index, child) below a node, without texts, type hints, decorators and __repr__."""
    skipped = {"annotation", "returns", "decorator_list"} | ({"exc"} if isinstance(node, ast.Raise) else set())
    for field, value in ast.iter_fields(node):
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if field in skipped or not isinstance(child, ast.AST) or is_text_or_hint(child):
                continue
            child.statement = child if isinstance(child, ast.stmt | ast.excepthandler) else statement
            yield node, field, i, child
            yield from places(child, child.statement)


class Site:
    """One mutant: a file, the node to replace by its number in the file, and the number of the replacement."""

    def __init__(self, file: Path, number: int, variant: int, node: Any, new: ast.AST) -> None:
        self.file, self.number, self.variant = file, number, variant
        self.module = str(file.with_suffix("")).removeprefix("src/").removesuffix("/__init__").replace("/", ".")
        head = getattr(node, "test", node) if isinstance(node, ast.If | ast.While) else node
        first = getattr(head, "lineno", node.statement.lineno)
        last = getattr(head, "end_lineno", first)
        self.lines = {*range(first, last + 1), node.statement.lineno}
        brief = (ast.unparse(each).strip().split("\n")[0] for each in (node, new))
        column = getattr(node, "col_offset", 0)
        self.id = f"{file}:{first}:{column} " + " → ".join(brief)

    def code(self) -> CodeType:
        tree = ast.parse(self.file.read_text())
        parent, field, i, child = list(places(tree, tree))[self.number]
        new = ast.copy_location(list(mutants(child))[self.variant], child)
        getattr(parent, field).__setitem__(i, new) if i is not None else setattr(parent, field, new)
        return compile(ast.fix_missing_locations(tree), str(self.file.resolve()), "exec", dont_inherit=True)


def sites(file: Path) -> Iterator[Site]:
    tree = ast.parse(file.read_text())
    for number, (_, _, _, child) in enumerate(list(places(tree, tree))):
        for variant, new in enumerate(mutants(child)):
            yield Site(file, number, variant, child, new)


def swaps(site: Site) -> list[tuple[CodeType, CodeType]] | None:
    """(code of the file, code of the mutant) of each function that differs; None where code of an import differs."""
    pairs = [(compile(site.file.read_text(), str(site.file.resolve()), "exec", dont_inherit=True), site.code())]
    found = []
    for old, new in pairs:
        if old.co_flags & inspect.CO_OPTIMIZED:  # a function; otherwise the body of a module or class
            found += [(old, new)] if old != new else []
            continue
        inner = [[const for const in each.co_consts if isinstance(const, CodeType)] for each in (old, new)]
        plain = [[repr(const) for const in each.co_consts if not isinstance(const, CodeType)] for each in (old, new)]
        if old.co_code != new.co_code or old.co_names != new.co_names or plain[0] != plain[1]:
            return None
        pairs += zip(*inner, strict=True)
    return found


class Mutated(importlib.machinery.SourceFileLoader):
    """Finds and loads one module, with a mutant's code instead of its file's."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.module, str(site.file.resolve()))
        self.site = site

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return self.site.code()
