//! Secret values: which they are, and hiding them.

pub mod digest;
pub mod mask;
pub mod obvious;
pub mod secret;
pub mod splice;
