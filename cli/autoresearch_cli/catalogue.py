"""All commands: where each lives and what it does in a line, so that help and completion import none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One command or group of commands: its module in ``commands`` and its line in the help."""

    module: str
    summary: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Look": {
        "status": Entry("status", "What this node does, and why."),
        "best": Entry("best", "The best program of a task so far."),
        "top": Entry("top", "The leaderboard of a task."),
        "runs": Entry("runs", "The runs of a task as a table: by state, setting, words."),
        "log": Entry("log", "The newest records of the log."),
        "show": Entry("show", "One record, whole: numbers, source, training log."),
        "diff": Entry("diff", "What a run changed, against its parent or another run."),
        "lineage": Entry("lineage", "The steps from the baseline to a run."),
        "effects": Entry("effects", "What each setting of a task did to the metric."),
        "credit": Entry("credit", "What each participant has done, with the records."),
        "evidence": Entry("evidence", "Signed records that prove misbehaviour; check them here."),
        "notes": Entry("note", "The notes on a task: insights, hypotheses, past work."),
        "claims": Entry("claims", "What is being tried now, by whom, until when."),
        "ask": Entry("ask", "What the log says to a question, with the records."),
        "open": Entry("open", "The local pages in a browser: progress, runs, leaderboard."),
        "events": Entry("events", "What happens on this node, as it happens."),
    },
    "Work": {
        "demo": Entry("demo", "Watch this machine run experiments for a few minutes."),
        "run": Entry("run", "Train a task folder's program once, or benchmark a project."),
        "next": Entry("next_program", "Bring the best program into a task folder, to be changed next."),
        "propose": Entry("propose", "Hand a program to the daemon, which runs it when a worker is free."),
        "claim": Entry("claim", "Tell the network that you try a program, before you run it."),
        "mcp": Entry("mcp", "Tools for a coding agent, by the Model Context Protocol."),
        "work": Entry("work", "Let the daemon run experiments."),
        "verify": Entry("verify", "Measure another participant's run on this machine."),
        "note": Entry("note", "Publish what a run shows, or what to try next."),
        "star": Entry("star", "Star a run, to find it again; on this machine only."),
        "unstar": Entry("star", "Take a star away."),
        "withdraw": Entry("withdraw", "Withdraw a run or a note of this machine."),
        "pause": Entry("control", "Stop working, for a while or until `resume`."),
        "resume": Entry("control", "End a pause."),
        "finish": Entry("control", "Finish the run in progress, then stop working."),
    },
    "Project": {
        "init": Entry("init", "Make a project: an agent that runs at once."),
        "install": Entry("install", "Install an environment, a policy or a trainer into a project."),
        "uninstall": Entry("install", "Take a component out of a project."),
        "use": Entry("install", "Choose the default among components of a type."),
        "list": Entry("install", "The components of a project, and its runs."),
        "train": Entry("train", "Train a project's policy; `run` measures it."),
        "serve": Entry("serve", "Serve a component of a project to other programs."),
        "services": Entry("serve", "The components that this machine serves."),
        "reset": Entry("train", "Forget what a project has learned, or go back to a run."),
        "search": Entry("search", "Components: environments, policies, trainers and others."),
        "publish": Entry("publish", "Publish a project's run, or a component."),
        "get": Entry("get", "A published run as a folder: agent, parameters, what it learned."),
        "yank": Entry("yank", "Advise against a release of yours."),
    },
    "Node": {
        "up": Entry("up", "Start the daemon."),
        "down": Entry("down", "Stop the daemon."),
        "peers": Entry("peers", "The other nodes, and how to reach this one."),
        "network": Entry("network", "The network of this node: create one, join one, invite others."),
        "doctor": Entry("doctor", "Check this machine, and say how to mend it."),
        "logs": Entry("logs", "What the daemon wrote to its log file."),
        "config": Entry("config", "Show and change settings."),
        "paths": Entry("paths", "Where the files are on this machine."),
        "id": Entry("identity", "This participant's keys, devices and mailbox."),
        "attestor": Entry("attestor", "What this node does as an attestor of mailboxes."),
    },
    "Exchange": {
        "export": Entry("export", "Write runs as a table, pages or a git repository, or a bundle."),
        "import": Entry("importing", "Import a bundle of another node, or a results.tsv as notes."),
        "task": Entry("task", "List tasks; make a task folder, or explain one."),
    },
}

COMMANDS: dict[str, Entry] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
