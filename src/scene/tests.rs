//! Pictures of small models made by hand.

use super::*;
