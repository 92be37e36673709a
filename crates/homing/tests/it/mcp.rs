//! MCP as agents meet it: `homing mcp` on pipes and `/mcp` of the daemon, with real tasks behind them.

mod asked;
mod bounds;
mod clients;
mod crashes;
mod http;
mod owners;
mod speaker;
mod tasks;
mod tools;
