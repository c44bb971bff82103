"""What to do next on a task, from its log: changes that the search would try, margins that are open, what to repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoresearch.ask.comparing import MeasuredProgram, RankedPrograms, seeds_to_tell
from autoresearch.ask.discussion import Fact
from autoresearch.ask.lookup import FoundTask
from autoresearch.errors import AutoresearchError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.trials import Trial
from autoresearch.propose.mind.recall import claims, past_run, text_of
from autoresearch.propose.program.edits import read_patches
from autoresearch.propose.search.proposal import SearchProblem
from autoresearch.record.encoding import format_id, short_id
from autoresearch.task.folders import side_file
from autoresearch.task.loading import CHANGES
from autoresearch.text import brief, counted, one_line, value

SUGGESTIONS, NAMED, TEXT = 3, 4, 200


def suggestions(
    log: Log,
    blobs: BlobStore,
    task: FoundTask,
    programs: RankedPrograms,
    ended: Sequence[Trial],
    baseline: str,
    *,
    now_ms: int,
    me: bytes | None,
) -> Iterator[Fact]:
    """What the search would try, a change a sentence."""
    from autoresearch.ask.acts.suggesting import proposals  # it loads numpy, which the daemon starts without

    if not baseline:
        return
    try:
        problem = SearchProblem(
            task=task.digest,
            baseline=baseline,
            direction="minimize" if programs.sign > 0 else "maximize",
            noise=programs.spread.deviation if programs.spread else None,
            floor=task.floor,
            source_of=lambda run: text_of(log, blobs, run),
            patches=read_patches(side_file(CHANGES, log.tasks.definition(task.digest) or {})),
        )
        live = claims(log, task.digest, now_ms, me or b"")
        made = proposals(problem, [past_run(trial) for trial in ended], live, SUGGESTIONS)
    except AutoresearchError as error:
        yield Fact(sentence=f"the search would try nothing: {error}")
        return
    for proposal in made:
        title, why = one_line(proposal.title, TEXT), one_line(proposal.hypothesis, TEXT)
        on = [format_id(proposal.parent)] if proposal.parent else []
        yield Fact(sentence=f"the search would try {title}: {why}", ids=on)


def open_margins(programs: RankedPrograms) -> Iterator[Fact]:
    """Which programs the noise does not tell apart from the best one."""
    near = programs.open()
    if not near:
        return
    best, *others = near
    if not others:
        yield Fact(sentence="no other program is within the noise of the best one", ids=[format_id(best.id)])
        return
    each = [
        f"{program.named} {value(program.value)} ± {brief(programs.margin(program, best) or 0.0, 2)}"
        for program in others[:NAMED]
    ]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    leader = f"{best.named} {value(best.value)}"
    yield Fact(
        sentence=f"not told apart from the best, {leader}, by the noise: {', '.join(each)}{more}",
        ids=[format_id(program.id) for program in [best, *others[:NAMED]]],
    )


def to_repeat(programs: RankedPrograms) -> MeasuredProgram | None:
    """The run most worth repeating: of the best and what is not told apart from it, the better one of fewest seeds."""
    near = programs.open()[:2]
    if not near or (programs.spread is not None and programs.spread.deviation == 0):
        return None
    return min(near, key=lambda program: (program.runs, programs.sign * program.value))


def repeating(programs: RankedPrograms) -> Iterator[Fact]:
    """Which run is most worth repeating, and what for."""
    if not programs.ranked:
        yield Fact(sentence="no run has a value yet, so none is worth repeating")
        return
    again = to_repeat(programs)
    if again is None:
        yield Fact(sentence="a program gives the same value with each seed here, so no run is worth repeating")
        return
    others = [program for program in programs.open() if program is not again]
    why = "another seed says whether its value was luck"
    if others:
        seeds = seeds_to_tell(again, others[0], programs)
        why = f"the noise does not tell it apart from {others[0].named}" + (f"; {seeds}" if seeds else "")
    count = counted(again.runs, "seed")
    how = f"autoresearch run checkout . --run {short_id(again.id)}, then autoresearch run . --replicate {again.runs}"
    yield Fact(
        sentence=f"most worth repeating is {again.named} ({value(again.value)}, {count}): {why} → {how}",
        ids=[format_id(again.id)],
    )
