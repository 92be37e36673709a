//! Owners that no environment names.

/// Whose a task is that nobody claims.
pub const DEFAULT_OWNER: &str = "user";
