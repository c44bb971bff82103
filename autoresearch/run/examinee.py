"""The program that the referee starts in the sandbox: builds the model, loads its weights, answers one question.

It shares its process with a stranger's train.py, so nothing it says is believed before it is checked. It reads
``question.json`` and ``weights.safetensors`` beside itself, then the tokens on descriptor 0, and writes float32 to the
checkpoint channel. Once it has the tokens it opens no file and starts no process any more. It knows nothing of this
package: torch, safetensors and the standard library are all it needs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

gc.disable()  # nothing of what an import makes is garbage, and looking for it costs a tenth of the import
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812
from safetensors.torch import load_file  # noqa: E402
from torch import Tensor, nn  # noqa: E402

gc.enable()
HERE = Path(__file__).parent
# Numbers in one batch of logits.
_LARGEST_BATCH = 1 << 24


def tokens(documents: int, length: int, vocabulary: int) -> Tensor:
    """What is asked about, int64 of shape (documents, length)."""
    kind = torch.uint8 if vocabulary <= 256 else torch.uint16
    with os.fdopen(0, "rb", closefd=False) as stdin:
        os.write(0, b"?")
        return torch.frombuffer(bytearray(stdin.read()), dtype=kind).view(documents, length).long()


def model(device: str) -> nn.Module:
    """The stranger's model with the weights of the checkpoint."""
    import train  # type: ignore[import-not-found]  # the stranger's file, beside this one

    built: nn.Module = train.build_model().to(device)
    try:
        built.load_state_dict(load_file(HERE / "weights.safetensors", device=device), strict=True)
    except (RuntimeError, KeyError, ValueError) as error:
        sys.exit(f"the checkpoint does not fit build_model(): {' '.join(str(error).split())[:300]}")
    return built.eval()


def predictions(built: nn.Module, inputs: Tensor, vocabulary: int) -> Tensor:
    """Natural logarithms of probabilities, float32 of shape (documents, positions, vocabulary)."""
    logits = built(inputs)
    if not isinstance(logits, torch.Tensor) or tuple(logits.shape) != (*inputs.shape, vocabulary):
        sys.exit(f"the model must return logits of shape {(*inputs.shape, vocabulary)}")
    return F.log_softmax(logits.float(), dim=-1)


def losses(built: nn.Module, documents: Tensor, vocabulary: int) -> Tensor:
    """Nats for each token of documents that are seen whole, float32 of their shape."""
    inputs = F.pad(documents[:, :-1], (1, 0))
    return -predictions(built, inputs, vocabulary).gather(-1, documents[..., None])[..., 0]


def answers(built: nn.Module, inputs: Tensor, lengths: Tensor, vocabulary: int) -> Tensor:
    """What is predicted after the first ``lengths`` tokens of each row: float32 of shape (rows, vocabulary).

    The rows stay as long as a document is, since a model may be made for that length alone.
    """
    return predictions(built, inputs, vocabulary)[torch.arange(len(inputs), device=inputs.device), lengths - 1]


def main() -> None:
    """Answer the question and end."""
    question = json.loads((HERE / "question.json").read_text())
    count, length, vocabulary = question["documents"], question["length"], question["vocabulary"]
    device = os.environ["AUTORESEARCH_DEVICE"]
    torch.set_num_threads(int(os.environ["AUTORESEARCH_THREADS"]))
    if device == "cpu":  # elsewhere some operations have no such form, and the task's tolerance covers the difference
        torch.set_deterministic_debug_mode("error")  # as use_deterministic_algorithms, which loads a compiler besides
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    built = model(device)
    size = min(32, max(1, _LARGEST_BATCH // (length * vocabulary)))
    with torch.inference_mode():  # what is loaded with the first use is loaded now, while that is possible
        predictions(built, torch.zeros((min(size, count), length), dtype=torch.int64, device=device), vocabulary)
    torch.manual_seed(0)
    inputs = tokens(count, length, vocabulary).to(device)
    with torch.inference_mode(), os.fdopen(int(os.environ["AUTORESEARCH_CHECKPOINT_FD"]), "wb") as out:
        if "lengths" in question:
            lengths = torch.tensor(question["lengths"], device=device)
            for rows, cut in zip(torch.split(inputs, size), torch.split(lengths, size), strict=True):
                out.write(answers(built, rows, cut, vocabulary).float().cpu().numpy().tobytes())
        else:
            for rows in torch.split(inputs, size):
                out.write(losses(built, rows, vocabulary).float().cpu().numpy().tobytes())


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
    sys.stdout.flush()
    os._exit(0)  # taking torch down costs a quarter of a second, and the answer is written
