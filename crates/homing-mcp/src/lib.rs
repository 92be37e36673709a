//! The MCP server of homing.
