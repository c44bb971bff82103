"""Attestation as it happens: asking for it, and the extension by which this node attests."""
