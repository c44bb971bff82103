"""What the search would try next, and what it expects of given settings; nothing is run and nothing is claimed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from autoresearch.ask.acts.varying import admitted, no_setting
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import Answer
from autoresearch.propose.mind.recall import recall
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import LiveClaim, SearchProblem, SearchProposal
from autoresearch.propose.search.search import Expectation, expectation, propose
from autoresearch.record.encoding import short_id
from autoresearch.task.model import Task

# The draws of a suggestion are not those of a worker, which would otherwise try it too.
WORKER = "suggest"


class SuggestionView(Answer, frozen=True, kw_only=True):
    """A change that the search would try: what it sets anew, as ``[before, after]``, on top of the run ``parent``.

    ``expected`` is the value that it expects, ``low`` and ``high`` the 95 % interval of its belief; None while it knows
    too little.
    """

    title: str = ""
    change: dict[str, list[Value]]
    hypothesis: str = ""
    parent: str = ""
    expected: float | None = None
    low: float | None = None
    high: float | None = None


class SuggestAnswer(Answer, frozen=True, kw_only=True):
    """What the search would try next; or, where settings were given, what it expects of the best program with these."""

    schema: str = "autoresearch.suggest/1"
    suggestions: list[SuggestionView]
    settings: dict[str, Value] = {}


def suggest(
    log: Log,
    blobs: BlobStore,
    task: Task,
    count: int,
    settings: Mapping[str, object],
    *,
    me: bytes | None,
    now_ms: int,
) -> SuggestAnswer:
    """So many suggestions, each told of those before it; with ``settings`` what is expected of these alone.

    Raises:
        UsageError: the program that leads has no such setting, or it can't have such a value.
        NothingToTry: the search finds nothing to change.
    """
    problem, runs, claims = recall(log, blobs, task, now_ms, me=me or b"")
    if settings:
        space = expectation(problem, runs, claims, {}).space
        parameters = space.parameters
        if name := next((name for name in settings if name not in parameters), ""):
            raise no_setting(name, space, "the program that leads")
        genome = {name: admitted(parameters[name], value) for name, value in settings.items()}
        belief = expectation(problem, runs, claims, genome)
        change: dict[str, list[Value]] = {name: [belief.before[name], value] for name, value in genome.items()}
        return SuggestAnswer(suggestions=[_view(belief, change, belief.parent)], settings=genome)
    return SuggestAnswer(
        suggestions=[
            _view(
                expectation(problem, runs, claims, proposal.genome, base=proposal.base),
                proposal.change,
                proposal.parent,
                title=proposal.title,
                hypothesis=proposal.hypothesis,
            )
            for proposal in proposals(problem, runs, claims, count)
        ]
    )


def proposals(
    problem: SearchProblem, runs: Collection[PastRun], claims: Sequence[LiveClaim], count: int
) -> list[SearchProposal]:
    """So many changes that the search would try, each told of those before it. Raises NothingToTry."""
    made: list[SearchProposal] = []
    for number in range(count):
        tried = [LiveClaim(each.source_digest, each.replicate, each.genome) for each in made]
        made.append(propose(problem, runs, [*claims, *tried], worker=WORKER, counter=number))
    return made


def _view(
    belief: Expectation, change: dict[str, list[Value]], parent: bytes | None, *, title: str = "", hypothesis: str = ""
) -> SuggestionView:
    return SuggestionView(
        title=title,
        change=change,
        hypothesis=hypothesis,
        parent="" if parent is None else short_id(parent),
        expected=belief.expected,
        low=belief.low,
        high=belief.high,
    )
