#!/usr/bin/env python3
"""Small random checkpoints of the attention variants, each run against NumPy in float64.

usage: random_variants.py --program build/release/bin/iha-eval --scratch DIR [--count N] [--first N] [--torch]

Number i is drawn from the seed "variant/i": heads and grouping, head_dim, layers of mixed kinds (pattern per_layer or
repeat), windows, pseudo-heads, layouts, modifiers, RoPE scaling and pairing, MLP form, biases, tied or untied head,
storage. The values come from `Reference` below: array code straight from the equations of the checkpoint format, with
no part of iha-eval in it, in float64; the tolerance is four times the error of the same code in float32, the largest
over copies with weights a rounding away (`float32_errors` in random_checkpoints.py). DIGEST is that of the default
set's weights. `iha-eval check-oracle` must pass on all, whole and in steps of 1 and 7; with --torch
also on the LibTorch backend. Exit 5 if not. Needs ./dev deps parity.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import random
import shutil
import sys
import zlib

import numpy as np
import torch
from safetensors.torch import save_file

from random_checkpoints import check, float32_errors, tolerance

DIGEST = "acc05bee35ecaddc9dd1002c4eacfd94d2e6dbcc5235a556aa3e385400774707"  # of all weights of the default set, as stored
STORES = (torch.float32, torch.bfloat16, torch.float16)
ERF = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * (0.5 * (1 + ERF(x / math.sqrt(2)))).astype(x.dtype),
    "gelu_pytorch_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "relu": lambda x: np.maximum(x, 0),
}


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + x.dtype.type(eps)) * weight


def masked_softmax(scores, visible):
    scores = np.where(visible, scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


class Reference:
    """One checkpoint's forward pass in `dtype`; weights: name -> float64 array of the stored values."""

    def __init__(self, config, weights, dtype):
        self.c, self.dtype = config, dtype
        self.w = {name: value.astype(dtype) for name, value in weights.items()}
        self.H, self.Hkv, self.d = (config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim"))

    def linear(self, x, name):
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def frequencies(self):
        d, rope = self.d, self.c["rope_scaling"] or {"rope_type": "default"}
        inverse = self.c["rope_theta"] ** -(np.arange(0, d, 2, dtype=self.dtype) / d)
        if rope["rope_type"] == "linear":
            inverse = inverse / rope["factor"]
        if rope["rope_type"] == "llama3":
            wavelength = 2 * math.pi / inverse
            trained = rope["original_max_position_embeddings"]
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            smooth = np.clip((trained / wavelength - low) / (high - low), 0, 1)
            inverse = (1 - smooth) * inverse / rope["factor"] + smooth * inverse
        return inverse.astype(self.dtype)

    def rotate(self, x, positions, pairing):
        """x [heads, T, d]."""
        angle = positions.astype(self.dtype)[:, None] * self.frequencies()
        cos, sin = np.cos(angle), np.sin(angle)
        half = self.d // 2
        first, second = (x[..., :half], x[..., half:]) if pairing == "half" else (x[..., 0::2], x[..., 1::2])
        a, b = first * cos - second * sin, second * cos + first * sin
        if pairing == "half":
            return np.concatenate([a, b], axis=-1)
        return np.stack([a, b], axis=-1).reshape(x.shape)

    def knock(self, spec, at, q, k, v):
        if spec.get("knocking") == "linear":
            return tuple(y @ self.w[f"{at}.knocking.{name}"] for y, name in ((q, "q"), (k, "k"), (v, "v")))
        if spec.get("knocking") == "mlp":
            up, gate = v @ self.w[f"{at}.knocking.up"], v @ self.w[f"{at}.knocking.gate"]
            v = 2 * (up * sigmoid(gate)) @ self.w[f"{at}.knocking.down"]
        return q, k, v

    def iha(self, spec, at, q, k, v):
        """[H, N, d] -> head outputs [H, N, d]; xsa of the pseudo stage included."""
        N, P = q.shape[1], spec["pseudo_heads"]
        alpha = {}
        for part in "qkv":
            tensor = self.w[f"{at}.iha.alpha_{part}"]
            alpha[part] = tensor if spec["alpha_layout"] == "source_target_pseudo" else tensor.transpose(2, 0, 1)
        if spec["qk_norm"] == "pre_mix":
            q, k = self.qk_norm(at, q, k)
        # [H, N, P, d] flattened: virtual token n*P + j.
        q, k, v = (np.einsum("mhj,mnd->hnjd", alpha[part], y).reshape(self.H, N * P, self.d)
                   for part, y in (("q", q), ("k", k), ("v", v)))
        if spec["qk_norm"] == "post_mix":
            q, k = self.qk_norm(at, q, k)
        index = np.arange(N * P)
        positions = index if spec["rope_positions"] == "virtual" else index // P
        q, k = (self.rotate(y, positions, spec["rope_pairing"]) for y in (q, k))
        row, column = index[:, None], index[None, :]
        visible = column <= row if spec["mask"] == "flat_causal" else column // P <= row // P
        window = spec["window"]
        if window and window["unit"] == "token":
            visible = visible & (column // P >= row // P - window["size"] + 1)
        if window and window["unit"] == "virtual":
            visible = visible & (column >= row - window["size"] + 1)
        a = masked_softmax(q @ k.transpose(0, 2, 1) * self.scale, visible) @ v
        if spec.get("xsa") == "pseudo":
            a = self.remove_own(a, v)
        a = a.reshape(self.H, N, P, self.d)
        r = self.w[f"{at}.iha.collapse"]
        if spec["collapse"] == "per_head":
            return np.einsum("hj,hnjd->hnd", r, a)
        return np.einsum("hij,injd->hnd", r.reshape(self.H, self.H, P), a)

    def qk_norm(self, at, q, k):
        eps = self.c["rms_norm_eps"]
        return rms_norm(q, self.w[f"{at}.q_norm.weight"], eps), rms_norm(k, self.w[f"{at}.k_norm.weight"], eps)

    @staticmethod
    def remove_own(y, v):
        u = v / np.maximum(np.sqrt((v * v).sum(axis=-1, keepdims=True)), v.dtype.type(1e-12))
        return y - (y * u).sum(axis=-1, keepdims=True) * u

    def ordinary(self, spec, at, layer, x, q, k, v):
        """Every kind but iha: [H, N, d], [Hkv, N, d] twice -> head outputs."""
        N, kind, group = q.shape[1], spec["kind"], self.H // self.Hkv
        if spec.get("qk_norm", "none") == "pre_rope":
            q, k = self.qk_norm(at, q, k)
        token = np.arange(N)
        q, k = (self.rotate(y, token, spec["rope_pairing"]) for y in (q, k))
        visible = token[None, :] <= token[:, None]
        if spec.get("window"):
            visible = visible & (token[None, :] > token[:, None] - spec["window"])
        scores = q @ np.repeat(k, group, axis=0).transpose(0, 2, 1) * self.scale
        if kind == "talking_heads":
            scores = np.einsum("anm,ab->bnm", scores, self.w[f"{at}.talking_heads.pre"])
        p = masked_softmax(scores, visible)
        if kind == "talking_heads":
            p = np.einsum("bnm,bc->cnm", p, self.w[f"{at}.talking_heads.post"])
        if kind == "diff":
            start = 0.8 - 0.6 * math.exp(-0.3 * layer) if spec["lambda_init"] == "depth" else spec["lambda_init"]
            lq1, lk1, lq2, lk2 = (self.w[f"{at}.diff.lambda_{name}"] for name in ("q1", "k1", "q2", "k2"))
            lam = np.exp(lq1 @ lk1) - np.exp(lq2 @ lk2) + self.dtype(start)
            wide = v.reshape(self.H // 2, 2, N, self.d).transpose(0, 2, 1, 3).reshape(self.H // 2, N, 2 * self.d)
            y = (p[0::2] - lam * p[1::2]) @ wide
            return self.dtype(1 - start) * rms_norm(y, self.w[f"{at}.diff.subln.weight"], spec["norm_eps"])
        y = p @ np.repeat(v, group, axis=0)
        if kind == "diff_v2":
            lam = sigmoid(x @ self.w[f"{at}.diff.lambda_proj.weight"].T)  # [N, H/2]
            y = y[0::2] - lam.T[:, :, None] * y[1::2]
        return y

    def attention(self, layer, x):
        at, N = f"model.layers.{layer}.self_attn", x.shape[0]
        specs = self.c["iha_eval"]["attention"]
        spec = specs[layer % len(specs)]
        self.scale = self.dtype(1 / math.sqrt(self.d))
        q, k, v = (self.linear(x, f"{at}.{name}_proj").reshape(N, -1, self.d).transpose(1, 0, 2) for name in "qkv")
        q, k, v = self.knock(spec, at, q, k, v)
        y = self.iha(spec, at, q, k, v) if spec["kind"] == "iha" else self.ordinary(spec, at, layer, x, q, k, v)
        if spec.get("xsa") == "output":
            y = self.remove_own(y, np.repeat(v, y.shape[0] // self.Hkv, axis=0))
        if "gate" in spec:
            gate = sigmoid(x @ self.w[f"{at}.attn_gate.weight"].T)
            y = y * (gate.T[:, :, None] if spec["gate"] == "headwise"
                     else gate.reshape(N, y.shape[0], -1).transpose(1, 0, 2))
        return self.linear(y.transpose(1, 0, 2).reshape(N, -1), f"{at}.o_proj")

    def mlp(self, layer, x):
        at, act = f"model.layers.{layer}.mlp", ACTIVATIONS[self.c["hidden_act"]]
        up = self.linear(x, f"{at}.up_proj")
        gated = self.c["iha_eval"]["mlp"] == "gated"
        return self.linear(act(self.linear(x, f"{at}.gate_proj")) * up if gated else act(up), f"{at}.down_proj")

    def run(self, ids):
        found, eps = {}, self.c["rms_norm_eps"]
        x = self.w["model.embed_tokens.weight"][ids]
        for layer in range(self.c["num_hidden_layers"]):
            at = f"model.layers.{layer}"
            y = self.attention(layer, rms_norm(x, self.w[f"{at}.input_layernorm.weight"], eps))
            found[f"attn_out.{layer}"] = y.astype(np.float64)
            x = x + y
            x = x + self.mlp(layer, rms_norm(x, self.w[f"{at}.post_attention_layernorm.weight"], eps))
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        found["logits"] = (rms_norm(x, self.w["model.norm.weight"], eps) @ head.T).astype(np.float64)
        return found


def draw_spec(rng, kind, tokens):
    window = rng.choice([None, 1, 2, 7, 16, 63, 64, 65, tokens, tokens + 5])
    spec = {"kind": kind, "rope_pairing": rng.choice(["half", "interleaved"])}
    if kind == "iha":
        P = rng.choice([1, 2, 2, 3, 4, 5, 7])
        spec |= {"pseudo_heads": P, "alpha_layout": rng.choice(["source_target_pseudo", "target_pseudo_source"]),
                 "collapse": rng.choice(["per_head", "global"]), "mask": rng.choice(["flat_causal", "token_causal"]),
                 "rope_positions": rng.choice(["virtual", "token"]), "qk_norm": rng.choice(["none", "pre_mix", "post_mix"])}
        unit = "virtual" if spec["mask"] == "flat_causal" and rng.random() < 0.5 else "token"
        spec["window"] = None if window is None else {"unit": unit, "size": window * (P if rng.random() < 0.5 else 1)}
    elif kind == "diff":
        spec |= {"window": window, "lambda_init": rng.choice(["depth", 0.1, 0.8]), "norm_eps": rng.choice([1e-6, 1e-5, 0.03])}
    else:
        spec["qk_norm"] = rng.choice(["none", "pre_rope"])
        if kind == "local":
            spec["window"] = window or 3
        elif kind != "global":
            spec["window"] = window
    if kind != "diff":
        if rng.random() < 0.4:
            spec["xsa"] = rng.choice(["pseudo", "output"] if kind == "iha" else ["output"])
        if rng.random() < 0.4:
            spec["gate"] = rng.choice(["headwise", "elementwise"])
        if rng.random() < 0.4:
            spec["knocking"] = rng.choice(["linear", "mlp"])
    return spec


def draw(number):
    """config.json, the number of tokens and the storage type."""
    rng = random.Random(f"variant/{number}")
    tokens = rng.choice([1, 2, 15, 40, 64, 65, 90, 131])
    if number % 2:  # kinds that need as many KV heads as heads
        heads = kv_heads = rng.choice([1, 2, 3, 4, 5, 6])
        kinds = ["iha", "iha", "iha", "global", "local", "talking_heads"] + (["diff"] if heads % 2 == 0 else [])
    else:
        kv_heads, group = rng.choice([1, 2, 3]), rng.choice([1, 2, 4, 6])
        heads = kv_heads * group
        kinds = ["global", "local", "talking_heads"] + (["diff_v2", "diff_v2"] if group % 2 == 0 else [])
    layers = rng.choice([1, 2, 3, 5])
    specs = [draw_spec(rng, rng.choice(kinds), tokens) for _ in range(rng.randint(1, layers))]
    repeat = len(specs) < layers or rng.random() < 0.5
    scaling = rng.choice([None, None, {"rope_type": "linear", "factor": 2.5},
                          {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 32}])
    store = STORES[number // 2 % 3]
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": rng.choice([31, 64, 129]),
        "hidden_size": rng.choice([10, 24, 33, 48]), "intermediate_size": rng.choice([7, 32, 50]),
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "head_dim": rng.choice([2, 6, 8, 10, 18, 34, 64]), "hidden_act": rng.choice(sorted(ACTIVATIONS)),
        "rms_norm_eps": rng.choice([1e-6, 1e-5, 1e-3]), "rope_theta": rng.choice([100.0, 1e4, 5e5]),
        "rope_scaling": scaling, "attention_bias": rng.random() < 0.4, "mlp_bias": rng.random() < 0.4,
        "tie_word_embeddings": rng.random() < 0.5, "max_position_embeddings": 4096, "bos_token_id": 1, "eos_token_id": 2,
        "torch_dtype": str(store).split(".")[1],
        "iha_eval": {"version": 1, "mlp": rng.choice(["gated", "plain"]), "attention": specs,
                     "pattern": "repeat" if repeat else "per_layer"},
    }
    return config, tokens, store


def shapes(c):
    """Every tensor of the checkpoint and its shape."""
    H, Hkv, d, D = (c[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size"))
    F, gated, found = c["intermediate_size"], c["iha_eval"]["mlp"] == "gated", {}

    def linear(name, rows, columns, bias):
        found[f"{name}.weight"] = (rows, columns)
        if bias:
            found[f"{name}.bias"] = (rows,)

    linear("model.embed_tokens", c["vocab_size"], D, False)
    for layer in range(c["num_hidden_layers"]):
        spec = c["iha_eval"]["attention"][layer % len(c["iha_eval"]["attention"])]
        at, kind = f"model.layers.{layer}.self_attn", spec["kind"]
        outputs = H // 2 if kind == "diff_v2" else H
        for name, rows in (("q", H), ("k", Hkv), ("v", Hkv)):
            linear(f"{at}.{name}_proj", rows * d, D, c["attention_bias"])
        linear(f"{at}.o_proj", D, outputs * d, c["attention_bias"])
        if spec.get("qk_norm", "none") != "none":
            found |= {f"{at}.q_norm.weight": (d,), f"{at}.k_norm.weight": (d,)}
        if kind == "iha":
            P = spec["pseudo_heads"]
            mix = (H, H, P) if spec["alpha_layout"] == "source_target_pseudo" else (H, P, H)
            found |= {f"{at}.iha.alpha_{part}": mix for part in "qkv"}
            found[f"{at}.iha.collapse"] = (H, P) if spec["collapse"] == "per_head" else (H, H * P)
        if kind == "talking_heads":
            found |= {f"{at}.talking_heads.pre": (H, H), f"{at}.talking_heads.post": (H, H)}
        if kind == "diff":
            found |= {f"{at}.diff.lambda_{name}": (d,) for name in ("q1", "k1", "q2", "k2")}
            found[f"{at}.diff.subln.weight"] = (2 * d,)
        if kind == "diff_v2":
            found[f"{at}.diff.lambda_proj.weight"] = (H // 2, D)
        if "gate" in spec:
            found[f"{at}.attn_gate.weight"] = (outputs * (d if spec["gate"] == "elementwise" else 1), D)
        names = {"linear": ("q", "k", "v"), "mlp": ("up", "gate", "down")}.get(spec.get("knocking"), ())
        found |= {f"{at}.knocking.{name}": (d, d) for name in names}
        mlp = f"model.layers.{layer}.mlp"
        for name, rows, columns in (("gate", F, D), ("up", F, D), ("down", D, F)):
            if gated or name != "gate":
                linear(f"{mlp}.{name}_proj", rows, columns, c["mlp_bias"])
        found |= {f"model.layers.{layer}.{name}.weight": (D,) for name in ("input_layernorm", "post_attention_layernorm")}
    found["model.norm.weight"] = (D,)
    if not c["tie_word_embeddings"]:
        linear("lm_head", c["vocab_size"], D, False)
    return found


def fill(name, shape, generator):
    """Values that make every part count: spread scores, mixers and norms that are not what they start as."""
    noise = generator.standard_normal(shape)
    if "norm" in name or "subln" in name:
        return 1 + 0.25 * noise
    if len(shape) == 1:
        return 0.5 * noise
    if "embed" in name or "lm_head" in name:
        return noise * 2.5 / shape[1] ** 0.5
    if ".iha." in name or "talking_heads" in name:
        return noise / shape[0] ** 0.5
    return noise * (1.6 if "q_proj" in name or "k_proj" in name else 1.0) / shape[-1] ** 0.5


def make(scratch, number, digest):
    name = f"variant_{number}"
    folder = scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, tokens, store = draw(number)
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    stored = {key: torch.from_numpy(fill(key, shape, generator)).to(store).contiguous()
              for key, shape in sorted(shapes(config).items())}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    digest.update((folder / "model.safetensors").read_bytes())
    weights = {key: value.double().numpy() for key, value in stored.items()}
    ids = np.array(random.Random(f"{name}/ids").choices(range(config["vocab_size"]), k=tokens), np.int64)

    def run_in(weights, double):
        return Reference(config, weights, np.float64 if double else np.float32).run(ids)

    exact = run_in(weights, True)
    errors = float32_errors(weights, name, exact, run_in)
    assert all(error < 1e-2 for error in errors.values()), f"{name}: float32 says little here: {errors}"
    logit, attention = errors.pop("logits"), max(errors.values())
    metadata = {"format": "attention-oracle-1", "weights_dtype": {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}[
        config["torch_dtype"]], "fp32_max_abs_logit_error": f"{logit:.3e}",
        "fp32_max_abs_attn_out_error": f"{attention:.3e}", "logit_atol": tolerance(logit),
        "attn_out_atol": tolerance(attention)}
    save_file({"input_ids": torch.from_numpy(ids), **{key: torch.from_numpy(value) for key, value in exact.items()}},
              folder / "expected.safetensors", metadata)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--torch", action="store_true", help="the LibTorch backend as well")
    args = parser.parse_args()
    program, digest = os.path.abspath(args.program), hashlib.sha256()
    folders = [make(args.scratch, number, digest) for number in range(args.first, args.first + args.count)]
    failed = check(program, folders) + check(program, folders, "--chunk", "1") + check(program, folders, "--chunk", "7")
    if args.torch:
        failed += check(program, folders, "--numerics", "torch") + check(program, folders, "--numerics", "torch", "--chunk", "7")
    if args.count == 120 and args.first == 0 and digest.hexdigest() != DIGEST:
        print(f"weights: expected digest {DIGEST}, found {digest.hexdigest()}: another NumPy or torch than pinned")
        failed += 1
    print(f"random variants: {len(folders)} folders, whole and in steps of 1 and 7, {failed} failures")
    return 5 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
