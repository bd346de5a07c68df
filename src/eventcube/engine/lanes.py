"""Eight numbers at once, for compiled loops: compilers do not take them together where arrays might overlap.

Each function changes eight numbers of an array, from `to` on, by those of the same or another array, from `at` on. What
it does stands in its body, which runs where nothing is compiled, and again in the instructions of compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from eventcube.engine.compiled import CONFIG
from eventcube.engine.kernels import Array

LANES = 8
_types: Any = numba.types
# From a builder, the numbers to change, those to change them by, and what else is given, to the numbers to store.
_Instructions = Callable[..., Any]


def _address(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    """Where eight numbers of an array begin; each is at a multiple of 8 bytes."""
    vector = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _is_float(vector: Any) -> bool:
    return isinstance(vector.type.element, ir.DoubleType)


def _all(builder: Any, like: Any, number: Any) -> Any:
    """The same number in all lanes."""
    lanes = ir.Constant(like.type, ir.Undefined)
    for lane in range(LANES):
        lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), lane))
    return lanes


def _not_zero(builder: Any, numbers: Any) -> Any:
    zero = ir.Constant(numbers.type, [0] * LANES)
    return (builder.fcmp_unordered if _is_float(numbers) else builder.icmp_signed)("!=", numbers, zero)


def _lesser(builder: Any, one: Any, other: Any) -> Any:
    is_less = (builder.fcmp_ordered if _is_float(one) else builder.icmp_signed)("<", one, other)
    return builder.select(is_less, one, other)


def _sum(builder: Any, numbers: Any, more: Any) -> Any:
    return (builder.fadd if _is_float(numbers) else builder.add)(numbers, more)


def _sum_of_products(builder: Any, numbers: Any, more: Any, factor: Any) -> Any:
    if more.type != numbers.type:
        more = (builder.sitofp if _is_float(numbers) else builder.fptosi)(more, numbers.type)
    product = (builder.fmul if _is_float(numbers) else builder.mul)(more, _all(builder, numbers, factor))
    zero = ir.Constant(numbers.type, [0] * LANES)
    return _sum(builder, numbers, builder.select(_not_zero(builder, more), product, zero))


def _either(builder: Any, numbers: Any, more: Any) -> Any:
    return builder.or_(numbers, more)


def _least(builder: Any, numbers: Any, more: Any, bound: Any, present: Any) -> Any:
    bounded = _lesser(builder, more, _all(builder, more, bound))
    return _lesser(builder, numbers, builder.select(_not_zero(builder, present), bounded, more))


def _copy(_: Any, __: Any, more: Any) -> Any:
    return more


def _generated(instructions: _Instructions) -> Callable[..., Any]:
    """How Numba compiles a call: arrays among what else is given are read at `at`, too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        types, (array, to, other, at, *rest) = signature.args, arguments
        place = _address(context, builder, types[0], array, to)
        more = builder.load(_address(context, builder, types[2], other, at), align=8)
        given = [
            builder.load(_address(context, builder, type_, value, at), align=8)
            if isinstance(type_, _types.Array)
            else value
            for type_, value in zip(types[4:], rest, strict=True)
        ]
        builder.store(instructions(builder, builder.load(place, align=8), more, *given), place, align=8)
        return context.get_dummy_value()

    return generate


def _compiled(instructions: _Instructions) -> Callable[[Callable[..., None]], Any]:
    """The function as instructions, where anything is compiled."""
    generate, place = _generated(instructions), _types.intp

    def of_two(_: Any, array: Any, to: Any, other: Any, at: Any) -> Any:
        return _types.void(array, place, other, place), generate

    def of_products(_: Any, array: Any, to: Any, other: Any, at: Any, factor: Any) -> Any:
        return _types.void(array, place, other, place, array.dtype), generate

    def of_three(_: Any, array: Any, to: Any, other: Any, at: Any, bound: Any, present: Any) -> Any:
        return _types.void(array, place, other, place, array.dtype, present), generate

    def make(function: Callable[..., None]) -> Any:
        typed = {4: of_two, 5: of_products, 6: of_three}[function.__code__.co_argcount]
        return function if CONFIG.DISABLE_JIT else intrinsic(typed)

    return make


@_compiled(_copy)
def copy_lanes(array: Array, to: int, other: Array, at: int) -> None:
    """Copy the numbers."""
    array[to : to + LANES] = other[at : at + LANES]


@_compiled(_sum)
def add_lanes(array: Array, to: int, other: Array, at: int) -> None:
    """Add the numbers."""
    array[to : to + LANES] += other[at : at + LANES]


@_compiled(_sum_of_products)
def add_products(array: Array, to: int, other: Array, at: int, factor: Any) -> None:
    """Add the numbers that are not 0, multiplied by a factor, which can be infinite."""
    more = other[at : at + LANES]
    array[to : to + LANES] += np.where(more != 0, more * factor, 0)


@_compiled(_either)
def either_lanes(array: Array, to: int, other: Array, at: int) -> None:
    """Be 1 where either is."""
    array[to : to + LANES] |= other[at : at + LANES]


@_compiled(_least)
def least_lanes(array: Array, to: int, other: Array, at: int, bound: Any, present: Array) -> None:
    """Take the lesser of the numbers, or of the bound where one is present."""
    more = other[at : at + LANES]
    bounded = np.where(present[at : at + LANES] != 0, np.minimum(more, bound), more)
    array[to : to + LANES] = np.minimum(array[to : to + LANES], bounded)
