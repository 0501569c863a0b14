"""One block of MD5 as code for LLVM: no tables, no calls, all 64 steps in a row.

    state   16 bytes   four little-endian words; after the last block they are the digest
    block   64 bytes

Code is not compiled for big-endian machines. Source: RFC 1321.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from llvmlite import ir
from numba.core import types
from numba.core.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numba.core.base import BaseContext
    from numba.core.typing import Context
    from numba.core.typing.templates import Signature

    #: What an intrinsic returns: its signature, and the function that writes its code.
    Intrinsic = tuple[Signature, Callable[..., ir.Value]]

_WORD = ir.IntType(32)
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
#: The state before the first block, as two numbers of eight bytes.
START = (0xEFCDAB8967452301, 0x1032547698BADCFE)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def md5_block(_typing: Context, state: types.Type, block: types.Type, _at: types.Type) -> Intrinsic:
    """Update the four words of an MD5 state with the 64-byte block at `block[at]`."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        """Emit the 64 steps of MD5 over one block, and add their result to the state."""
        state_at, block_at, at = args
        words = builder.bitcast(builder.gep(block_at, [at]), _WORD.as_pointer())
        kept = builder.bitcast(state_at, _WORD.as_pointer())

        def word(pointer: ir.Value, number: int) -> tuple[ir.Value, ir.Value]:
            """Emit the load of the 32-bit word with this index.

            Return its value and its address.
            """
            place = builder.gep(pointer, [ir.Constant(_WORD, number)])
            return builder.load(place, align=1), place

        message = [word(words, number)[0] for number in range(16)]
        before = [word(kept, number) for number in range(4)]
        a, b, c, d = (value for value, _ in before)
        for step in range(64):
            mixed, index = _mixed(builder, step, b, c, d)
            constant = ir.Constant(_WORD, int(abs(math.sin(step + 1)) * (1 << 32)))
            total = builder.add(builder.add(a, mixed), builder.add(constant, message[index]))
            shift = _SHIFTS[step // 16][step % 4]
            rotated = builder.or_(
                builder.shl(total, ir.Constant(_WORD, shift)),
                builder.lshr(total, ir.Constant(_WORD, 32 - shift)),
            )
            a, b, c, d = d, builder.add(b, rotated), b, c
        for (value, place), new in zip(before, (a, b, c, d), strict=True):
            builder.store(builder.add(value, new), place, align=1)
        return context.get_dummy_value()

    return types.void(state, block, types.int64), generate


def _mixed(
    builder: ir.IRBuilder, step: int, b: ir.Value, c: ir.Value, d: ir.Value
) -> tuple[ir.Value, int]:
    """Emit the mix of three words in one step of MD5; also return the index of the block's word."""
    if step < 16:
        return builder.xor(d, builder.and_(b, builder.xor(c, d))), step
    if step < 32:
        return builder.xor(c, builder.and_(d, builder.xor(b, c))), (5 * step + 1) % 16
    if step < 48:
        return builder.xor(b, builder.xor(c, d)), (3 * step + 5) % 16
    return builder.xor(c, builder.or_(b, builder.not_(d))), 7 * step % 16
