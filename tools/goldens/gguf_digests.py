#!/usr/bin/env python3
"""Golden digests for `import gguf`: what the `gguf` package says the weights are.

usage: gguf_digests.py FILE.gguf [TENSOR...]      (needs: pip install gguf numpy)

Prints one C++ table row a tensor: Hugging Face name, shape, SHA-256 of its float32 bytes, with the row permutation of
q and k undone as transformers' own converter does it. Without TENSOR: all of them. tests/model/checkpoint/
gguf_import_test.cc holds some rows of the SmolLM2 file.
"""
import hashlib
import re
import sys

import numpy as np
from gguf import GGUFReader, dequantize

NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
       "output.weight": "lm_head.weight"}


def unpermute(rows, heads):
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def weights(path):
    reader = GGUFReader(path)
    heads = int(reader.fields["llama.attention.head_count"].contents())
    kv_heads = int(reader.fields["llama.attention.head_count_kv"].contents())
    for tensor in reader.tensors:
        match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", tensor.name)
        name = TOP.get(tensor.name) or f"model.layers.{match[1]}.{NAMES[match[2]]}.{match[3]}"
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        if "q_proj" in name:
            values = unpermute(values, heads)
        if "k_proj" in name:
            values = unpermute(values, kv_heads)
        yield name, np.ascontiguousarray(values)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wanted = set(sys.argv[2:])
    for name, values in weights(sys.argv[1]):
        if not wanted or name in wanted:
            shape = ", ".join(map(str, values.shape))
            print(f'    {{"{name}", {{{shape}}}, "{hashlib.sha256(values.tobytes()).hexdigest()}"}},')


if __name__ == "__main__":
    main()
