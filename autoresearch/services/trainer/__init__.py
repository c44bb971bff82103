"""A learner as a server: actors send rows to its stores, and get its newest weights."""

from autoresearch.services.trainer.client import TrainerClient
from autoresearch.services.trainer.config import TrainerConfig
from autoresearch.services.trainer.same_process import TrainerSMInterface
from autoresearch.services.trainer.server import TrainerServer

__all__ = ["TrainerClient", "TrainerConfig", "TrainerSMInterface", "TrainerServer"]
