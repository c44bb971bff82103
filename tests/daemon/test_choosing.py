"""Which proposer makes the next change: shares by what each brought, limits, pauses after failures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.log.local import ModelCall, ModelCost, ModelLedger, not_before_ms
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.search.sharing import (
    COMMAND,
    LEAST_SHARE,
    LLM,
    MIX,
    SEARCH,
    ProposerResults,
    ProposerStanding,
    brought_by,
    check_proposer,
    choose,
    next_proposer,
    operators_brought,
    shares,
)
from autoresearch.record.kinds import Proposer
from autoresearch.record.record import DAY_MS
from autoresearch.settings import AgentCommand, LanguageModel, Settings
from autoresearch.task.loading import load_task
from autoresearch.words import Operator
from tests.ask.notebook import Notebook
from tests.daemon.toy import write_toy_task

BOTH = Settings(llm=LanguageModel(model="some-model"), agent=AgentCommand(command="agent {prompt}"))
amounts = st.floats(0, 1e6)
brought = st.builds(ProposerResults, runs=st.integers(0, 1000), gain=amounts, seconds=amounts, money=amounts)


@given(st.dictionaries(st.sampled_from([SEARCH, LLM, COMMAND]), brought, min_size=1))
def test_everybody_has_a_share_and_they_are_the_whole(results: dict[str, ProposerResults]) -> None:
    share_of = shares(results)
    assert share_of.keys() == results.keys()
    assert sum(share_of.values()) == pytest.approx(1)
    assert all(share >= LEAST_SHARE - 1e-9 for share in share_of.values())


def test_who_brings_more_for_the_same_cost_gets_more_runs() -> None:
    results = {SEARCH: ProposerResults(20, 5, 0.5, 2000, 0), LLM: ProposerResults(20, 9, 2.0, 2000, 0)}
    share_of = shares(results)
    assert share_of[LLM] > 2 * share_of[SEARCH]
    dear = shares(results | {LLM: ProposerResults(20, 9, 2.0, 2000, 50)})
    assert dear[LLM] < dear[SEARCH]


def test_a_new_proposer_is_taken_to_be_as_good_as_the_others() -> None:
    share_of = shares({SEARCH: ProposerResults(20, 5, 0.5, 2000, 0), LLM: ProposerResults()})
    assert share_of[LLM] == pytest.approx(share_of[SEARCH])


def test_draws_follow_the_shares() -> None:
    results = {SEARCH: ProposerResults(20, 5, 0.5, 2000, 0), LLM: ProposerResults(20, 9, 2.0, 2000, 0)}
    drawn = Counter(choose(results, Draws(b"seed", str(number).encode())) for number in range(2000))
    assert drawn[LLM] / 2000 == pytest.approx(shares(results)[LLM], abs=0.05)


def ask(setting: str, settings: Settings = BOTH, now_ms: int = 0, **standings: ProposerStanding) -> tuple[str, str]:
    return next_proposer(setting, settings, standings, {}, Draws(b"seed"), now_ms)


def test_the_search_takes_the_place_of_who_is_at_a_limit() -> None:
    assert ask(LLM) == (LLM, "")
    assert ask(LLM, llm=ProposerStanding(ModelCost(tokens=2_000_000))) == (
        SEARCH,
        "2,000,000 tokens in 24 hours: the limit llm.day_tokens is reached",
    )
    assert "llm.day_cost" in ask(LLM, llm=ProposerStanding(ModelCost(cost=5.0)))[1]
    assert "agent.day_starts" in ask(COMMAND, command=ProposerStanding(ModelCost(starts=100)))[1]
    assert "agent.day_cost" in ask(COMMAND, command=ProposerStanding(ModelCost(cost=5.5)))[1]
    assert ask(COMMAND, command=ProposerStanding(ModelCost(starts=99))) == (COMMAND, "")


def test_who_failed_is_left_alone_for_a_while() -> None:
    failed = ProposerStanding(ready_ms=90_000, failure="it answered with HTTP 500")
    assert ask(LLM, now_ms=30_000, llm=failed) == (SEARCH, "it answered with HTTP 500; it is asked again in 60 s")
    assert ask(LLM, now_ms=90_000, llm=failed) == (LLM, "")


def test_a_mix_leaves_out_who_can_not_be_asked() -> None:
    out = ProposerStanding(ModelCost(cost=9.0))
    drawn = {next_proposer(MIX, BOTH, {"llm": out}, {}, Draws(str(number).encode()), 0)[0] for number in range(50)}
    assert drawn == {SEARCH, COMMAND}


def test_a_proposer_that_is_not_set_up_is_refused() -> None:
    with pytest.raises(UsageError, match="no language model yet") as refused:
        check_proposer(LLM, Settings())
    assert refused.value.hint == "autoresearch node config set llm.model NAME"
    with pytest.raises(UsageError, match="nothing to mix"):
        check_proposer(MIX, Settings())
    check_proposer(MIX, BOTH)
    check_proposer(SEARCH, Settings())


def failures(*times_ms: int, retry_ms: int = 0) -> list[ModelCall]:
    return [ModelCall(time_ms=at, proposer=LLM, failure="no", retry_ms=retry_ms) for at in times_ms]


def test_pauses_double_up_to_an_hour_and_end_with_a_success() -> None:
    good = ModelCall(time_ms=1, proposer=LLM)
    assert not_before_ms([]) == 0
    assert not_before_ms([good, *failures(0)]) == 0
    assert not_before_ms([*failures(1000), good]) == 61_000
    assert not_before_ms(failures(1000, 500, 0)) == 241_000
    assert not_before_ms(failures(*range(8, 0, -1))) == 8 + 3_600_000
    assert not_before_ms(failures(1000, retry_ms=10**9)) == 10**9


def test_the_ledger_sums_what_was_spent_in_a_time(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    with ModelLedger(file) as ledger, ModelLedger(file) as reopened:
        ledger.note(ModelCall(time_ms=1_000, proposer=LLM, tokens=5, cost=0.5, seconds=2.0), "a")
        reopened.note(ModelCall(time_ms=2_000, proposer=LLM, failure="no", tokens=7, cost=0.25), "a")
        reopened.note(ModelCall(time_ms=2_000, proposer=COMMAND), "")
        assert ledger.spent(LLM, since_ms=0) == ModelCost(starts=2, failures=1, tokens=12, cost=0.75, seconds=2.0)
        assert ledger.spent(LLM, since_ms=1_500).tokens == 7
        assert [each.time_ms for each in ledger.last(LLM, "a")] == [2_000, 1_000]
        assert ledger.last(LLM, "another key") == [], "what one key said holds for no other"
        ledger.note(ModelCall(time_ms=3_000, proposer=LLM), "another key")
        assert [each.time_ms for each in ledger.last(LLM, "another key")] == [3_000]
        assert ledger.last(LLM, "a") == []
        ledger.note(ModelCall(time_ms=1_000 + 100 * DAY_MS, proposer=LLM), "a")
        assert ledger.spent(LLM, since_ms=0).starts == 1


def test_a_proposer_is_paid_for_what_is_better_than_the_best_before_and_not_than_a_bad_parent(tmp_path: Path) -> None:
    task = load_task(write_toy_task(tmp_path / "toy"))
    with Notebook.at(tmp_path) as notebook, ModelLedger(tmp_path / "local.sqlite") as ledger:

        def ran(proposer: str, value: float | None, parent: bytes | None = None, x: float = 0.0) -> bytes:
            run: bytes = notebook.run(
                task.digest, value, source=f"X = {x or value}\n", parent=parent,
                proposer=Proposer(name=proposer, version="1"), status="ok" if value is not None else "crashed",
            )  # fmt: skip
            return run

        first = ran(SEARCH, 0.9)
        ran(SEARCH, 0.5, first)
        ran("llm/some-model", 0.8, first)  # better than its parent, and worse than what was known
        ran("llm/some-model", None, first, x=7.0)
        ran("llm/some-model", 0.4, first)
        ran("llm/some/model/combine", 0.2, first)
        ran("command/combine", 0.1, first)
        kinds = operators_brought(notebook.log, task, notebook.mine.public, LLM, list(Operator))
        results = brought_by(notebook.log, ledger, task, notebook.mine.public, (SEARCH, LLM, COMMAND))
    noise = task.metric.noise or 0.0
    assert (results[SEARCH].runs, results[SEARCH].better) == (2, 1)
    assert results[SEARCH].gain == pytest.approx(0.4 - noise)
    assert (results[LLM].runs, results[LLM].better) == (4, 2)
    assert results[LLM].gain == pytest.approx(0.3 - 2 * noise)
    assert results[COMMAND].runs == 1
    assert list(kinds) == list(Operator)
    assert (kinds[Operator.COMBINE].runs, kinds[Operator.COMBINE].gain) == (1, pytest.approx(0.2 - noise))
    assert kinds[Operator.DRAFT] == ProposerResults()
