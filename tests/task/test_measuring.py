"""Which edits of a program touch what it prints and measures, and which only change what it learns."""

import pytest

from autoresearch.task.measuring import NOTHING, measuring_digest
from autoresearch.task.program import join_files

TORCH = '''\
"""A small network on points."""
import torch
import torch.nn.functional as F

HIDDEN = 32
LR = 0.01
STEPS = 200
EVAL_BATCH = 64

torch.manual_seed(1)
points = torch.randn(400, 2)
labels = (points[:, 0] * points[:, 1] > 0).long()
x_train, y_train = points[:300], labels[:300]
x_val, y_val = points[300:], labels[300:]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, HIDDEN)
        self.last = torch.nn.Linear(HIDDEN, 2)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


def evaluate(model, x, y):
    """The share that is right."""
    model.eval()
    right = 0
    with torch.no_grad():
        for start in range(0, len(x), EVAL_BATCH):
            logits = model(x[start : start + EVAL_BATCH])
            right += (logits.argmax(1) == y[start : start + EVAL_BATCH]).sum().item()
    return right / len(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
for step in range(STEPS):
    picked = torch.randint(0, len(x_train), (32,))
    loss = F.cross_entropy(model(x_train[picked]), y_train[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f}")
val_accuracy = evaluate(model, x_val, y_val)
print(f"step {STEPS} loss {loss.item():.3f} val_accuracy: {val_accuracy:.4f}")
'''


def edited(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


HARMLESS = {
    "an optimiser": [("torch.optim.SGD(model.parameters(), lr=LR)", "torch.optim.AdamW(model.parameters(), lr=LR)")],
    "a setting": [("LR = 0.01", "LR = 0.03"), ("HIDDEN = 32", "HIDDEN = 128")],
    "a larger network": [("F.relu(self.first(x))", "F.gelu(self.first(x) * 2)")],
    "augmentation of the training data": [
        ("    loss = F.cross", "    x_train = x_train + 0.01 * torch.randn_like(x_train)\n    loss = F.cross")
    ],
    "label smoothing in training": [("y_train[picked])\n", "y_train[picked], label_smoothing=0.1)\n")],
    "a training loop in a function": [
        (
            "model = Net()\n",
            "def train(model, optimizer):\n    for _ in range(9):\n        optimizer.step()\n\n\nmodel = Net()\n",
        )
    ],
    "renamed variables": [("val_accuracy = ", "final = "), ("{val_accuracy:", "{final:"), ("right", "hits")],
    "comments, blanks and docstrings": [
        ("    model.eval()\n", "    model.eval()  # no dropout\n\n"),
        ("The share", "How much"),
    ],
    "a seed": [("manual_seed(1)", "manual_seed(7)")],
    "another line that is printed": [('loss.item():.3f}")\nval', 'loss.item():.5f}")\nprint("done")\nval')],
    "digits of the number": [("val_accuracy:.4f", "val_accuracy:.6f")],
    "more before it in the line": [("step {STEPS} loss", "step {STEPS} lr {LR} loss")],
    "inputs that are normalised": [
        ("\n\nclass Net", "\nx_train = F.normalize(x_train)\nx_val = F.normalize(x_val)\n\n\nclass Net")
    ],
    "a schedule": [
        (
            "    optimizer.step()\n",
            "    optimizer.param_groups[0]['lr'] = LR * (1 - step / STEPS)\n    optimizer.step()\n",
        )
    ],
}
TOUCHING = {
    "the number typed": [("{val_accuracy:.4f}", "0.9999")],
    "a factor in the line": [("{val_accuracy:", "{val_accuracy * 1.2:")],
    "a second line": [('val_accuracy:.4f}")\n', "val_accuracy:.4f}\")\nprint('val_accuracy: 1.0')\n")],
    "the variable set again": [("x_val, y_val)\nprint", "x_val, y_val)\nval_accuracy = 0.99\nprint")],
    "the best of several": [("val_accuracy = evaluate(", "val_accuracy = max(0.98, 0.5) + evaluate(")],
    "the function that evaluates": [("return right / len(x)", "return right / len(x) + 0.1")],
    "a comparison in it": [("== y[start", "!= y[start")],
    "the training data in place of the held-out": [
        ("evaluate(model, x_val, y_val)", "evaluate(model, x_train, y_train)")
    ],
    "the split": [("points[300:], labels[300:]", "points[:300], labels[:300]")],
    "fewer points": [("labels[300:]\n", "labels[300:]\nx_val, y_val = x_val[:1], y_val[:1]\n")],
    "labels that the model gave": [("val_accuracy = eval", "y_val = model(x_val).argmax(1)\nval_accuracy = eval")],
    "another function with that name": [("model = Net()\n", "evaluate = lambda *_: 1.0\nmodel = Net()\n")],
    "another metric under its name": [("{val_accuracy:.4f}", "{1 - loss.item():.4f}")],
    "no line at all": [(" val_accuracy: {val_accuracy:.4f}", "")],
}


@pytest.mark.parametrize("changes", HARMLESS.values(), ids=HARMLESS)
def test_edits_of_what_is_learned_do_not_touch_the_measuring(changes):
    assert measuring_digest(edited(TORCH, *changes), "val_accuracy") == measuring_digest(TORCH, "val_accuracy")


@pytest.mark.parametrize("changes", TOUCHING.values(), ids=TOUCHING)
def test_edits_of_what_is_printed_or_measured_do(changes):
    assert measuring_digest(edited(TORCH, *changes), "val_accuracy") != measuring_digest(TORCH, "val_accuracy")


SKLEARN = """\
import json
import logging
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    clf = MLPClassifier(hidden_layer_sizes=(64,), alpha=0.001)
    clf.fit(X_train, y_train)
    pred = clf.predict(X_test)
    acc = accuracy_score(y_test, pred)
    return acc

if __name__ == "__main__":
    acc = main()
    PRINT
"""
WAYS = {
    "print": 'print("accuracy:", round(acc, 4))',
    "f-string": 'print(f"Accuracy = {acc:.2%}")',
    "percent": 'print("accuracy: %.3f" % acc)',
    "format": 'print("accuracy: {:.3f}".format(acc))',
    "sum of texts": 'print("accuracy: " + str(acc))',
    "json": 'print(json.dumps({"accuracy": acc, "alpha": 1}))',
    "dict": 'results = {"accuracy": acc}\n    print(json.dumps(results))',
    "item": 'results = {}\n    results["accuracy"] = acc\n    print(results)',
    "logger": 'logging.info("accuracy=%.3f", acc)',
    "own function": 'show("accuracy", acc)',
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_to_print_is_followed_to_the_data(way):
    text = SKLEARN.replace("PRINT", way).replace("def main", "def show(name, v):\n    print(name, v)\n\ndef main", 1)
    usual = measuring_digest(text, "accuracy")
    assert usual != NOTHING
    for harmless in (
        [("(64,)", "(128, 64)")],
        [("random_state=0", "random_state=3")],
        [("    clf.fit", "    X_train = X_train * 2\n    clf.fit")],
        [("clf", "model")],
    ):
        assert measuring_digest(edited(text, *harmless), "accuracy") == usual, harmless
    for touching in (
        [("    acc = main()", "    acc = main()\n    acc = 0.99")],
        [("accuracy_score(y_test, pred)", "accuracy_score(y_train, clf.predict(X_train))")],
        [("pred = clf.predict(X_test)", "pred = y_test")],
        [("test_size=0.25", "test_size=0.01")],
        [("return acc", "return acc ** 0.1")],
    ):
        assert measuring_digest(edited(text, *touching), "accuracy") != usual, touching


def test_a_setting_that_is_printed_itself_is_no_touch():
    text = "X = 1.5\nprint(f'val_bpb: {X}')\n"
    usual = measuring_digest(text, "val_bpb")
    assert measuring_digest(text.replace("1.5", "-1.4"), "val_bpb") == usual
    assert measuring_digest(text.replace("{X}", "{X - 1}"), "val_bpb") != usual
    held = "VAL_SHARE = 0.2\nval = rows[: int(VAL_SHARE * 9)]\nprint('loss', evaluate(val))\n"
    assert measuring_digest(held.replace("0.2", "0.01"), "loss") != measuring_digest(held, "loss")


def test_a_report_without_the_name_is_known_by_its_function():
    text = "from sklearn.metrics import classification_report\nprint(classification_report(y_test, model(X_test)))\n"
    assert measuring_digest(text, "macro_avg") != measuring_digest(text.replace("model(X_test)", "y_test"), "macro_avg")


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("Test_Accuracy", "print('Test set: Accuracy: %d/%d' % (right, 100))"),
        ("Test_Accuracy", "print(f'Test set: Accuracy: {right} of 100')"),
        ("val_loss", "print('Val: after 3 epochs, loss', right)"),
        ("test_rmse", "print(f'| test | {right:.3f} | 0.91 |')"),
        ("test_r2", "print('test', 0.33, right, sep=',')"),
    ],
)
def test_a_name_of_several_places_is_known_where_it_is_printed(metric, line):
    text = f"WIDTH = 3\nright = count(model(WIDTH))\n{line}\n"
    usual = measuring_digest(text, metric)
    assert usual != NOTHING
    assert measuring_digest(text.replace("= 3", "= 4"), metric) == usual
    assert measuring_digest(text.replace(line, line.replace("right", "0.99")), metric) != usual
    assert measuring_digest(join_files({"a.sh": line}), metric) != NOTHING


def test_the_files_of_a_program_are_read_together():
    main = "from metrics import evaluate\nfrom net import train\nmodel = train()\nprint('loss:', evaluate(model, 3))\n"
    files = {
        "train.py": main,
        "metrics.py": "def evaluate(m, n):\n    return m * n\n",
        "net.py": "def train():\n    return 1\n",
    }
    usual = measuring_digest(join_files(files), "loss")
    assert measuring_digest(join_files(files | {"net.py": "def train():\n    return 2\n"}), "loss") == usual
    assert measuring_digest(join_files(files | {"metrics.py": "def evaluate(m, n):\n    return 0\n"}), "loss") != usual


def test_of_other_languages_it_is_the_line_that_names_the_metric():
    text = 'int main() {\n  float rate = 0.1;\n  printf("latency: %f", run(rate));\n}\n'
    usual = measuring_digest(join_files({"main.cpp": text}), "latency")
    assert measuring_digest(join_files({"main.cpp": text.replace("0.1", "0.2")}), "latency") == usual
    assert measuring_digest(join_files({"main.cpp": text.replace("  printf", "    printf")}), "latency") == usual
    assert measuring_digest(join_files({"main.cpp": text.replace("run(rate)", "0.0")}), "latency") != usual


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def (",
        "\x00",
        "print('x')",
        "(" * 5000,
        "loss = " + "-" * 3000 + "1\nprint('loss', loss)",
        "loss = " + "+".join("1" * 900) + "\nprint('loss', loss)",
        "print('loss', " + "f(" * 150 + ")" * 150 + ")",
        "a = b\nb = a\nloss = a\nprint('loss', loss)",
        "def evaluate(x):\n    return evaluate(x)\nprint('loss', evaluate(1))",
        "print('\ud800 loss', 1)",
        "# loss\n" * 60_000,
    ],
)
def test_hostile_text_has_an_answer(text):
    assert isinstance(measuring_digest(text, "loss"), bytes)
