"""Attestation by mail as it happens: asking, mailing, what an attestor did."""
