"""Loads, stores and copies through raw pointers, which numba does not have by itself.

Callers check every length: nothing here does. Only compiled code may call these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numba.core.base import BaseContext
    from numba.core.ccallback import CFunc
    from numba.core.typing import Context
    from numba.core.typing.templates import Signature

    #: What an intrinsic returns: its signature, and the function that writes its code.
    Intrinsic = tuple[Signature, Callable[..., ir.Value]]


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def load_eight(_typing: Context, source: types.Type, _index: types.Type) -> Intrinsic:
    """Return the eight bytes from `index` on as one number in the machine's byte order."""

    def generate(
        _context: BaseContext,
        builder: ir.IRBuilder,
        _signature: Signature,
        args: Sequence[ir.Value],
    ) -> ir.Value:
        """Emit a load of eight bytes at any alignment."""
        address, index = args
        pointer = builder.gep(address, [index])
        value = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        # A word may start at any byte.
        value.align = 1
        return value

    return types.uint64(source, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def copy_bytes(
    _typing: Context,
    target: types.Type,
    _at: types.Type,
    source: types.Type,
    _start: types.Type,
    _count: types.Type,
) -> Intrinsic:
    """Copy `count` bytes from `source[start]` on to `target[at]` on; they do not overlap."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit a memcpy between two pointers with offsets."""
        target_at, at, source_at, start, count = args
        into = builder.gep(target_at, [at])
        out_of = builder.gep(source_at, [start])
        cgutils.raw_memcpy(builder, into, out_of, count, 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def copy_through(
    _typing: Context,
    memcpy: types.Type,
    target: types.Type,
    _at: types.Type,
    source: types.Type,
    _start: types.Type,
    _count: types.Type,
) -> Intrinsic:
    """Copy as `copy_bytes` does, by calling the `memcpy` at an address.

    It is for code that may not link to other code.
    """

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit the call of `memcpy` through a pointer."""
        address, target_at, at, source_at, start, count = args
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(pointer, [pointer, pointer, ir.IntType(64)])
        function = builder.inttoptr(address, kind.as_pointer())
        builder.call(
            function, [builder.gep(target_at, [at]), builder.gep(source_at, [start]), count]
        )
        return context.get_dummy_value()

    return (
        types.void(types.int64, target, types.int64, source, types.int64, types.int64),
        generate,
    )


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def prefetch(_typing: Context, target: types.Type, _at: types.Type) -> Intrinsic:
    """Request that the processor load the cache line of `target[at]`, which will be written.

    Any address is allowed.
    """

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit the processor's prefetch hint."""
        address, at = args
        pointer = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [builder.gep(address, [at]), number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(target, types.int64), generate


def _pointer_of(kind: types.Type, bits: int) -> Callable[[Context, types.Type], Intrinsic]:
    """Return an intrinsic that turns an address into a pointer to numbers of `bits` bits."""

    def typed(_typing: Context, _address: types.Type) -> Intrinsic:
        """Return the signature from an integer address to a pointer, and its generator."""

        def generate(
            _context: BaseContext,
            builder: ir.IRBuilder,
            _signature: Signature,
            args: Sequence[ir.Value],
        ) -> ir.Value:
            """Emit the cast of an address to a pointer."""
            return builder.inttoptr(args[0], ir.IntType(bits).as_pointer())

        return types.CPointer(kind)(types.int64), generate

    return typed


#: The bytes, int64 and int32 at an address.
bytes_at = intrinsic(_pointer_of(types.uint8, 8))
numbers_at = intrinsic(_pointer_of(types.int64, 64))
words_at = intrinsic(_pointer_of(types.int32, 32))


def _stored(
    context: BaseContext, builder: ir.IRBuilder, value: ir.Value, pointer: ir.Value
) -> ir.Value:
    """Emit a store at any alignment, with a barrier after it.

    The barrier keeps LLVM from turning several stores into a call of memcpy or memset.
    """
    builder.store(value, pointer, align=1)
    nothing = ir.FunctionType(ir.VoidType(), [])
    builder.call(ir.InlineAsm(nothing, "", "~{memory}", side_effect=True), [])
    return context.get_dummy_value()


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def put_byte(
    _typing: Context, target: types.Type, _at: types.Type, _value: types.Type
) -> Intrinsic:
    """Store the lowest byte of a number at `target[at]`."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit the store of one byte at a pointer with an offset."""
        address, at, value = args
        byte = builder.trunc(value, ir.IntType(8))
        return _stored(context, builder, byte, builder.gep(address, [at]))

    return types.void(target, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def put_eight(
    _typing: Context, target: types.Type, _at: types.Type, _value: types.Type
) -> Intrinsic:
    """Store a number's eight bytes at `target[at]` in the machine's byte order."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit the store of eight bytes at a pointer with an offset."""
        address, at, value = args
        pointer = builder.bitcast(builder.gep(address, [at]), ir.IntType(64).as_pointer())
        return _stored(context, builder, value, pointer)

    return types.void(target, types.int64, types.uint64), generate


def object_code(compiled: CFunc) -> tuple[bytes, str]:
    """Return a compiled C function's machine code without numba's wrapper, and its name in it.

    The function is then called as `int32 name(int64 *result, void **exception, arguments...)`.
    The wrapper would need numba's run time to be loaded, for exceptions that are never raised.
    """
    name = compiled.native_name.removeprefix("cfunc.")
    wrapper = re.compile(r"^define [^\n]*@cfunc\." + re.escape(name) + r"\(.*?^}\n", re.M | re.S)
    text = wrapper.sub("", compiled.inspect_llvm())
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )
    return bytes(machine.emit_object(llvm.parse_assembly(text))), name
