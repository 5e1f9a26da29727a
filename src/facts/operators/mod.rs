//! stub
pub struct D {
    pub attribute: &'static str,
    pub value: crate::ir::AttributeValue,
}
pub fn summary(_: &str) -> Option<&'static str> {
    None
}
pub fn attributes(_: &str, _: i64) -> impl Iterator<Item = &'static D> {
    std::iter::empty()
}
