//! The pipeline: which passes run in which order, one numbered step a rewrite, what is kept of it, and why it stopped.

pub mod config;
mod exclusions;
mod graph_hash;
mod intern;
pub mod key;
pub mod log;
mod neighbourhood;
pub mod provenance;
pub mod registry;
pub mod run;
mod spoken;
pub mod state;
pub mod unmatched;

pub use config::{Config, ConfigError, Scope};
pub use graph_hash::graph_hash;
pub use key::SiteKey;
pub use log::Event;
pub use provenance::{Effects, Provenance};
pub use registry::Registry;
pub use run::{Failure, ListedSite, Options, PassRun, Progress, Run, Runner, StopReason};
pub use state::{Refusal, State, Step};
pub use unmatched::{Seen, Unmatched, unmatched};
