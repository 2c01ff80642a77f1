"""The rivals of engine_peer.py: programs that generate the same number of tokens from the same token ids.

A rival has `name`, `ways(job)` (settings worth trying; the fastest counts) and `run(job, ids, new_tokens, way)`, which
returns wall and CPU seconds without the load of the model. Libraries are imported by the rival that needs them.
"""
import ctypes
import os
import time


class Transformers:
    """Hugging Face transformers in float32, left-padded batches; a way is the batch size."""

    def __init__(self, model, threads):
        import torch
        import transformers
        torch.set_num_threads(threads)
        transformers.utils.logging.set_verbosity_error()
        self.torch, self.name = torch, f"transformers {transformers.__version__}"
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()

    def ways(self, job):
        return {"gsm8k": ["batch 16", "batch 32"], "samples": ["batch 16"], "decode1": ["batch 1"], "decode32": ["batch 32"],
                "prefill": ["batch 1", "batch 4"]}[job]

    def run(self, job, ids, new_tokens, way):
        torch, batch = self.torch, int(way.split()[1])
        flags = {"max_new_tokens": new_tokens, "min_new_tokens": new_tokens, "do_sample": False, "pad_token_id": 0}
        if job == "samples":
            flags.update(do_sample=True, temperature=0.6, top_k=0, top_p=1.0)
        wall, cpu = time.monotonic(), time.process_time()
        with torch.no_grad():
            for first in range(0, len(ids), batch):
                rows = ids[first:first + batch]
                longest = max(map(len, rows))
                padded = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
                mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
                out = self.model.generate(padded, attention_mask=mask, **flags)
                assert out.shape[1] == longest + new_tokens
        return time.monotonic() - wall, time.process_time() - cpu


class LlamaCpp:
    """llama.cpp through its C interface: what the prompts share is computed once and shared by the sequences, the rest of
    the prompts in full batches, then all sequences a step. Always the highest logit: sampling would only cost it more. A
    way is flash attention on or off, the tokens of a computed batch, and one cache for all sequences or a stream each."""

    def __init__(self, gguf, threads):
        import llama_cpp
        import numpy
        self.np, self.lib, self.threads = numpy, llama_cpp, threads
        self.name = f"llama.cpp (llama-cpp-python {llama_cpp.__version__}), {os.path.basename(gguf)}"
        silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
        self.silent = silent  # llama.cpp keeps the pointer
        llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(gguf.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"{gguf}: llama.cpp cannot load it")
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def ways(self, job):
        if job == "decode1":
            return ["flash, 512, unified", "plain, 512, unified"]
        return ["flash, 512, unified", "flash, 512, streams"]

    def context(self, ids, new_tokens, way):
        flash, batch, cache = way.split(", ")
        streams = cache == "streams"
        longest = max(map(len, ids)) + new_tokens
        cells = len(ids) * longest if streams else sum(map(len, ids)) + len(ids) * new_tokens
        params = self.lib.llama_context_default_params()
        unit = 256 * len(ids) if streams else 256  # a stream's cells are a multiple of 256
        params.n_ctx = (cells + 2 * unit - 1) // unit * unit
        params.n_batch = params.n_ubatch = int(batch)
        params.n_seq_max = max(len(ids), 1)
        params.n_threads = params.n_threads_batch = self.threads
        params.flash_attn_type = 1 if flash == "flash" else 0
        params.kv_unified, params.no_perf = not streams, True
        return self.lib.llama_init_from_model(self.model, params)

    def decode(self, context, tokens):
        """tokens: (id, position, sequence, whether its logits are wanted); returns the best next id of each wanted."""
        batch = self.lib.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for at, (token, position, sequence, wanted) in enumerate(tokens):
            batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, position, 1
            batch.seq_id[at][0], batch.logits[at] = sequence, wanted
        if self.lib.llama_decode(context, batch) != 0:
            raise SystemExit("llama.cpp: llama_decode failed")
        best = [int(self.np.ctypeslib.as_array(self.lib.llama_get_logits_ith(context, at), (self.vocab,)).argmax())
                for at, (_, _, _, wanted) in enumerate(tokens) if wanted]
        self.lib.llama_batch_free(batch)
        return best

    def run(self, job, ids, new_tokens, way):
        context, size = self.context(ids, new_tokens, way), int(way.split(", ")[1])
        memory = self.lib.llama_get_memory(context)
        wall, cpu = time.monotonic(), time.process_time()
        shared = len(os.path.commonprefix(ids)) if len(ids) > 1 else 0
        shared = min(shared, min(map(len, ids)) - 1)  # the last token of a prompt gives its logits
        prompt = [(token, at, 0, False) for at, token in enumerate(ids[0][:shared])]
        for first in range(0, len(prompt), size):
            self.decode(context, prompt[first:first + size])
        for sequence in range(1, len(ids) if shared else 0):
            self.lib.llama_memory_seq_cp(memory, 0, sequence, -1, -1)  # all that is there: streams copy nothing less
        rest = [(token, shared + at, sequence, shared + at == len(row) - 1)
                for sequence, row in enumerate(ids) for at, token in enumerate(row[shared:])]
        newest = []
        for first in range(0, len(rest), size):
            newest += self.decode(context, rest[first:first + size])
        for step in range(new_tokens - 1):
            newest = self.decode(context, [(token, len(row) + step, sequence, True)
                                           for sequence, (row, token) in enumerate(zip(ids, newest))])
        assert len(newest) == len(ids)
        seconds = time.monotonic() - wall, time.process_time() - cpu
        self.lib.llama_free(context)
        return seconds
