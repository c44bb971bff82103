"""Questions about participants: attestation, claims, evidence, verification, voters."""
