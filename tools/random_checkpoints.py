#!/usr/bin/env python3
"""Small random checkpoints of every plain family, made by Hugging Face transformers, each run against its logits.

usage: random_checkpoints.py --program build/release/bin/iha-eval --scratch DIR [--count N] [--first N] [--families A,B]

Number i of a family is drawn from the seed "family/i": sizes, grouping, head_dim, tied or untied head, biases, storage
(float32, bfloat16, float16; one file or shards), RoPE (default, linear, llama3, yarn, dynamic below its limit), sliding
windows, layer types, activation, eps. Weights come from NumPy's PCG64 with the same seed; DIGEST is that of the default
set. Each checkpoint is written twice: NAME as transformers 5 saves it and NAME.v4 with the config.json of transformers
4, which transformers must read as the same model (bit-equal float32 logits). `expected.safetensors` holds logits and
attention outputs of a run wholly in float64, and as tolerance four times the error of transformers' own float32 runs
(`float32_errors`).
Then `iha-eval check-oracle` must pass on all, whole and in steps of 7. Exit 5 if not. Needs ./dev deps parity.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import zlib

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from wholly_float64 import float64_twin, wholly_float64

DIGEST = "9e866abf89c585f3750f4b5c723f49e85eb20c885adbfd312d4630f0d087bf50"  # of all weights of the default set, as stored
TYPES = {"llama": "llama", "mistral": "mistral", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3": "gemma3_text"}
ROPES = ("default", "linear", "llama3", "yarn", "dynamic")
STORES = (torch.float32, torch.bfloat16, torch.float16)
ACTIVATIONS = ("silu", "silu", "swish", "gelu", "gelu_pytorch_tanh", "gelu_new", "relu")  # all that config.json may name
TOKENS = 40
COPIES = 5  # of the weights, for the tolerance


def draw_rope(rng, kind, positions):
    rope = {"rope_type": kind, "rope_theta": rng.choice([1e3, 1e4, 5e5])}
    if kind != "default":
        rope["factor"] = rng.choice([2.0, 4.0, 8.0, 2.5])
    if kind == "llama3":
        low = rng.choice([1.0, 2.0])
        rope |= {"low_freq_factor": low, "high_freq_factor": low * rng.choice([2, 4]),
                 "original_max_position_embeddings": rng.choice([32, 64])}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = positions // 4
        for key, values in (("attention_factor", [0.8, 1.3]), ("beta_fast", [16, 24.5]), ("beta_slow", [2, 1.5]),
                            ("truncate", [True, False])):
            if rng.random() < 0.4:
                rope[key] = rng.choice(values)
        if rng.random() < 0.3:
            rope |= {"mscale": rng.choice([0.707, 1.0]), "mscale_all_dim": rng.choice([0.5, 1.0])}
    return rope


def draw(family, number):
    """transformers' arguments for a config, and how the weights are stored."""
    rng = random.Random(f"{family}/{number}")
    groups, kv_heads, layers = rng.choice([1, 2, 4]), rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
    heads, head_dim = groups * kv_heads, rng.choice([8, 12, 16, 32])
    hidden = heads * head_dim if rng.random() < 0.4 else heads * rng.choice([6, 10, 20])
    if family == "qwen2":  # has no head_dim
        hidden = heads * head_dim
    fields = {
        "vocab_size": rng.choice([67, 96, 130]), "hidden_size": hidden, "intermediate_size": rng.choice([17, 48, 100]),
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "max_position_embeddings": 128, "rms_norm_eps": rng.choice([1e-6, 1e-5, 1e-3]),
        "tie_word_embeddings": rng.random() < 0.5, "bos_token_id": 1, "eos_token_id": rng.choice([2, [2, 3]]),
        "pad_token_id": 0,
    }
    if family != "qwen2":
        fields["head_dim"] = head_dim
    rope = draw_rope(rng, ROPES[number % len(ROPES)], 128)
    fields["rope_parameters"] = rope
    window = rng.choice([1, 5, 16, 200])
    if family == "llama":
        fields |= {"attention_bias": rng.random() < 0.5, "mlp_bias": rng.random() < 0.5}
    if family == "mistral":
        fields["sliding_window"] = rng.choice([None, window])
    if family in ("qwen2", "qwen3"):
        fields |= {"use_sliding_window": rng.random() < 0.5, "sliding_window": window,
                   "max_window_layers": rng.randint(0, layers)}
    if family == "qwen3":
        fields["attention_bias"] = rng.random() < 0.5
    if family == "gemma3":
        pattern = rng.choice([1, 2, 3, 6])
        fields |= {
            "num_hidden_layers": rng.choice([3, 6, 7]), "sliding_window": window,
            "query_pre_attn_scalar": rng.choice([head_dim, 24, 256]), "attention_bias": rng.random() < 0.3}
        fields["layer_types"] = ["sliding_attention" if (layer + 1) % pattern else "full_attention"
                                 for layer in range(fields["num_hidden_layers"])]
        fields["rope_parameters"] = {"full_attention": rope,
                                     "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([1e3, 2e4])}}
    store = {"dtype": STORES[(number // len(ROPES)) % 3], "shards": rng.random() < 0.4}
    fields["hidden_activation" if family == "gemma3" else "hidden_act"] = rng.choice(ACTIVATIONS)
    return fields, store


def fill(model, name):
    """Weights that make every part count: spread scores, biases and norms that are not what they start as."""
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    gemma = model.config.model_type == "gemma3_text"
    state = {}
    for key, value in sorted(model.state_dict().items()):
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        noise = generator.standard_normal(tuple(value.shape))
        if value.dim() == 1 and "norm" in key:
            noise = noise * 0.25 + (0 if gemma else 1)
        elif value.dim() == 1:
            noise *= 0.5
        elif "embed" in key or "lm_head" in key:
            noise *= 2.5 / value.shape[1] ** 0.5
        else:
            noise *= (1.6 if "q_proj" in key or "k_proj" in key else 1.0) / value.shape[1] ** 0.5
        state[key] = torch.from_numpy(noise)
    model.load_state_dict(state, strict=False)


def older_config(config, number, rng):
    """config.json as transformers 4 wrote it, without the fields that may be left out."""
    config = {key: value for key, value in config.items() if not key.startswith("_")}
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.51.0"
    rope = config.pop("rope_parameters")
    if config["model_type"] == "gemma3_text":
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
        types = config.pop("layer_types")
        config["sliding_window_pattern"] = types.index("full_attention") + 1 if "full_attention" in types else len(types) + 1
    config.pop("layer_types", None)
    rope = dict(rope)
    config["rope_theta"] = rope.pop("rope_theta")
    if rope["rope_type"] == "default":
        config["rope_scaling"] = None
    else:
        # The oldest spelling; transformers 5 does not see it in a Gemma 3 config.
        if number % 2 and rope["rope_type"] in ("linear", "dynamic") and config["model_type"] != "gemma3_text":
            rope["type"] = rope.pop("rope_type")
        config["rope_scaling"] = rope
    plain = config["hidden_size"] == config.get("head_dim", 0) * config["num_attention_heads"]
    if plain and config["model_type"] in ("llama", "mistral") and rng.random() < 0.7:
        del config["head_dim"]
    if config["model_type"] == "llama":
        for key in ("attention_bias", "mlp_bias"):
            if not config[key]:
                del config[key]
    return config


def run(model, ids):
    """Logits and the attention outputs (after o_proj, its bias included) of one sequence."""
    found = {}
    hooks = [layer.self_attn.o_proj.register_forward_hook(
        lambda module, given, result, at=at: found.__setitem__(f"attn_out.{at}", result[0].double().numpy()))
        for at, layer in enumerate(model.model.layers)]
    with torch.no_grad():
        found["logits"] = model(torch.tensor([ids]), use_cache=False).logits[0].double().numpy()
    for hook in hooks:
        hook.remove()
    return found


def float32_errors(weights, name, exact, run_in):
    """The largest error of each output that float32 arithmetic makes here: what a tolerance may be a multiple of.

    One float32 run is one draw of its roundings, and can be a lucky one: a tenth of the next one's error where a
    row is badly conditioned. So there are COPIES draws: the weights as they are, and moved by up to half a unit in the
    last place of float32, which is what any rounding of an operand does. Of each copy both count: what the move does
    in float64 (the conditioning, without float32's roundings) and what float32 makes of the moved copy.
    run_in(weights, whether in float64): the outputs; exact: those of float64 from the weights as they are.
    """
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(f"{name}/moved".encode())))
    errors = dict.fromkeys(exact, 0.0)
    for copy in range(COPIES):
        moved = {key: value * (1 + (copy > 0) * generator.uniform(-1, 1, value.shape) * 2.0 ** -24)
                 for key, value in weights.items()}
        for double in (False, True):
            found = run_in(moved, double)
            errors = {key: max(error, float(np.abs(found[key] - exact[key]).max())) for key, error in errors.items()}
    return errors


def tolerance(error):
    """Four times the error, at least 1e-5, rounded up to one digit."""
    least = max(4 * error, 1e-5)
    digits = f"{least:.0e}"
    return digits if float(digits) >= least else f"{int(digits[0]) + 1}{digits[1:]}"


def make(scratch, family, number, digest):
    name = f"{family}_{number}"
    folder, older = scratch / name, scratch / f"{name}.v4"
    for path in (folder, older):
        shutil.rmtree(path, ignore_errors=True)
    fields, store = draw(family, number)
    config = AutoConfig.for_model(TYPES[family], **fields)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    fill(model, name)
    model = model.to(store["dtype"])
    model.save_pretrained(folder, max_shard_size="20KB" if store["shards"] else "5GB")
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.read_bytes())
    rng = random.Random(f"{name}/older")
    saved = json.loads((folder / "config.json").read_text())
    if family in ("qwen2", "qwen3"):
        saved["sliding_window"] = fields["sliding_window"]
    shutil.copytree(folder, older)
    (older / "config.json").write_text(json.dumps(older_config(saved, number, rng), indent=1))
    ids = [1] + [rng.randrange(4, fields["vocab_size"]) for _ in range(TOKENS - 1)]
    ids[-TOKENS // 3:] = ids[1:1 + len(ids[-TOKENS // 3:])]
    read = {path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
            for path in (folder, older)}
    single, again = run(read[folder], ids), run(read[older], ids)
    for key, value in single.items():
        assert np.array_equal(value, again[key]), f"{name}: transformers reads the two forms differently ({key})"
    twin = float64_twin(read[folder])
    with wholly_float64():
        exact = run(twin, ids)

    def run_in(weights, double):
        with wholly_float64() if double else contextlib.nullcontext():
            used = twin if double else read[folder]
            used.load_state_dict({key: torch.from_numpy(value).to(torch.float64 if double else torch.float32)
                                  for key, value in weights.items()})
            return run(used, ids)

    weights = {key: value.double().numpy() for key, value in read[folder].state_dict().items()}
    errors = float32_errors(weights, name, exact, run_in)
    assert all(error < 1e-2 for error in errors.values()), f"{name}: {errors}"
    logit, attention = errors.pop("logits"), max(errors.values())
    metadata = {"format": "attention-oracle-1", "weights_dtype": {2: "F16", 4: "F32"}[store["dtype"].itemsize]
                if store["dtype"] != torch.bfloat16 else "BF16", "fp32_max_abs_logit_error": f"{logit:.3e}",
                "fp32_max_abs_attn_out_error": f"{attention:.3e}", "logit_atol": tolerance(logit), "attn_out_atol": tolerance(attention)}
    for path in (folder, older):
        save_file({"input_ids": np.array(ids, np.int64), **exact}, path / "expected.safetensors", metadata)
    return [folder, older]


def check(program, folders, *flags):
    done = subprocess.run([program, "check-oracle", *map(str, folders), *flags], capture_output=True, check=False)
    rows = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    bad = [row for row in rows if not row["ok"]]
    for row in bad:
        print(f"  {json.dumps(row)} {' '.join(flags)}", flush=True)
    if len(rows) != len(folders):
        print(f"  {' '.join(flags)}: {len(rows)} of {len(folders)} folders ran: {done.stderr.decode(errors='replace').strip()[-2000:]}",
              flush=True)
    return len(bad) + len(folders) - len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=30, help="checkpoints a family")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--families", default=",".join(TYPES))
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    args.scratch.mkdir(parents=True, exist_ok=True)
    digest, total, failed = hashlib.sha256(), 0, 0
    for family in args.families.split(","):
        folders = [path for number in range(args.first, args.first + args.count)
                   for path in make(args.scratch, family, number, digest)]
        wrong = check(program, folders) + check(program, folders, "--chunk", "7")
        print(f"{family}: {len(folders)} folders, {wrong} failures", flush=True)
        total, failed = total + len(folders), failed + wrong
    default = args.count == 30 and args.first == 0 and args.families == ",".join(TYPES)
    if default and digest.hexdigest() != DIGEST:
        print(f"weights: expected digest {DIGEST}, found {digest.hexdigest()}: another NumPy or transformers than pinned", flush=True)
        failed += 1
    print(f"random checkpoints: {total} folders, whole and in steps of 7, {failed} failures")
    return 5 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
