"""All commands of the command line as data: what each does in a line, and which module has it.

Help, completion and search read this and import none of the commands.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command or group of commands: its module in ``autoresearch_cli`` and its line in the help."""

    module: str
    summary: str


@dataclass(frozen=True, slots=True)
class Noun:
    """A word that only other commands follow, like ``task`` in ``task list``.

    Attributes:
        summary: Its line in the help.
        sentence: What the help of the noun begins with.
        examples: Three commands, each with what it does.
        see: Related commands.
        commands: What may follow, by name.
        alone: The command that is meant where none follows; empty: the help.
    """

    summary: str
    sentence: str
    examples: tuple[tuple[str, str], ...]
    see: str
    commands: dict[str, CommandEntry]
    alone: str = ""


# Of ``run`` and ``mcp`` the help is that of the verb.
NOUNS: dict[str, Noun] = {
    "run": Noun(
        summary="Runs: list, lineage, claims, propose, star, withdraw, export.",
        sentence="",
        examples=(("autoresearch run ~/my-task", "train the program in a task folder once"),),
        see="",
        commands={
            "list": CommandEntry("commands.run", "The runs of a task as a table: by state, setting, words."),
            "lineage": CommandEntry("commands.show", "The steps from the baseline to a run."),
            "claims": CommandEntry("commands.run", "What is being tried now, by whom, until when."),
            "evidence": CommandEntry("commands.verify", "Signed records that prove misbehaviour; check them here."),
            "checkout": CommandEntry(
                "commands.propose", "Bring the best program into a task folder, to be changed next."
            ),
            "propose": CommandEntry(
                "commands.propose", "Hand a program to the daemon, which runs it when a worker is free."
            ),
            "wait": CommandEntry("commands.propose", "Wait for a proposed run, and say what came of it."),
            "cancel": CommandEntry("commands.propose", "Take a proposed run out of the queue, or stop it."),
            "suggest": CommandEntry("commands.propose", "Say what the search would try next, and what it expects."),
            "vary": CommandEntry("commands.propose", "Run every combination of some values, and say what each did."),
            "claim": CommandEntry("commands.propose", "Tell the network that you try a program, before you run it."),
            "believe": CommandEntry("commands.run", "Believe a number that its program printed itself."),
            "star": CommandEntry("commands.run", "Star a run, to find it again; on this machine only."),
            "unstar": CommandEntry("commands.run", "Take a star away."),
            "withdraw": CommandEntry("commands.run", "Withdraw a run or a note of this machine."),
            "export": CommandEntry("commands.export", "Write the runs as a table, or the log as a bundle."),
        },
    ),
    "task": Noun(
        summary="Tasks: list, show, get, new, effects, export.",
        sentence="A task is a folder: task.toml, fixed files that measure, and the program to improve.",
        examples=(
            ("autoresearch task new ~/my-repo", "make a task of your own program"),
            ("autoresearch task list", "the tasks of this network"),
            ("autoresearch task get moons ~/moons", "the folder of a published task"),
        ),
        see="run, work, node config set work.task",
        commands={
            "list": CommandEntry("commands.task", "The tasks of this network, and the best value of each."),
            "show": CommandEntry("commands.task", "What a task measures, fixes and lets the search change."),
            "get": CommandEntry("commands.task", "Write a task as a folder to work in."),
            "new": CommandEntry("commands.task", "Make a task folder: for your program, or a copy of the shipped one."),
            "pin": CommandEntry("commands.task", "Fix the program in a task folder as the task's baseline."),
            "lock": CommandEntry("commands.task", "Lock the Python packages that a task's program needs."),
            "allow": CommandEntry("commands.task", "Allow a task's Python packages on this machine, and install them."),
            "attack": CommandEntry("commands.attack", "Try to cheat a task: a red team for how it is measured."),
            "reports": CommandEntry("commands.attack", "What participants found when they attacked a task."),
            "effects": CommandEntry("commands.best", "What each setting of a task did to the metric."),
            "archive": CommandEntry("commands.task", "Put a task away on this machine."),
            "restore": CommandEntry("commands.task", "Take a task out of the archive."),
            "export": CommandEntry("commands.export", "Write a task as a git repository, or as pages."),
        },
    ),
    "agent": Noun(
        summary="What a project trains: serve, reset, yank.",
        sentence="An agent is what a project trains: its state, its releases and what it serves.",
        examples=(
            ("autoresearch agent serve trainer", "let actors elsewhere play for this project's trainer"),
            ("autoresearch agent services", "what this machine serves"),
            ("autoresearch agent reset", "begin to learn anew"),
        ),
        see="init, train, run, publish",
        commands={
            "serve": CommandEntry("agent.serve", "Serve a component of a project to other programs."),
            "services": CommandEntry("agent.serve", "The components that this machine and your others serve."),
            "reset": CommandEntry("agent.train", "Forget what a project has learned, or go back to a run."),
            "yank": CommandEntry("agent.publish", "Advise against a release of yours."),
        },
    ),
    "node": Noun(
        summary="This machine: pause, records, doctor, config, id, logs.",
        sentence="A node is this machine with its log, its keys, its settings and its daemon.",
        examples=(
            ("autoresearch node doctor", "check this machine"),
            ("autoresearch node pause --for 2h", "stop working for two hours"),
            ("autoresearch node config set work.workers 2", "change a setting"),
        ),
        see="status, up, down, work",
        commands={
            "pause": CommandEntry("commands.work", "Stop working, for a while or until `node resume`."),
            "resume": CommandEntry("commands.work", "End a pause."),
            "finish": CommandEntry("commands.work", "Finish the run in progress, then stop working."),
            "events": CommandEntry("commands.work", "What happens on this node, as it happens."),
            "records": CommandEntry("commands.show", "The newest records of the log."),
            "logs": CommandEntry("commands.files", "What the daemon wrote to its log file."),
            "doctor": CommandEntry("commands.doctor", "Check this machine, and say how to mend it."),
            "config": CommandEntry("commands.config", "Show and change settings."),
            "setup": CommandEntry("commands.node", "Be asked what this machine may be used for."),
            "install": CommandEntry("commands.node", "Start the daemon with this machine: as a service."),
            "uninstall": CommandEntry("commands.node", "Take that service away again."),
            "backup": CommandEntry("commands.backup", "Write all that this node keeps into one file."),
            "restore": CommandEntry("commands.backup", "Put such a file back, on a machine without any."),
            "repair": CommandEntry("commands.databases", "Make damaged databases anew from what can be read in them."),
            "query": CommandEntry("commands.databases", "Ask a database of this node in SQL."),
            "compact": CommandEntry("commands.databases", "Make the databases as small as what is in them."),
            "paths": CommandEntry("commands.files", "Where the files are on this machine."),
            "version": CommandEntry("commands.node", "Which version this is, and whether peers have a newer one."),
            "id": CommandEntry("commands.identity", "This participant's keys, devices and mailbox."),
            "import": CommandEntry("commands.export", "Import a bundle of another node, or a results.tsv as notes."),
        },
    ),
    "network": Noun(
        summary="The network: join, invite, voters, peers, credit.",
        sentence="A network is a set of constants, a trust list, and some nodes to begin with. It has no server.",
        examples=(
            ("autoresearch network join autoresearch1…", "join a network with an invite"),
            ("autoresearch network show", "which network this is, and its trust list"),
            (
                "autoresearch network new tea --for lab && autoresearch network join tea.toml",
                "a team's own, with its first node",
            ),
        ),
        see="network peers, node config, node id show",
        commands={
            "show": CommandEntry("commands.network", "Which network this is, its trust list and its voters."),
            "peers": CommandEntry("commands.voters", "The other nodes, and how to reach this one."),
            "credit": CommandEntry("commands.best", "What each participant has done, with the records."),
            "new": CommandEntry("commands.network", "Write the manifest of a new network."),
            "join": CommandEntry("commands.network", "Join a network by an invite or a manifest."),
            "invite": CommandEntry("commands.network", "Make an invite."),
            "invites": CommandEntry("commands.voters", "The invites of this machine that admit."),
            "admit": CommandEntry("commands.voters", "As a founder, count a participant."),
            "dismiss": CommandEntry("commands.voters", "As a founder, count a participant no longer."),
            "trust": CommandEntry("commands.network", "Trust an attestor, a participant or a founder."),
            "distrust": CommandEntry("commands.network", "Trust one no longer."),
            "hide": CommandEntry("commands.hiding", "Hide a participant, a record or words on this machine."),
            "hidden": CommandEntry("commands.hiding", "What is hidden on this machine."),
            "attestor": CommandEntry("commands.attestor", "What this node does as an attestor of mailboxes."),
            "list": CommandEntry("commands.network_homes", "The networks of this home."),
            "use": CommandEntry("commands.network_homes", "Go to another network of this home."),
            "bring": CommandEntry("commands.network_homes", "Bring your runs from another network of this home."),
            "forget": CommandEntry("commands.network_homes", "Delete what this home holds of a network."),
        },
        alone="show",
    ),
    "challenge": Noun(
        summary="Contests: new, show, extend, close, grade.",
        sentence="A contest is a task with an end, a board and a page of rules, in a network of its own.",
        examples=(
            ("autoresearch challenge new DIR --ends 7d --for friends", "found one, and print what others type"),
            ("autoresearch challenge show", "when it ends, and the board so far"),
            ("autoresearch challenge close", "the final board, with a reason for every submission"),
        ),
        see="network join, top, task new",
        commands={
            "show": CommandEntry("commands.challenge", "When the contest ends, its board and its participants."),
            "new": CommandEntry("commands.challenge", "Found a contest: network, task, invite and a page of rules."),
            "extend": CommandEntry("commands.challenge", "As a founder, give the contest a later end."),
            "close": CommandEntry("commands.challenge", "Write the final board, pages and a signed bundle."),
            "grade": CommandEntry("commands.challenge", "Write a line for each participant: place, value, reason."),
        },
    ),
    "note": Noun(
        summary="Notes: list, add, ask the log.",
        sentence="A note says what a run shows, or what to try next; others read and cite it.",
        examples=(
            ("autoresearch note list", "read the notes on the task here, or worked on last"),
            ("autoresearch note ask 'which batch sizes were tried?'", "what the log answers"),
            ("autoresearch note add @ 'a longer warm-up is steadier'", "publish what a run shows"),
        ),
        see="show, run list, run claims",
        commands={
            "list": CommandEntry("commands.note", "The notes on a task: insights, hypotheses, past work."),
            "ask": CommandEntry("commands.note", "What the log says to a question, with the records."),
            "add": CommandEntry("commands.note", "Publish what a run shows, or what to try next."),
        },
    ),
    "mcp": Noun(
        summary="Coding agents: install.",
        sentence="",
        examples=(("autoresearch mcp install --for claude", "name the tools to a coding agent"),),
        see="",
        commands={"install": CommandEntry("commands.mcp", "Name the tools to a coding agent, in its own file.")},
    ),
}

SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Work": {
        "up": CommandEntry("commands.node", "Start the daemon."),
        "down": CommandEntry("commands.node", "Stop the daemon."),
        "status": CommandEntry("commands.work", "What this node does, and why."),
        "work": CommandEntry("commands.work", "Let the daemon run experiments."),
        "best": CommandEntry("commands.best", "The best program of a task so far."),
        "top": CommandEntry("commands.best", "The leaderboard of a task."),
        "show": CommandEntry("commands.show", "One record, whole: numbers, source, training log."),
        "search": CommandEntry("commands.note", "Runs, settings, people, notes, components and commands by words."),
        "diff": CommandEntry("commands.show", "What a run changed, against its parent or another run."),
        "run": CommandEntry("commands.run", "Train a task folder's program once, or benchmark a project."),
        "verify": CommandEntry("commands.verify", "Measure another participant's run on this machine."),
        "open": CommandEntry("commands.node", "The local pages in a browser: progress, runs, leaderboard."),
        "join": CommandEntry("commands.join", "Join a network, and run experiments on its task."),
        "demo": CommandEntry("commands.demo", "Watch this machine run experiments for a few minutes."),
        "mcp": CommandEntry("commands.mcp", "Tools for a coding agent, by the Model Context Protocol."),
    },
    "Projects of components": {
        "init": CommandEntry("agent.components", "Make a project: an agent that runs at once."),
        "install": CommandEntry("agent.components", "Install an environment, a policy or a trainer into a project."),
        "uninstall": CommandEntry("agent.components", "Take a component out of a project."),
        "use": CommandEntry("agent.components", "Choose the default among components of a type."),
        "list": CommandEntry("agent.components", "The components of a project, and its runs."),
        "train": CommandEntry("agent.train", "Train a project's policy; `run` measures it."),
        "publish": CommandEntry("agent.publish", "Publish a project's run, or a component."),
        "get": CommandEntry("agent.publish", "A published run as a folder: agent, parameters, what it learned."),
    },
}

# Every command by its words, like ``run list``.
COMMANDS: dict[str, CommandEntry] = {
    **{name: entry for section in SECTIONS.values() for name, entry in section.items()},
    **{f"{noun} {name}": entry for noun, group in NOUNS.items() for name, entry in group.commands.items()},
}
