"""The network's child: libp2p and trio stay in here."""
