//! From a model and its blocks to a picture: what is open, where everything goes.

pub mod layout;
pub mod picture;

pub use picture::{BoxKind, Family, Item, Line, Mark, Picture, PictureBox, Place, Point, Rect, Tag};
