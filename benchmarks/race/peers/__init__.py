"""The peers by name. A new one is a small class in one of these modules and a line in its PEERS."""

from importlib import import_module

from . import coordinate, liblinear, ours, scikit, second_order
from .base import Extras, Peer, Refused

__all__ = ["OURS", "PROTOTYPE", "Extras", "Peer", "Refused", "find", "names"]

OURS, PROTOTYPE = ours.Adaspdc.name, ours.Prototype.name

_PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        ours.Adaspdc,
        *liblinear.PEERS,
        *scikit.PEERS,
        *coordinate.PEERS,
        *second_order.PEERS,
        ours.Prototype,
    )
}


def names() -> list[str]:
    """Every peer, adaspdc first."""
    return list(_PEERS)


def find(name: str) -> type[Peer]:
    """The class of a peer; ``module:Class`` names one from elsewhere."""
    if ":" in name:
        module, _, cls = name.partition(":")
        found: type[Peer] = getattr(import_module(module), cls)
        return found
    return _PEERS[name]
