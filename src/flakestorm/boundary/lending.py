"""Lending a standing gateway's port to a run.

An agent that somebody else started keeps the URLs it was given, so its calls arrive at one port whoever is interested
in them. While a command judges such an agent, the gateway at that port lends it the listening socket itself: the run's
own gateway then accepts the agent's connections and knows its token. Every way in, every fault and every stream is
what it is for a launched agent, and nothing stands in between.

Lender and borrower meet at a Unix socket whose name follows from the token, so whoever knows the gateway's URL, and
nobody else, can find it. The connection is the loan: when the borrower goes, however it ends, the system closes it, and
the lender accepts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from flakestorm.boundary.announcing import PLACE
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.outward import Outward, Proxies
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.providers import Upstreams
from flakestorm.boundary.trust import Trust
from flakestorm.errors import AgentUnreachable

__all__ = ["Lender", "Loan", "borrow"]

_ANSWER_BYTES = 64 * 1024
_ANSWER_S = 10.0


class Lender:
    """The gateway's side: lends its port to one borrower at a time.

    Args:
        gateway: whose port it is; it has been started.
        passage: the agent's; its token and upstreams go with the port.
        variables: what the agent was given.
    """

    def __init__(self, gateway: Gateway, passage: Passage, variables: Mapping[str, str]) -> None:
        self._gateway, self._passage, self._variables = gateway, passage, dict(variables)
        self._door: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.Task[None] | None = None
        self._lent = False

    def start(self) -> None:
        """Wait for borrowers.

        Raises:
            OSError: this system has no such sockets, or there is no room for one.
        """
        if not hasattr(socket, "send_fds"):
            raise OSError("this system cannot hand a socket to another process")
        door = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)  # nobody else may knock
        try:
            door.bind(str(_door(self._passage.token)))
            door.listen()
            door.setblocking(False)
        except OSError:
            door.close()
            raise
        finally:
            os.umask(before)
        self._door = door
        self._spawn(door)

    async def close(self) -> None:
        """Lend no more. A port that is lent stays with its borrower."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._resuming is not None:
            await self._resuming
        if self._door is not None:
            self._door.close()
            self._door = None
            _door(self._passage.token).unlink(missing_ok=True)

    def _spawn(self, door: socket.socket, borrower: socket.socket | None = None) -> None:
        work = self._welcome(door) if borrower is None else self._serve(borrower)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _welcome(self, door: socket.socket) -> None:
        while True:
            borrower, _ = await asyncio.get_running_loop().sock_accept(door)
            self._spawn(door, borrower)

    async def _serve(self, borrower: socket.socket) -> None:
        """One loan, from the moment it is asked for to its end."""
        with borrower, contextlib.suppress(OSError):
            borrower.setblocking(False)
            if self._lent:
                borrower.send(b'{"busy":true}\n')
                return
            self._lent = True
            try:
                with await self._gateway.lend() as listener:
                    socket.send_fds(borrower, [orjson.dumps(self._terms()) + b"\n"], [listener.fileno()])
                await asyncio.get_running_loop().sock_recv(borrower, 1)  # nothing is ever sent: this is the end
            finally:
                self._resuming = asyncio.get_running_loop().create_task(self._gateway.resume())
                await asyncio.shield(self._resuming)  # half a resumption would leave a socket behind
                self._lent = False

    def _terms(self) -> dict[str, object]:
        """What the borrower needs to be to the agent what this gateway is: the fields of `Loan`."""
        passage, interception = self._passage, self._gateway.interception
        return {
            "token": passage.token,
            "upstreams": passage.upstreams,
            "trusted": passage.outward.trust.places,
            "proxies": asdict(passage.outward.proxies),
            "authority": () if interception is None else interception.authority(),
            "variables": self._variables,
        }


@dataclass(frozen=True, slots=True)
class Loan:
    """The borrower's side.

    Args:
        token, upstreams: of the agent's passage.
        outward: how the world is reached on the agent's behalf.
        authority: whom the agent trusts for TLS, as `Interception.authority` has it; empty where nobody intercepts.
        variables: what the agent was given.
        listener: where its connections arrive.
        bond: the connection to the lender; closing it ends the loan.
    """

    token: str
    upstreams: Upstreams
    outward: Outward
    authority: tuple[str, ...]
    variables: dict[str, str]
    listener: socket.socket
    bond: socket.socket

    def close(self) -> None:
        """Give the port back."""
        self.listener.close()
        self.bond.close()


def borrow(url: str) -> Loan | None:
    """Borrow the port of the gateway at this URL; None if there is none any more, or it lends nothing. Blocks.

    Args:
        url: anything on the gateway, as `flakestorm gateway` prints it.

    Raises:
        AgentUnreachable: it is lent already; the message says what to do.
    """
    found = PLACE.match(url)
    if found is None or not hasattr(socket, "recv_fds"):
        return None
    bond = socket.socket(socket.AF_UNIX)
    try:
        bond.settimeout(_ANSWER_S)
        bond.connect(str(_door(found["token"])))
        answer, handed, _, _ = socket.recv_fds(bond, _ANSWER_BYTES, 1)
        while answer[-1:] not in (b"\n", b""):
            more = bond.recv(_ANSWER_BYTES)
            answer = answer + more if more else b""
    except OSError:
        bond.close()
        return None
    terms = orjson.loads(answer or b"{}")
    if not handed:
        bond.close()
        if "busy" not in terms:
            return None
        raise AgentUnreachable(
            f"the gateway at {_root(found)} is being used by another run, and its agent serves one at a time; wait for "
            "that one to end"
        )
    bond.settimeout(None)
    return Loan(
        token=terms["token"],
        upstreams=terms["upstreams"],
        outward=Outward(Trust(tuple(terms["trusted"])), Proxies(**terms["proxies"])),
        authority=tuple(terms["authority"]),
        variables=terms["variables"],
        listener=socket.socket(fileno=handed[0]),
        bond=bond,
    )


def _door(token: str) -> Path:
    name = hashlib.sha256(token.encode()).hexdigest()[:32]
    return Path(tempfile.gettempdir(), f"flakestorm-{name}.sock")


def _root(found: re.Match[str]) -> str:
    """The gateway's address, without the token."""
    return found[0].partition("/r/")[0]
