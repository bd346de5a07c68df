"""A query's text from its tree, for reading failures and for feeding the parser what the generator made."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from eventcube.language.syntax import (
    Aggregate,
    AllOf,
    And,
    AnyOf,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Column,
    Comparison,
    Component,
    CountWindow,
    Duration,
    Every,
    In,
    IsNull,
    Item,
    Level,
    Levels,
    Like,
    Literal,
    Minus,
    Not,
    NotQual,
    Or,
    Part,
    Qual,
    Query,
    Seq,
    Timestamp,
    TimeWindow,
    Truth,
    Value,
    Variable,
)

_EPOCH = datetime(1970, 1, 1)


def with_text(query: Query) -> Query:
    """The query with its own text."""
    return replace(query, text=query_to_text(query))


def query_to_text(query: Query) -> str:
    """The query as a person would write it, on one line; times must be whole milliseconds."""
    clauses = [f"PATTERN {_pattern(query.pattern)}"]
    if query.from_:
        clauses.append(f"FROM {query.from_}")
    if query.where:
        clauses.append("WHERE " + ", ".join(map(_qual, query.where)))
    if query.partition_by:
        clauses.append("PARTITION BY " + ", ".join(c.name for c in query.partition_by))
    if query.group_by:
        clauses.append("GROUPBY " + ", ".join(map(_item, query.group_by)))
    if query.agg:
        per = "" if query.per is None else f" PER {query.per.name}"
        clauses.append("AGG " + ", ".join(map(_aggregate, query.agg)) + per)
    if query.having:
        clauses.append("HAVING " + ", ".join(map(_qual, query.having)))
    match query.within:
        case TimeWindow(microseconds=us):
            clauses.append(f"WITHIN {_duration(us)}")
        case CountWindow(events=n):
            clauses.append(f"WITHIN {n} events")
        case None:
            pass
    if query.returns:
        clauses.append("RETURN " + ", ".join(map(_item, query.returns)))
    if query.limit is not None:
        clauses.append(f"LIMIT {query.limit}")
    return " ".join(clauses)


def _pattern(part: Part) -> str:
    match part:
        case Component(type=type_, var=var):
            shown = "ANY" if type_ is None else type_
            return shown if var is None else f"{shown} {var}"
        case Not(pattern=pattern, quals=quals):
            return f"!({_list(_pattern(pattern), *map(_qual, quals))})" if quals else f"!{_pattern(pattern)}"
        case Seq(parts=parts, quals=quals):
            return f"SEQ({_list(*map(_pattern, parts), *map(_qual, quals))})"
        case And(parts=parts, quals=quals):
            return f"AND({_list(*map(_pattern, parts), *map(_qual, quals))})"
        case Or(parts=parts, quals=quals):
            return f"OR({_list(*map(_pattern, parts), *map(_qual, quals))})"
    assert_never(part)


def _list(*items: str) -> str:
    return ", ".join(items)


def _qual(qual: Qual) -> str:
    match qual:
        case Comparison(op=op, left=left, right=right):
            return f"{_value(left)} {op} {_value(right)}"
        case In(value=value, options=options):
            return f"{_value(value)} IN ({_list(*map(_value, options))})"
        case Between(value=value, low=low, high=high):
            return f"{_value(value)} BETWEEN {_value(low)} AND {_value(high)}"
        case Like(value=value, pattern=pattern, escape=escape):
            quoted = pattern.replace("'", "''")
            return f"{_value(value)} LIKE '{quoted}'" + (f" ESCAPE '{escape}'" if escape != "\\" else "")
        case IsNull(value=value):
            return f"{_value(value)} IS NULL"
        case Truth(value=value):
            return _value(value)
        case AllOf(quals=quals):
            return " AND ".join(map(_inner, quals))
        case AnyOf(quals=quals):
            return " OR ".join(map(_inner, quals))
        case NotQual(qual=inner):
            return f"NOT ({_qual(inner)})"
    assert_never(qual)


def _inner(qual: Qual) -> str:
    return f"({_qual(qual)})" if isinstance(qual, AllOf | AnyOf) else _qual(qual)


def _value(value: Value) -> str:
    match value:
        case Attribute(var=var, name=name):
            return f"{var}.{name}"
        case Literal(value=None):
            return "NULL"
        case Literal(value=bool() as flag):
            return "TRUE" if flag else "FALSE"
        case Literal(value=str() as text):
            return "'" + text.replace("'", "''") + "'"
        case Literal(value=number):
            return repr(number)
        case Duration(microseconds=us):
            return _duration(us)
        case Timestamp(microseconds=us, zoned=zoned):
            return f"TIMESTAMP '{_EPOCH + timedelta(microseconds=us)}{'Z' if zoned else ''}'"
        case Minus(value=inner):
            return f"-{_operand(inner)}"
        case Arithmetic(op=op, left=left, right=right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case Call(function=function, arguments=arguments):
            return f"{function}({_list(*map(_value, arguments))})"
        case Column(name=name):
            return name
        case Aggregate():
            return _aggregate(value)
        case _:
            raise TypeError(f"nothing that can be written: {value!r}")


def _operand(value: Value) -> str:
    return f"({_value(value)})" if isinstance(value, Arithmetic | Minus) else _value(value)


def _duration(microseconds: int) -> str:
    if microseconds % 1000:
        raise ValueError(f"not whole milliseconds: {microseconds} microseconds")
    return f"{microseconds // 1000} ms"


def _item(item: Item) -> str:
    match item.value:
        case Variable(name=name):
            shown = name
        case Level(name=name, level=level):
            shown = f"{name} AT LEVEL {level}"
        case Levels(name=name):
            shown = f"{name} AT EVERY LEVEL"
        case Every(value=value, microseconds=us):
            shown = f"{_value(value)} EVERY {_duration(us)}"
        case value:
            shown = _value(value)
    return shown if item.alias is None else f"{shown} AS {item.alias}"


def _aggregate(aggregate: Aggregate) -> str:
    argument = "*" if aggregate.argument is None else _value(aggregate.argument)
    shown = f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{argument})"
    return shown if aggregate.alias is None else f"{shown} AS {aggregate.alias}"
