//! The window (feature `gui`): draws the session and sends it commands. Holds no truth of its own.

pub mod app;
pub mod bench;
pub mod canvas;
pub mod display;
pub mod files;
mod gather;
pub mod headless;
mod inspect;
mod lit;
pub mod panels;
pub mod raster;
pub mod rows;
pub mod script;
pub mod settings;
pub mod sheet;
pub mod shell;
#[cfg(test)]
mod tests;
pub mod theme;
pub mod verbs;
mod window;

pub use display::{NoWindow, Opened};
pub use window::run;
