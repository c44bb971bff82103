"""Who invents the next change beside the search: a language model, or any command; and what that costs."""

from autoresearch_daemon.minds.answering import in_sentences
from autoresearch_daemon.minds.choosing import SEARCH, check_proposer
from autoresearch_daemon.minds.proposing import Occasion, propose_change
from autoresearch_daemon.minds.reporting import proposers_status

__all__ = ["SEARCH", "Occasion", "check_proposer", "in_sentences", "propose_change", "proposers_status"]
