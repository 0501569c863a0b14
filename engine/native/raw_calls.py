"""Calls of C library functions by their addresses, for compiled code that may not link to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numba.core.base import BaseContext
    from numba.core.typing import Context
    from numba.core.typing.templates import Signature

    from engine.native.raw_memory import Intrinsic


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def read_through(
    _typing: Context,
    _pread: types.Type,
    _descriptor: types.Type,
    target: types.Type,
    _count: types.Type,
    _position: types.Type,
) -> Intrinsic:
    """Read `count` bytes at a file position by calling the `pread` at an address.

    Returns how many bytes were read, -1 for an error.
    """

    def generate(
        _context: BaseContext,
        builder: ir.IRBuilder,
        _signature: Signature,
        args: Sequence[ir.Value],
    ) -> ir.Value:
        """Emit the call of `pread` through a pointer."""
        address, descriptor, target_at, count, position = args
        long, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(long, [ir.IntType(32), pointer, long, long])
        function = builder.inttoptr(address, kind.as_pointer())
        narrow = builder.trunc(descriptor, ir.IntType(32))
        return builder.call(function, [narrow, target_at, count, position])

    return (
        types.int64(types.int64, types.int64, target, types.int64, types.int64),
        generate,
    )
