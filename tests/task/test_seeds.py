"""What sets a seed and what does not, in the forms of real programs; and what follows for the names of programs."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.task.program import join_files, source_digest, split_program
from autoresearch.task.seeds import (
    fixes_seed,
    hides_seed,
    reseeded,
    reseeded_line,
    seedless,
    seedless_digest,
    stated_seedless,
)

SEEDS = [
    "SEED = 1337",
    "random_seed = 3",
    "rngSeed = 3",
    "RANDOM_STATE = 0",
    "SEED_1 = 4",
    "PYTHONHASHSEED = 4",
    "seed = 0x2A",
    "seed = 1_000",
    "SEEDS = [1, 2, 3]",
    "seed, lr = 3, 0.1",
    "seed: int = 3",
    "seed: int = field(default=3)",
    "random.seed(0)",
    "np.random.seed(0)",
    "torch.manual_seed(1)",
    "torch.cuda.manual_seed_all(1)",
    "tf.random.set_seed(2)",
    "jax.random.PRNGKey(0)",
    "jax.random.key(0)",
    "np.random.default_rng(7)",
    "np.random.RandomState(3)",
    "torch.Generator().manual_seed(3)",
    "pl.seed_everything(1, workers=True)",
    "set_seed(42)",
    "random.Random(5)",
    "env.reset(seed=1)",
    "f(random_state=0)",
    'parser.add_argument("-s", "--seed", type=int, default=1)',
    'parser.add_argument("--random-seed", default=1)',
    'x = {"seed": 3}',
    'os.environ["PYTHONHASHSEED"] = "0"',
    'os.environ.get("SEED", "0")',
    'cfg.get("seed", 3)',
    'subprocess.run(["python", "x.py", "--seed", "3"])',
    'cmd = "python x.py --seed 3"',
    'cmd = "python x.py seed=3"',
    "self.seed = 3",
    "args.seed = 3",
    "def f(a, seed=3): pass",
    "def f(a, *, random_state=3): pass",
    'flags.DEFINE_integer("seed", 3, "help")',
    "torch.manual_seed(1337 + offset)",
    "seed = args.seed or 3",
    "for seed in (1, 2): pass",
    "xs = [f(seed) for seed in [1, 2]]",
    "seed: int = typer.Option(42)",
    "random.seed(a=3, seed=3)",
    "np.random.SeedSequence(3)",
    "np.random.Generator(np.random.PCG64(3))",
    "trainer.set_global_seeds(3)",
    "seed = None",
    "seed = -1",
]

OTHERS = [
    "n_seeds = 3",
    "num_seeds = 3",
    "seedling_height = 3",
    "SEEDLING_RATE = 3",
    "seed_dataset = 3",
    "seed_length = 3",
    'seed = int(os.environ["AUTORESEARCH_SEED"])',
    "seed = int(sys.argv[1])",
    "random.random(5)",
    "np.random.rand(5)",
    "np.random.random(5)",
    "speed = 3",
    "use_seed = 1",
    "seed_dataset(3)",
    "seeds = 3",
    "deterministic = 1",
    "np.random.seed(seed)",
    "random_states = 3",
    "state = 3",
    "key(3)",
    "seed = 0.5",
    "seeded = 3",
    "proceed = 3",
    "seed = data[3]",
    "make_blobs(seed_points=3)",
    'x = f"seed={3}"',
    'print("seed 3")',
    "set_seed(args.seed, 3)",
    "exceed_at = 3",
    'seed_text = "3"',
    "max_seed = 3",
    "split_seedlings(3)",
    "torch.randn(3)",
    'seed = os.environ.get("AUTORESEARCH_SEED", 0)',
]

SEED_LINES = [
    "seed: 3",
    '  "seed": 3,',
    "seed = 3",
    "random_state=0",
    "seeds: [1, 2, 3]",
    "int seed = 42;",
    "constexpr unsigned SEED{42};",
    "const unsigned long SEED = 42UL;",
    "#define SEED 7",
    "srand(7);",
    "std::mt19937 rng(42);",
    "std::mt19937_64 rng{42};",
    "mt19937 gen = mt19937(7);",
    "let seed: u64 = 42;",
    "StdRng::seed_from_u64(42)",
    "rand.Seed(1)",
    "rand.NewSource(42)",
    "new Random(5);",
    "set.seed(42)",
    "Random.seed!(42)",
    "curand_init(1234, i, 0, &s);",
    "python x.py --seed 3",
    "seed_everything: 42",
    "seed: null",
    "rng.seed(3);",
    "training.seed = 3",
    "seed: 0x2A",
    '"seed" : 3',
]

OTHER_LINES = [
    "n_seeds: 3",
    "seed_dataset: 3",
    "seedling_rate: 3",
    "speed = 3",
    "seed: 0.5",
    "if (seed == 3)",
    "srand(time(NULL));",
    "rng(seed)",
    "rand() % 3",
    "seeds: 3",
    "seed_rows = 4",
    "std::vector<int> rng(42);",
    "proceed: 3",
    "dataset: seed",
]


@pytest.mark.parametrize("line", SEEDS)
def test_what_only_sets_a_seed_has_one_form(line: str) -> None:
    """Another seed in the same place is the same program; one more line is another."""
    bare = seedless(line)
    assert bare != line
    assert seedless(bare) == bare
    ast.parse(bare)
    assert seedless_digest(reseeded(line, 3)) == seedless_digest(line) == stated_seedless(line)
    assert seedless_digest(f"{line}\nLR = 3") != seedless_digest(line)


@pytest.mark.parametrize("line", OTHERS)
def test_what_sets_no_seed_stays(line: str) -> None:
    assert (seedless(line), reseeded(line, 5), stated_seedless(line)) == (line, line, None)


@pytest.mark.parametrize("line", SEED_LINES)
def test_seeds_of_other_files_are_seen(line: str) -> None:
    program = join_files({"settings.yaml": f"a: 1\n{line}\n"})
    bare = seedless(program)
    assert bare != program
    assert seedless(bare) == bare
    assert split_program(bare)["settings.yaml"].startswith("a: 1\n")


@pytest.mark.parametrize("line", OTHER_LINES)
def test_other_lines_of_other_files_stay(line: str) -> None:
    program = join_files({"main.cpp": f"{line}\n"})
    assert seedless(program) == program


def test_a_replicate_has_other_seeds_and_nothing_else() -> None:
    program = "import random\nSEEDS = [1, 2]\nLR = 0.1  # seed 3\nrandom.seed(7)\nseed = None\n"
    first, second = reseeded(program, 1), reseeded(program, 2)
    assert reseeded(program, 0) == program
    assert len({program, first, second}) == 3
    assert "LR = 0.1  # seed 3" in first
    assert "seed = None" in first
    assert len(set(ast.literal_eval(first.splitlines()[1].partition(" = ")[2]))) == 2


def test_a_command_line_has_another_seed() -> None:
    assert reseeded_line("python train.py --seed 3 --n-seeds 4", 1) == "python train.py --seed 104732 --n-seeds 4"
    assert reseeded_line("python train.py --lr 3", 1) == "python train.py --lr 3"


def test_a_seed_that_can_not_be_seen_is_known_to_be_there() -> None:
    assert fixes_seed("train.py", "SEED = 3")
    assert not fixes_seed("train.py", "seed = None")
    assert hides_seed("train.py", "import random\nrandom.seed(number())")
    assert not hides_seed("train.py", "import os, random\nrandom.seed(int(os.environ['AUTORESEARCH_SEED']))")
    assert not hides_seed("train.py", "LR = 3")


@pytest.mark.parametrize(
    "text", ["x = (", "\x00", "==== autoresearch file: x\n", "seed = " + "9" * 5000, "é" * 9000 + "=1"]
)
def test_what_is_no_program_stays(text: str) -> None:
    assert seedless(text) == text
    assert reseeded(text, 2) == text


LINES = st.sampled_from([*SEEDS, *OTHERS, "LR = 0.1", "LR = 0.2", "x = 'é'", "def g():\n    return 1"])


@given(st.lists(LINES, max_size=6), st.lists(LINES, max_size=6), st.integers(1, 9))
def test_programs_are_one_only_where_they_differ_in_nothing_but_seeds(
    lines: list[str], other_lines: list[str], number: int
) -> None:
    first, second = "\n".join(lines), "\n".join(other_lines)
    bare = seedless(first)
    assert seedless(bare) == bare
    assert seedless_digest(reseeded(first, number)) == seedless_digest(first)
    alike = source_digest(seedless(first)) == source_digest(seedless(second))
    assert (seedless_digest(first) == seedless_digest(second)) == alike
    if alike and "LR = 0.1" in lines:
        assert "LR = 0.1" in other_lines
