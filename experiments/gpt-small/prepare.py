"""prepare.py: the fixed part of the task. Makes the data, counts the budget, ends the run. Nobody edits it.

It is the harness of the task grammar, measure.py, with other numbers: documents of 1,024 bytes, a batch that is given
(size.py), and work that is FLOPs alone, as a graphics card pays for them. `python prepare.py`, `fresh` and `world` make
the same files as there, in the same languages; the text takes about forty seconds to write. train.py imports the rest:

    setup()                        seed, threads, determinism; returns the device
    compiled(model)                the model for training: compiled on a card where the run is long enough for it
    Budget().batches()             training batches until the budget is spent
    finish(model, budget)          checks the model and hands it to the referee, who measures it
    VOCAB, DOC                     number of byte values, bytes in a document

Work is counted by running a random share of the steps operation by operation, also those of a compiled model. So all
that a program does between two batches is counted, an optimizer's matrix products too.
"""
import os, sys

import measure, size

measure.DOC = DOC = 1024
try:
    import grammar
    grammar.DOC = DOC
except ImportError:              # withheld from runs: it could write the text
    pass
VOCAB = measure.VOCAB
measure.FILES, measure.FRESH, measure.FLOOR = size.FILES, size.FRESH, size.FLOOR
if "AUTORESEARCH_BUDGET" not in os.environ:
    measure.WORK = size.WORK
measure.OPERATION_WORK = measure.SCORE_WORK = 0
measure.METERED = 1 / 32         # an operation at a time is slow on a card
measure.MAX_PARAMS = 15_000_000
COMPILED_FROM = 1e16             # FLOPs: compiling takes a minute, which a shorter run does not earn back

setup, finish = measure.setup, measure.finish

def compiled(model):
    """What to call in training in the model's place; the weights are the model's own."""
    return measure.torch.compile(model) if "cuda" in measure.DEVICE and measure.WORK >= COMPILED_FROM else model

class Meter(measure.Meter):
    """Sees each operation: what is compiled runs uncompiled meanwhile."""
    def __enter__(self):
        self.stance = measure.torch.compiler.set_stance("force_eager")
        self.stance.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.stance.__exit__(*error)

measure.Meter = Meter

class Budget(measure.Budget):
    """Hands out the training data and counts the FLOPs until the budget is spent."""
    def batches(self):
        """Yields (inputs, targets), int64 of shape (BATCH_DOCS of size.py, DOC), until the budget is spent."""
        return super().batches(size.BATCH_DOCS)

    def metrics(self):
        """What stands beside the value: also the most memory of a card that tensors took."""
        on_card = "cuda" in measure.DEVICE
        peak = {"card_memory_mib": measure.torch.cuda.max_memory_allocated() / 2**20} if on_card else {}
        return super().metrics() | peak

if __name__ == "__main__":
    make = {"fresh": measure.make_fresh, "world": measure.make_world}.get("".join(sys.argv[1:]), measure.make_data)
    make(measure.DATA)
