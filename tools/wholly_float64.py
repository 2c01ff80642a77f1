"""transformers in float64 throughout: its islands of float32 (norms, softmax, RoPE) would cap what a run can prove."""
import contextlib

import torch


@contextlib.contextmanager
def wholly_float64():
    saved = torch.float32, torch.float, torch.Tensor.float
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved
        torch.set_default_dtype(saved[0])


def float64_twin(model):
    """The same model with every weight widened; run it inside wholly_float64()."""
    with wholly_float64():
        twin = type(model)(model.config).eval().double()
        twin.load_state_dict({name: value.to(torch.float64) for name, value in model.state_dict().items()})
    return twin
