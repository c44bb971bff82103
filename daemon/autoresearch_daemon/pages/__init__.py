"""The local pages: addresses that a browser opens, each answered from the same operations as the API."""
