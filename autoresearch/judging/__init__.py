"""The rules of verification: committees, pairs, states, scores, evidence against a signer. Pure."""
