"""From the syntax tree back to text: `parse(print_query(q)) == q`."""

from __future__ import annotations

from itertools import pairwise
from typing import assert_never

from eventcube.language import syntax as s
from eventcube.language.identifiers import ANY, write_name
from eventcube.language.like import ESCAPE
from eventcube.language.literals import write_duration, write_number, write_text, write_timestamp

WIDTH = 100
_INDENT = "  "
_BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def print_query(query: s.Query) -> str:
    """The query as text, one clause a line; parsing it gives an equal query."""
    lines = ["PATTERN " + _pattern(query.pattern, len("PATTERN "), "")]
    if query.from_ is not None:
        lines.append("FROM " + _stream(query.from_))
    if query.where:
        lines.append("WHERE " + _conjunction(query.where))
    if query.partition_by:
        lines.append("PARTITION BY " + ", ".join(write_name(column.name) for column in query.partition_by))
    if query.group_by:
        lines.append("GROUPBY " + ", ".join(print_item(item) for item in query.group_by))
    if query.agg:
        per = "" if query.per is None else f" PER {write_name(query.per.name)}"
        lines.append("AGG " + ", ".join(print_aggregate(aggregate) for aggregate in query.agg) + per)
    if query.having:
        lines.append("HAVING " + _conjunction(query.having))
    if query.within is not None:
        lines.append("WITHIN " + print_window(query.within))
    if query.returns:
        lines.append("RETURN " + ", ".join(print_item(item) for item in query.returns))
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    return "\n".join(lines)


def print_line(query: s.Query) -> str:
    """The query on one line, without the word PATTERN."""
    lines = print_query(query).removeprefix("PATTERN ").splitlines()
    return " ".join(line.strip() for line in lines)


def print_pattern(pattern: s.Part) -> str:
    """The pattern on one line."""
    match pattern:
        case s.Component(kind, var):
            return _type(kind) if var is None else f"{_type(kind)} {write_name(var)}"
        case s.Not(pattern=inner, quals=()):
            return "!" + print_pattern(inner)
        case s.Not() | s.Seq() | s.And() | s.Or():
            return f"{_head(pattern)}({', '.join(_arguments(pattern))})"
        case _:
            assert_never(pattern)


def print_qual(qual: s.Qual) -> str:
    """The condition on one line."""
    match qual:
        case s.Comparison(op, left, right):
            return f"{print_value(left)} {op} {print_value(right)}"
        case s.In(value, options):
            return f"{print_value(value)} IN {_options(options)}"
        case s.Between(value, low, high):
            return f"{print_value(value)} BETWEEN {print_value(low)} AND {print_value(high)}"
        case s.Like(value):
            return f"{print_value(value)} LIKE {_like(qual)}"
        case s.IsNull(value):
            return f"{print_value(value)} IS NULL"
        case s.Truth(value):
            return print_value(value)
        case s.AllOf(quals):
            return _chain(quals) or " AND ".join(_conjunct(inner) for inner in quals)
        case s.AnyOf(quals):
            return " OR ".join(f"({print_qual(q)})" if isinstance(q, s.AnyOf) else print_qual(q) for q in quals)
        case s.NotQual(inner):
            return _negated(inner)
        case _:
            assert_never(qual)


def print_value(value: s.Value) -> str:
    """The value on one line."""
    match value:
        case s.Attribute(var, name):
            return f"{write_name(var)}.{write_name(name)}"
        case s.Literal(constant):
            return _constant(constant)
        case s.Duration(microseconds):
            return write_duration(microseconds)
        case s.Timestamp(microseconds, zoned):
            return write_timestamp(microseconds, zoned)
        case s.Minus(s.Attribute() | s.Call() as plain):
            return "-" + print_value(plain)
        case s.Minus(inner):
            return f"-({print_value(inner)})"
        case s.Arithmetic(op, left, right):
            # Operators of one rank group to the left.
            return f"{_operand(left, _BINDING[op])} {op} {_operand(right, _BINDING[op] + 1)}"
        case s.Call(function, arguments):
            return f"{function}({', '.join(map(print_value, arguments))})"
        case s.Column(name):
            return write_name(name)
        case s.Aggregate():
            return print_aggregate(value)
        case _:
            assert_never(value)


def print_window(window: s.TimeWindow | s.CountWindow) -> str:
    """The window as written after WITHIN."""
    match window:
        case s.TimeWindow(microseconds):
            return write_duration(microseconds)
        case s.CountWindow(events):
            return f"{events} events"
        case _:
            assert_never(window)


def print_item(item: s.Item) -> str:
    """One thing that RETURN or GROUPBY lists."""
    match item.value:
        case s.Variable(name):
            shown = write_name(name)
        case s.Level(name, level):
            shown = f"{write_name(name)} AT LEVEL {level}"
        case s.Levels(name):
            shown = f"{write_name(name)} AT EVERY LEVEL"
        case s.Every(value, microseconds):
            shown = f"{print_value(value)} EVERY {write_duration(microseconds)}"
        case value:
            shown = print_value(value)
    return shown + _alias(item.alias)


def print_aggregate(aggregate: s.Aggregate) -> str:
    """One thing that AGG lists."""
    argument = "*" if aggregate.argument is None else print_value(aggregate.argument)
    return f"{aggregate.function}({'DISTINCT ' * aggregate.distinct}{argument})" + _alias(aggregate.alias)


def column_name(column: s.Item | s.Aggregate) -> str:
    """The name of a result column: its alias, else its variable, else its text."""
    match column:
        case s.Item(alias=str() as alias) | s.Aggregate(alias=str() as alias):
            return alias
        case s.Item(s.Variable(name) | s.Levels(name)):
            return name
        case s.Item():
            return print_item(column)
        case s.Aggregate():
            return print_aggregate(column)


def _pattern(pattern: s.Part, column: int, indent: str) -> str:
    """The pattern, an argument a line where it is too wide from its column on."""
    flat = print_pattern(pattern)
    match pattern:
        case s.Not(pattern=inner, quals=()) if column + len(flat) > WIDTH:
            return "!" + _pattern(inner, column + 1, indent)
        case s.Not() | s.Seq() | s.And() | s.Or() if column + len(flat) > WIDTH:
            deeper = indent + _INDENT
            parts = (pattern.pattern,) if isinstance(pattern, s.Not) else pattern.parts
            shown = [_pattern(part, len(deeper), deeper) for part in parts] + _quals(pattern.quals)
            return f"{_head(pattern)}(\n{deeper}" + f",\n{deeper}".join(shown) + f"\n{indent})"
        case _:
            return flat


def _head(pattern: s.Not | s.Seq | s.And | s.Or) -> str:
    match pattern:
        case s.Not():
            return "!"
        case s.Seq():
            return "SEQ"
        case s.And():
            return "AND"
        case s.Or():
            return "OR"


def _arguments(pattern: s.Not | s.Seq | s.And | s.Or) -> list[str]:
    parts = (pattern.pattern,) if isinstance(pattern, s.Not) else pattern.parts
    return [print_pattern(part) for part in parts] + _quals(pattern.quals)


def _quals(quals: tuple[s.Qual, ...]) -> list[str]:
    """The quals of a list; an AllOf is one of them only in parentheses, or as a chain."""
    return [_conjunct(q) if isinstance(q, s.AllOf) else print_qual(q) for q in quals]


def _conjunction(quals: tuple[s.Qual, ...]) -> str:
    if len(quals) == 1:
        return _quals(quals)[0]
    shown = [_conjunct(qual) for qual in quals]
    flat = " AND ".join(shown)
    return flat if len("WHERE ") + len(flat) <= WIDTH else f"\n{_INDENT}AND ".join(shown)


def _conjunct(qual: s.Qual) -> str:
    loose = isinstance(qual, s.AnyOf) or (isinstance(qual, s.AllOf) and not _chain(qual.quals))
    return f"({print_qual(qual)})" if loose else print_qual(qual)


def _chain(quals: tuple[s.Qual, ...]) -> str | None:
    """Comparisons that share their neighbouring operands, as `a.id = b.id = c.id`."""
    links = [qual for qual in quals if isinstance(qual, s.Comparison)]
    if len(links) < len(quals) or any(print_value(a.right) != print_value(b.left) for a, b in pairwise(links)):
        return None
    return print_value(links[0].left) + "".join(f" {link.op} {print_value(link.right)}" for link in links)


def _negated(inner: s.Qual) -> str:
    match inner:
        case s.In(value, options):
            return f"{print_value(value)} NOT IN {_options(options)}"
        case s.Between(value, low, high):
            return f"{print_value(value)} NOT BETWEEN {print_value(low)} AND {print_value(high)}"
        case s.Like(value):
            return f"{print_value(value)} NOT LIKE {_like(inner)}"
        case s.IsNull(value):
            return f"{print_value(value)} IS NOT NULL"
        case _:
            return f"NOT {_conjunct(inner)}"


def _like(like: s.Like) -> str:
    escape = "" if like.escape == ESCAPE else f" ESCAPE {write_text(like.escape)}"
    return write_text(like.pattern) + escape


def _options(options: tuple[s.Value, ...]) -> str:
    return "(" + ", ".join(print_value(option) for option in options) + ")"


def _operand(value: s.Value, least: int) -> str:
    shown = print_value(value)
    return f"({shown})" if isinstance(value, s.Arithmetic) and _BINDING[value.op] < least else shown


def _constant(constant: int | float | str | bool | None) -> str:
    match constant:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if constant else "FALSE"
        case str():
            return write_text(constant)
        case _:
            return write_number(constant)


def _type(name: str | None) -> str:
    if name is None:
        return ANY
    return f"`{name}`" if name.upper() == ANY else write_name(name)


def _stream(name: str) -> str:
    return ".".join(write_name(part) for part in name.split(".")) if all(name.split(".")) else write_name(name)


def _alias(alias: str | None) -> str:
    return "" if alias is None else f" AS {write_name(alias)}"
