//! stub
/// s
pub struct Sample {
    pub name: &'static str,
    pub title: &'static str,
    pub summary: &'static str,
    pub build: fn() -> crate::ir::Model,
}
/// s
pub fn all() -> &'static [Sample] {
    &[]
}
