"""The network's knowledge and this node's worker as tools of the Model Context Protocol (MCP)."""
