#!/usr/bin/env python3
"""One model twice with 16-bit weights, for engine_peer.py --gguf: a GGUF file for llama.cpp and a checkpoint for ours.

usage: gguf_16bit.py SOURCE.gguf OUT.gguf f16|bf16, then `iha-eval import gguf OUT.gguf --out OUT`

Matrices of SOURCE are dequantised and rounded to F16 or BF16, vectors stay F32, everything else is copied. Needs the gguf package.
"""
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, dequantize, quantize

TYPES = {"f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
         "bf16": (GGMLQuantizationType.BF16, LlamaFileType.MOSTLY_BF16)}


def main():
    if len(sys.argv) != 4 or sys.argv[3] not in TYPES:
        raise SystemExit(__doc__)
    matrix_type, file_type = TYPES[sys.argv[3]]
    reader = GGUFReader(sys.argv[1])
    writer = GGUFWriter(sys.argv[2], str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        if kind == GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), kind, sub_type=field.types[-1])
        else:
            value = int(file_type) if name == "general.file_type" else field.contents()
            writer.add_key_value(name, value, kind)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        values = values.reshape([int(n) for n in reversed(tensor.shape)])
        kind = matrix_type if values.ndim > 1 else GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, quantize(values.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
