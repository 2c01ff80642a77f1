#!/usr/bin/env python3
"""One model twice with 16-bit weights, for engine_peer.py --gguf: a GGUF file for llama.cpp and a checkpoint for ours.

usage: f16_gguf.py SOURCE.gguf OUT.gguf, then `iha-eval import gguf OUT.gguf --out OUT`

Matrices of SOURCE are dequantised and rounded to F16, vectors stay F32, everything else is copied. Needs the gguf package.
"""
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    reader = GGUFReader(sys.argv[1])
    writer = GGUFWriter(sys.argv[2], str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        if kind == GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), kind, sub_type=field.types[-1])
        else:
            value = 1 if name == "general.file_type" else field.contents()  # 1: mostly F16
            writer.add_key_value(name, value, kind)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        values = values.reshape([int(n) for n in reversed(tensor.shape)])
        matrix = values.ndim > 1
        writer.add_tensor(tensor.name, values.astype(np.float16 if matrix else np.float32),
                          raw_dtype=GGMLQuantizationType.F16 if matrix else GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
