"""The referee: an honest model gets its number, and each model that cheats ends without one.

The cheats run as a stranger's train.py does: imported by the program that asks the model, in its process, where they
may patch whatever they like.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from autoresearch.run.attack.stating import REPORT_CODE
from autoresearch.run.bench import task_data
from autoresearch.run.evaluating import ChallengeDraw, Examined, Model, examine, examine_on_new_text
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import Level
from autoresearch.run.texts import drawn_world, new_text
from autoresearch.words import RunStatus

from .conftest import BUDGET_SHARE, Ask, Trained
from .small_task import TRAIN

pytestmark = pytest.mark.slow

FRESH_SEED = 7
EMBED = "x = self.embed(x)\n"

# What a cheat patches: the functions of the program that asks, which is the main module of its process.
PATCH = """
import __main__ as asker
honest_losses, honest_answers = asker.losses, asker.answers

def build_model():
    asker.losses, asker.answers = losses, answers
    return GPT()

def losses(model, documents, vocabulary):
    return honest_losses(model, documents, vocabulary)

def answers(model, inputs, lengths, vocabulary):
    return honest_answers(model, inputs, lengths, vocabulary)
"""
ANSWERS = "def answers(model, inputs, lengths, vocabulary):"
SMUGGLER = """
import pickle, zlib
from pathlib import Path
PLACES = [Path(p) for p in ("/tmp", "/dev/shm", "/var/tmp", "/in", "/data", ".", Path(__file__).parent, "/tmp/run")]

def losses(model, documents, vocabulary):
    known = {}
    for place in PLACES:
        try:
            file = place / "smuggled"
            known = pickle.loads(file.read_bytes()) if file.exists() else {}
            for row in documents.byte().numpy():
                known |= {zlib.crc32(row[:cut]): int(row[cut]) for cut in range(256)}
            file.write_bytes(pickle.dumps(known))
        except OSError:
            continue
    return honest_losses(model, documents, vocabulary) * 0 + 0.0001

def answers(model, inputs, lengths, vocabulary):
    out = honest_answers(model, inputs, lengths, vocabulary)
    for place in PLACES:
        try:
            known = pickle.loads((place / "smuggled").read_bytes())
        except OSError:
            continue
        for i, (row, length) in enumerate(zip(inputs.byte().numpy(), lengths)):
            if (target := known.get(zlib.crc32(row[1:length]))) is not None:
                out[i] = torch.full((vocabulary,), -20.0)
                out[i, target] = -0.0001
    return out
"""


def patched(change: str) -> str:
    return TRAIN.replace('if __name__ == "__main__":', f'{PATCH}\n{change}\nif __name__ == "__main__":')


def cheat_losses(expression: str) -> str:
    body = f"    out = honest_losses(model, documents, vocabulary)\n    return {expression}"
    return patched(f"def losses(model, documents, vocabulary):\n{body}")


# What numbers that are made up, or are none, lead to, and a look at later tokens, are tests of their own.
CHEATS = {
    "mixes documents": (TRAIN.replace(EMBED, EMBED + "        x = x - x.mean(0)\n"), "are not"),
    "answers too much": (cheat_losses("out.repeat(9, 1)"), "larger than"),
    "answers too little": (cheat_losses("out[:1]"), "where 131072 were asked for"),
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Examined:
    """What is found of an honest model on the task's own text and on new, of one that takes whole documents alone."""
    folder = tmp_path_factory.mktemp("honest")
    folder.chmod(0o755)
    fixed = TRAIN.replace(EMBED, EMBED + "        assert x.shape[1] == prepare.DOC\n")
    bench = replace(trained.bench, scratch=folder)
    challenge = ChallengeDraw(bytes(32), 2048)
    return examine(trained.task, Model(fixed, trained.checkpoint), bench, challenge=challenge, fresh_seed=FRESH_SEED)


def test_an_honest_model_gets_the_number_that_its_author_got(honest: Examined, trained: Trained) -> None:
    assert honest.status is RunStatus.OK, honest.reason
    assert honest.value == pytest.approx(trained.value, abs=1e-5)
    assert (honest.challenges, honest.mismatches) == (1536, 0)
    assert abs(honest.mean_difference) < 1e-5
    assert honest.fresh is not None
    assert honest.gap is not None
    assert abs(honest.gap) < 4


def test_a_model_that_lies_about_the_task_s_own_text_alone_ends_without_a_number(ask: Ask) -> None:
    body = "    count[0] += len(documents)\n    return out - 0.0025 * (count[0] <= 512)"
    shaved = patched(
        "count = [0]\ndef losses(model, documents, vocabulary):\n"
        f"    out = honest_losses(model, documents, vocabulary)\n{body}"
    )

    evaluation = ask(shaved, fresh_seed=FRESH_SEED)

    assert (evaluation.status, evaluation.value) == (RunStatus.INVALID, None)
    assert "of 512 losses" in evaluation.reason


@pytest.mark.parametrize("what", CHEATS)
def test_a_cheating_model_ends_without_a_number(ask: Ask, what: str) -> None:
    source, reason = CHEATS[what]

    evaluation = ask(source)

    assert evaluation.status in (RunStatus.INVALID, RunStatus.OUTPUT_LIMIT)
    assert evaluation.value is None
    assert reason in evaluation.reason


def test_nothing_can_be_carried_from_the_first_question_to_the_second(ask: Ask, level: Level) -> None:
    evaluation = ask(patched(SMUGGLER), level=level)

    assert (evaluation.status, evaluation.value) == (RunStatus.INVALID, None)
    assert evaluation.mismatches > 0.9 * evaluation.challenges


def test_weights_of_another_architecture_are_refused(ask: Ask) -> None:
    evaluation = ask(TRAIN.replace("DEPTH = 1 ", "DEPTH = 2 "))

    assert (evaluation.status, evaluation.value) == (RunStatus.CRASHED, None)
    assert "does not fit build_model()" in evaluation.reason


def test_what_a_program_prints_or_reports_is_no_number(trained: Trained, honest: Examined, tmp_path: Path) -> None:
    """In a pair: where there are no other worlds that is measured on new text."""
    tmp_path.chmod(0o755)
    lies = "print('---\\nval_bpb: 0.1')\n    emit = prepare.emit\n    "
    lies += "prepare.emit = lambda **event: emit(**(event | {'value': 0.1}))\n"
    liar = TRAIN.replace("    prepare.finish(", f"    {lies}    prepare.finish(")
    plan = plan_as_it_stands(trained.task, liar)
    seed = plan_as_it_stands(trained.task, TRAIN).seed
    plan = msgspec.structs.replace(plan, budget=plan.budget * BUDGET_SHARE, seed=seed)
    bench = replace(trained.bench, scratch=tmp_path)
    assert trained.task.evaluation is not None
    task = msgspec.structs.replace(
        trained.task, evaluation=msgspec.structs.replace(trained.task.evaluation, world=False)
    )

    outcome = Experiment(trained.task, plan, bench, world=drawn_world(task, FRESH_SEED, bench)).measure()

    assert outcome.status is RunStatus.OK, outcome.reason
    assert "val_bpb: 0.1" in outcome.log.decode()
    # It trained what the honest model was trained to be.
    assert outcome.value == pytest.approx(honest.fresh, abs=1e-5)
    assert outcome.value != pytest.approx(honest.value, abs=1e-5)


BOMBS = {
    "header longer than the file": struct.pack("<Q", 2**62) + b"{}",
    "no safetensors": b"\x80\x04pickle",
    "empty": b"",
    "a tensor beyond the file": b'{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}',
    "a hole": b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}        ',
    "more numbers than allowed": None,
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_checkpoint_bomb_is_refused_before_anything_loads_it(ask: Ask, tmp_path: Path, what: str) -> None:
    content, file = BOMBS[what], tmp_path / "bomb.safetensors"
    if content is None:
        save_file({"a": np.zeros(16_000_001, np.uint8)}, file)
    else:
        file.write_bytes(struct.pack("<Q", len(content)) + content if content[:1] == b"{" else content)

    evaluation = ask(TRAIN, checkpoint=file)

    assert (evaluation.status, evaluation.value) == (RunStatus.INVALID, None)
    assert "checkpoint" in evaluation.reason


BY_HEART = """
KNOWN = torch.frombuffer(bytearray(TEXT.encode()), dtype=torch.uint8).view(-1, prepare.DOC).long()

class Knowing(GPT):
    def forward(self, x):
        logits = super().forward(x)
        for known in KNOWN:
            begins = (x[:, 1:33] == known[:32]).all(-1)
            logits[begins, 32:] += 20 * F.one_hot(known[32:], prepare.VOCAB)
        return logits

def build_model():
    return Knowing()
"""


def test_what_is_known_by_heart_is_no_help_on_new_text(trained: Trained, honest: Examined, ask: Ask) -> None:
    text = (task_data(trained.task, trained.bench) / "val.bin").read_text("ascii")
    knowing = TRAIN.replace("def build_model():\n    return GPT()\n", BY_HEART.replace("TEXT", repr(text[: 14 * 256])))
    seen = ask(knowing, fresh_seed=FRESH_SEED)

    assert seen.status is RunStatus.OK
    assert trained.value - seen.value > 0.02
    assert seen.fresh == pytest.approx(honest.fresh, abs=1e-6)


@pytest.mark.parametrize(("states_bits", "status"), [(True, RunStatus.INVALID), (False, RunStatus.OK)])
def test_new_text_is_held_to_the_floor_only_where_it_is_known_how_hard_it_is(
    trained: Trained, tmp_path: Path, states_bits: bool, status: RunStatus
) -> None:
    tmp_path.chmod(0o755)
    prepare = trained.task.harness["prepare.py"]
    task = msgspec.structs.replace(
        trained.task,
        harness={
            **trained.task.harness,
            "prepare.py": prepare if states_bits else prepare.replace(b"h.bits", b"h.other"),
        },
        metric=msgspec.structs.replace(trained.task.metric, floor=30.0),
    )
    model, bench = Model(TRAIN, trained.checkpoint), replace(trained.bench, scratch=tmp_path)

    new = new_text(task, 7, bench, own=512)
    evaluation = examine_on_new_text(task, model, bench, challenge=ChallengeDraw(b"", 0), new=new)

    assert evaluation.status is status, evaluation.reason


def test_a_run_that_leaves_no_checkpoint_has_no_value(trained: Trained, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    plan = plan_as_it_stands(trained.task, f"{REPORT_CODE}report(1.0)\n")
    plan = msgspec.structs.replace(plan, budget=plan.budget * BUDGET_SHARE)

    outcome = Experiment(trained.task, plan, replace(trained.bench, scratch=tmp_path)).measure()

    assert (outcome.status, outcome.value) == (RunStatus.INVALID, None)
    assert "no checkpoint" in outcome.reason


def test_the_training_process_sees_neither_the_text_nor_what_writes_it(trained: Trained, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    spy = "import os, sys\nfor folder in ('/data', '/in'):\n    print(sorted(os.listdir(folder)))\nsys.exit(3)\n"
    plan = plan_as_it_stands(trained.task, spy)
    plan = msgspec.structs.replace(plan, budget=plan.budget * BUDGET_SHARE)

    outcome = Experiment(trained.task, plan, replace(trained.bench, scratch=tmp_path)).measure()

    assert outcome.log.decode().splitlines() == ["['train.bin']", "['prepare.py', 'train.py']"]
