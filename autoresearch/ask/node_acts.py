"""What a running node is asked, and what it is asked to do. Each is declared here once; the daemon carries it out.

An act of a name is the daemon's method of that name, at once or awaited. Clients call them by this class:
``client.ask(Node.work, WorkRequest(...))``.
"""

from __future__ import annotations

from typing import Protocol

from autoresearch.ask import node, requests
from autoresearch.ask.discussion import AskAnswer, CheatAnswer, ClaimAnswer
from autoresearch.ask.operation import operation
from autoresearch.ask.people import participants
from autoresearch.ask.registry.components import ReleaseAnswer

# The daemon may fetch the run's files from other nodes first.
VERIFY_SECONDS = 150.0
# A repository is fetched first.
PUBLISH_SECONDS = 300.0
# Attestors hash the address and hand a mail to their server; the next is asked in place of one that says no.
ATTEST_SECONDS = 300.0
# The node at an address is asked.
JOIN_SECONDS = 90.0
# A program whose time nobody knows runs twice for five minutes at most.
NEW_TASK_SECONDS = 900.0
# As long as the setting `llm.seconds` lets a model think at most.
ASK_SECONDS = 3600.0


class Node(Protocol):
    """A running node."""

    @operation("GET /healthz")
    def health(self) -> node.Health:
        """Whether the daemon is alive."""

    @operation("GET /readyz")
    def ready(self) -> node.Health:
        """Whether the node can work; with HTTP status 503 and the reason if not."""

    @operation("GET /v1/status")
    def status(self) -> node.StatusAnswer:
        """What the node does, and why."""

    @operation("POST /v1/evidence/{id}/check", seconds=VERIFY_SECONDS)
    def check_evidence(self, request: requests.OneEvidence) -> node.RunAccepted:
        """Measure again here what a verifier states; the event `evidence` has the answer, and nothing goes out."""

    @operation("GET /v1/peers")
    def peers(self) -> node.PeersAnswer:
        """This node on the network, its peers, the participants behind them and what the log shows of them."""

    @operation("GET /v1/attest")
    def attestation(self) -> participants.AttestAnswer:
        """How this participant stands with the attestors, and which codes are awaited."""

    @operation("GET /v1/attestor")
    def attestor(self) -> participants.AttestorAnswer:
        """What this node mailed, attested and refused as an attestor; never an address."""

    @operation("POST /v1/work")
    def work(self, request: requests.WorkRequest) -> node.StatusAnswer:
        """Order work: for a number of runs, for a time, or until told otherwise; verify for that share of the time."""

    @operation("POST /v1/orders/cancel")
    def cancel_order(self, request: requests.CancelRequest) -> node.StatusAnswer:
        """Cancel an order and end its runs in hand; 404 when there is none of that number."""

    @operation("POST /v1/pause")
    def pause(self, request: requests.PauseRequest) -> node.StatusAnswer:
        """Pause, until a time or for ever."""

    @operation("POST /v1/resume")
    def resume(self) -> node.StatusAnswer:
        """End a pause."""

    @operation("POST /v1/finish")
    def finish(self) -> node.StatusAnswer:
        """End the run in hand, then stop working."""

    @operation("GET /v1/proposals")
    def proposals(self) -> node.QueueAnswer:
        """The programs that were proposed and wait for a worker."""

    @operation("POST /v1/proposals")
    def propose(self, request: requests.ProposeRequest) -> node.ProposedAnswer:
        """Queue a program, given as text: it is run as a change of `parent`, with `seeds` seeds."""

    @operation("POST /v1/proposals/drop")
    def drop_proposal(self, request: requests.DropRequest) -> node.QueueAnswer:
        """Take a proposal out of the queue, or stop its run; 404 when there is neither."""

    @operation("POST /v1/verify", seconds=VERIFY_SECONDS)
    def verify(self, request: requests.VerifyRequest) -> node.RunAccepted:
        """Measure a run of another participant here."""

    @operation("POST /v1/peers")
    def dial(self, request: requests.DialRequest) -> node.PeersAnswer:
        """Connect to another node and stay connected; 409 while the network is off."""

    @operation("POST /v1/peers/block")
    def block(self, request: requests.BlockRequest) -> node.PeersAnswer:
        """Refuse a peer from now on; with `blocked` false no longer."""

    @operation("POST /v1/fetch")
    def fetch(self, request: requests.FetchRequest) -> node.Health:
        """Get a blob from other nodes, within `seconds`, unless it is here."""

    @operation("POST /v1/settings")
    def set_setting(self, request: requests.SettingRequest) -> node.ConfigAnswer:
        """Change a setting in the file; the node goes by it at once where it can, else from its next start."""

    @operation("POST /v1/network/join", seconds=JOIN_SECONDS)
    def join_network(self, request: requests.JoinRequest) -> node.JoinedAnswer:
        """Join a network: make it the one in use, beside those that this home has, and begin again in it."""

    @operation("POST /v1/tasks/new", seconds=NEW_TASK_SECONDS)
    def new_task(self, request: requests.NewTaskRequest) -> node.NewTaskAnswer:
        """Make the program in a folder a task: run it in the sandbox, find its number, write task.toml."""

    @operation("POST /v1/name")
    def set_name(self, request: requests.NameRequest) -> node.StatusAnswer:
        """Publish the name that stands beside this participant's key; an empty one takes it away."""

    @operation("GET /v1/voters")
    def voters(self) -> node.VotersAnswer:
        """Who counts in this network, why, and who could."""

    @operation("POST /v1/admissions")
    def admit(self, request: requests.AdmitRequest) -> node.VotersAnswer:
        """As a founder, count a participant from now on, or no longer; 409 for anybody else."""

    @operation("POST /v1/releases", seconds=PUBLISH_SECONDS)
    def publish_release(self, request: requests.PublishRequest) -> ReleaseAnswer:
        """Publish a folder, a file or a commit of a repository as a release; 409 where that version is published."""

    @operation("GET /v1/services")
    def services(self) -> node.ServicesAnswer:
        """The components that this machine serves, and this participant's other machines: where, since when."""

    @operation("POST /v1/claims")
    def claim(self, request: requests.ClaimRequest) -> ClaimAnswer:
        """Claim a program, so that no other node tries it; 409 when one does, or has run it."""

    @operation("POST /v1/ask", seconds=ASK_SECONDS)
    def ask(self, request: requests.AskRequest) -> AskAnswer:
        """What the log says to a question: values tried, notes, runs, failures; in a model's words where one is set."""

    @operation("POST /v1/cheats", seconds=ASK_SECONDS)
    def cheat(self, request: requests.CheatRequest) -> CheatAnswer:
        """A cheat on a folder's task, or a mend, by the model or the agent; 409 where none may be asked."""

    @operation("POST /v1/trust")
    def trust(self) -> node.TrustAnswer:
        """Read the trusted keys from the network's file again; 409 when it is another network's file."""

    @operation("POST /v1/attest", seconds=ATTEST_SECONDS)
    def attest(self, request: participants.AttestRequest) -> participants.AttestAnswer:
        """Have attestors write to an address, which is kept nowhere."""

    @operation("POST /v1/attest/confirm", seconds=ATTEST_SECONDS)
    def confirm(self, request: participants.ConfirmRequest) -> participants.AttestAnswer:
        """Bring an attestor the root key's answer to its code."""

    @operation("POST /v1/attestor/withdraw")
    def withdraw_attestation(self, request: participants.WithdrawRequest) -> participants.AttestorAnswer:
        """Withdraw this attestor's attestation of a participant, and refuse its mailbox."""

    @operation("POST /v1/attestor/allow")
    def allow(self, request: participants.AllowRequest) -> participants.AttestorAnswer:
        """Attest that mailbox again, when it is shown anew."""

    @operation("POST /v1/restart")
    def restart(self) -> node.Health:
        """End the daemon and begin again in the same process, with the settings and the network in use of then."""

    @operation("POST /v1/stop")
    def stop(self) -> node.Health:
        """End the daemon."""
