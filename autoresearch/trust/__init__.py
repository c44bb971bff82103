"""Who is who: keys, devices, networks, invites, admissions, attestation by mail."""
