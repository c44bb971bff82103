"""What is known of a task, as a text for a model or an agent: gathered from a log, written within a byte budget."""

from autoresearch.prompts.agents import AGENTS_MARK, agents_text
from autoresearch.prompts.asking import cited_text, question_prompt
from autoresearch.prompts.fencing import fenced, plain_line
from autoresearch.prompts.gathering import gather, reply_rules
from autoresearch.prompts.values import Attempt, Best, Known, Said
from autoresearch.prompts.writing import HISTORY_MARK, LEAST_BYTES, history_text, prompt_text

__all__ = [
    "AGENTS_MARK",
    "HISTORY_MARK",
    "LEAST_BYTES",
    "Attempt",
    "Best",
    "Known",
    "Said",
    "agents_text",
    "cited_text",
    "fenced",
    "gather",
    "history_text",
    "plain_line",
    "prompt_text",
    "question_prompt",
    "reply_rules",
]
