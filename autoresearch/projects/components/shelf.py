"""The components that ship: small files that a project gets a copy of."""

from __future__ import annotations

from pathlib import Path

from autoresearch.projects.components.offers import Offer

_FOLDER = Path(__file__).parents[1] / "shipped"
_SHIPPED = (
    ("environment", "corridor", "corridor:Corridor", "Walk to the right end of a corridor."),
    ("environment", "2048", "game_2048:Game2048", "The game 2048: slide and merge tiles."),
    ("environment", "remote", "remote:Remote", "An environment that `serve env` serves elsewhere."),
    ("policy", "random", "random_policy:RandomPolicy", "Takes any action."),
    ("policy", "q_table", "q_table:QTable", "A table of values for each observation and action."),
    ("policy", "dqn", "dqn:DQN", "A neural network that values actions (torch)."),
    ("trainer", "sarsa", "sarsa:Sarsa", "SARSA for a q_table."),
    ("trainer", "q_learning", "q_learning:QLearning", "Q-learning from a dataset, for a q_table."),
    ("trainer", "dqn_sgd", "dqn_sgd:DqnSgd", "Deep Q-learning by gradient descent for a dqn (torch)."),
    ("dataset", "replay", "replay:Replay", "The newest transitions, drawn uniformly."),
)
GYM_CLASS = "gym_environment:GymEnvironment"
ATARI_MODULE = "ale_py"
_ATARI = "ALE/"


def shipped_offers() -> list[Offer]:
    """Every component that ships."""
    return [_offer(*each) for each in _SHIPPED]


def shipped_offer(kind: str, name: str) -> Offer | None:
    """The component of this type and name that ships."""
    return next((_offer(*each) for each in _SHIPPED if each[:2] == (kind, name)), None)


def full_id(gym_id: str) -> str:
    """The id as ``gymnasium.make`` takes it: a module registers Atari's games, as in ``ale_py:ALE/Pong-v5``."""
    return f"{ATARI_MODULE}:{gym_id}" if gym_id.startswith(_ATARI) else gym_id


def gym_offer(gym_id: str) -> Offer:
    """A Gymnasium environment by its id; it is called by the id's name: ``cartpole`` of ``CartPole-v1``."""
    name = gym_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0].lower()
    offer = _offer("environment", name, GYM_CLASS, f"Gymnasium's {gym_id}.")
    return Offer(
        type="environment",
        name=name,
        class_name=offer.class_name,
        files=offer.files,
        description=offer.description,
        pins={"source": f"gym:{gym_id}"},
        parameters={"id": full_id(gym_id)},
    )


def _offer(kind: str, name: str, class_name: str, description: str) -> Offer:
    from autoresearch import __version__

    file = f"{class_name.partition(':')[0]}.py"
    return Offer(
        type=kind,
        name=name,
        class_name=class_name,
        files={file: (_FOLDER / file).read_bytes()},
        description=description,
        pins={"source": "shipped", "version": __version__},
    )
