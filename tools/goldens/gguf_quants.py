#!/usr/bin/env python3
"""Golden digests of GGUF's tensor types: what the `gguf` package makes of 64 blocks of random bytes each.

usage: gguf_quants.py      (needs: pip install gguf==0.19.0 numpy)

Prints one C++ table row a type: id, name, SHA-256 of the float32 values. The bytes come from a 64-bit linear
congruential generator (the top byte of each state, seed = type id). One bit of each scale's (or float's) exponent is
cleared, so that no value is an infinity or NaN. tests/model/checkpoint/ggml_types_test.cc makes the same bytes.
"""
import hashlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

BLOCKS = 64
# Bytes of a block to clear a bit of, and the bit.
CLEARED = {
    "F32": ([2], 0x80), "F16": ([1], 0x04), "BF16": ([0], 0x80), "Q4_0": ([1], 0x04), "Q4_1": ([1, 3], 0x04),
    "Q5_0": ([1], 0x04), "Q5_1": ([1, 3], 0x04), "Q8_0": ([1], 0x04), "Q4_K": ([1, 3], 0x04), "Q5_K": ([1, 3], 0x04),
    "Q6_K": ([209], 0x04),
}


def random_bytes(seed, count):
    state, result = seed, bytearray()
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        result.append(state >> 56)
    return result


def main():
    for name, (positions, bit) in CLEARED.items():
        kind = GGMLQuantizationType[name]
        size = GGML_QUANT_SIZES[kind][1]
        data = random_bytes(int(kind), BLOCKS * size)
        for position in positions:
            for block in range(BLOCKS):
                data[block * size + position] &= ~bit & 255
        raw = np.frombuffer(bytes(data), {"F32": np.float32, "F16": np.float16}.get(name, np.uint8))
        values = np.ascontiguousarray(dequantize(raw.reshape(1, -1), kind).astype(np.float32))
        assert np.isfinite(values).all()
        print(f'    {{{int(kind)}, "{name}", "{hashlib.sha256(values.tobytes()).hexdigest()}"}},')


if __name__ == "__main__":
    main()
