//! passlens
