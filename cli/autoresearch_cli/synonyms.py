"""What people type who know other tools, and the commands and options that do it here.

A line is what follows ``autoresearch``; words in capitals stand for what a person fills in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Other words by the line that is meant. A word after a noun, such as ``network leave``, stands with its noun.
_LINES = {
    "up": "start launch boot daemon daemonize",
    "up --foreground": "foreground",
    "down": "stop halt quit exit shutdown poweroff",
    "down && autoresearch up": "restart reload reboot",
    "status": "ps stat st state info progress ping summary is-active",
    "open": "web ui gui browser browse dashboard server serve site pages tensorboard plot plots chart charts",
    "work TASK": "begin go improve optimize optimise tune fit hyperopt evolve research iterate auto",
    "work --list": "queue orders jobs order backlog",
    "run DIR": "exec execute eval evaluate bench benchmark try experiment measure task:run task:test",
    "run vary DIR": "sweep grid ablate ablation multirun",
    "run list": "ls runs history experiments exp trials results dir study studies models",
    "run cancel NAME": "kill abort run:kill run:stop run:abort run:rm",
    "run withdraw ID": "delete rm remove del retract undo run:delete run:remove note:delete note:rm note:remove",
    "run checkout DIR": "pull edit reset revert stash",
    "run lineage @": "tree graph ancestors blame",
    "run export": "csv dump",
    "run export --format mlflow -o DIR": "mlflow",
    "run DIR --hypothesis TEXT": "commit",
    "run DIR --again": "retry run:retry",
    "task list": "tasks projects problems",
    "task new DIR": "create add define task:create task:add task:init task:make create-study",
    "task get TASK": "clone download fetch task:clone task:download task:checkout",
    "task archive TASK": "task:rm task:delete task:remove task:del task:hide",
    "publish task DIR": "push upload share submit task:push task:publish task:share",
    "challenge new DIR": "contest competition hackathon tournament kaggle",
    "top": "leaderboard ranking rank scores board scoreboard",
    "show ID": "cat view inspect describe print artifact artifacts metrics run:info",
    "diff ID ID": "compare cmp changes",
    "show ID --log": "run:log run:logs run:tail",
    "verify ID": "reproduce repro replicate rerun retest confirm",
    "search WORDS": "find grep lookup",
    "task effects": "params parameters importance",
    "task export --git DIR": "git commits branch",
    "node logs": "log journal stderr",
    "node logs --follow": "tail",
    "node events --follow": "watch monitor follow",
    "node config": "settings conf preferences env options node:config:list node:config:ls",
    "node config set NAME VALUE": "set unset",
    "node pause": "suspend sleep hold",
    "node resume": "continue unpause wake",
    "node setup": "configure onboard wizard",
    "node doctor": "check health diagnose debug selftest verify-install",
    "node version --check": "upgrade update self-update outdated",
    "node version": "about ver",
    "node id show": "whoami account user me keys identity key profile",
    "node compact": "clean prune gc vacuum purge cleanup",
    "node install": "enable service systemd autostart",
    "node uninstall": "disable",
    "node query": "sql sqlite db shell repl",
    "join INVITE": "login signin signup auth register connect pair link network:connect network:add",
    "network peers": "sync nodes device devices remote remotes node:ls node:list network:ls network:nodes network:sync",
    "network show": "members users participants people team network:status network:info",
    "network use NAME": "switch network:switch",
    "network forget NAME": "network:rm network:remove network:delete",
    "network new NAME": "network:create network:init network:make",
    "node config set network.enabled false": "leave logout disconnect offline network:leave network:quit network:off",
    "node config set network.enabled true": "online network:on",
    "note list": "issue issues pr",
    "note add": "comment remark annotate note:new note:create note:write",
    "note ask QUESTION": "chat question why",
    "--install-completion": "completion completions autocomplete",
    "mcp": "claude cursor tools",
    "demo": "example examples quickstart tour tutorial hello",
    "--help": "man usage commands docs manual guide",
}
LINES = {word.replace(":", " "): line for line, words in _LINES.items() for word in words.split()}

# After a noun that has the command.
_SAME = {"list": "ls dir all", "show": "info describe view inspect cat", "new": "create add make init"}
_COMMANDS = {word: command for command, words in _SAME.items() for word in words.split()}

# Other options by the one that is meant, of a command that has it.
_OPTIONS = {
    "--limit": "--n --lines --tail --head --top --max --count --size",
    "--runs": "--n --times --iterations --trials --n-trials --count --max-runs -n",
    "--seeds": "--repeat --repeats --count",
    "--for": "--time --duration --minutes --hours --timeout --until",
    "--json": "--format --output --output-format",
    "--yes": "--force --no-input --assume-yes -f -y",
    "--follow": "--watch --tail --live",
    "--workers": "--jobs --parallel --processes --concurrency",
    "--work": "--start --run",
    "--foreground": "--no-daemon --no-detach",
    "--hypothesis": "--message --title --name -m",
    "--task": "--project",
    "--version": "-v -V",
    "--all": "-a",
    "--format": "--csv --tsv --jsonl --mlflow",
    "--checkpoint": "--weights --save --download",
    "--debug": "--verbose",
    "-n": "--count --limit --number --max",
}
# An option of other tools that is an argument here, by the argument's name in the help.
_ARGUMENTS = {
    "TASK": "--task --name --project",
    "DIR": "--dir --folder --path --directory --task",
    "ID": "--id --run --run-id",
    "FILE": "--file --path",
}
# An option of other tools that is a setting here, or another command.
_SETTINGS = {
    "--port": "node config set api.port PORT",
    "--threads": "node config set work.threads N",
    "--cpus": "node config set work.threads N",
    "--device": "node config set work.device cpu",
    "--gpu": "node config set work.device auto",
    "--cpu": "node config set work.device cpu",
    "--model": "node config set llm.model NAME",
    "--detach": "up",
    "--daemon": "up",
    "--background": "up",
    "-d": "up",
    "--watch": "node events --follow",
    "--live": "node events --follow",
    "-w": "node events --follow",
    "--learner": "agent serve trainer",
}


def line_of(word: str, noun: str, commands: frozenset[str]) -> str:
    """The line that a word of another tool means, after a noun or alone; empty where none is known.

    ``commands`` are all commands by their words.
    """
    if not noun:
        return LINES.get(word, "")
    same = f"{noun} {_COMMANDS.get(word, '')}"
    alone = word if word in commands else LINES.get(word, "")
    return LINES.get(f"{noun} {word}") or (same if same in commands else alone)


def option_of(word: str, options: frozenset[str]) -> str:
    """The option of a command that one of another tool means, of ``options``; empty where it has none such."""
    return next((option for option, words in _OPTIONS.items() if option in options and word in words.split()), "")


def extra_of(word: str, options: frozenset[str]) -> str:
    """How a number or a time that follows a command without its option is typed, such as ``--for 2h``; or empty."""
    times = ("--for", "--since") if re.fullmatch(r"(\d+[smhd])+", word) else ()
    candidates = ("--limit", "--runs") if word.isdecimal() else times
    return next((f"{option} {word}" for option in candidates if option in options), "")


def argument_of(word: str, arguments: Iterable[str]) -> str:
    """The argument, such as ``TASK``, that an option of another tool names; ``arguments`` are a command's own."""
    kinds = (kind for argument in arguments for kind in argument.split("|"))
    return next((kind for kind in kinds if word in _ARGUMENTS.get(kind, "").split()), "")


def setting_of(word: str) -> str:
    """The line that does what an option of another tool does; empty where none is known."""
    return _SETTINGS.get(word, "")
