//! Symbolic dimensions: polynomials over named dimensions and opaque terms, in one canonical form.

use super::ids::Text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A factor that is not a number: a name, or an operation that polynomials cannot express.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Atom {
    /// A named dimension.
    Symbol(Text),
    /// Floor of a quotient that does not divide exactly.
    FloorDiv(Expr, Expr),
    /// Remainder with the sign of the divisor.
    Mod(Expr, Expr),
    /// Larger of two.
    Max(Expr, Expr),
    /// Smaller of two.
    Min(Expr, Expr),
}

/// Product of atoms, sorted; the empty product is 1.
type Monomial = Vec<Atom>;

/// A sum of products of atoms with integer factors; two expressions that are equal as polynomials compare equal.
///
/// Arithmetic that leaves int64 gives `None`: the caller then knows nothing, rather than something wrong.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Expr(Arc<BTreeMap<Monomial, i64>>);

impl Expr {
    /// A number.
    pub fn constant(n: i64) -> Expr {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(Vec::new(), n);
        }
        Expr(Arc::new(terms))
    }

    /// A named dimension.
    pub fn symbol(name: &str) -> Expr {
        Expr::atom(Atom::Symbol(name.into()))
    }

    fn atom(atom: Atom) -> Expr {
        Expr(Arc::new(BTreeMap::from([(vec![atom], 1)])))
    }

    /// The number, when there is no symbol in it.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The name, when the expression is one named dimension and nothing else.
    pub fn as_symbol(&self) -> Option<&Text> {
        match self.0.iter().next() {
            Some((m, 1)) if self.0.len() == 1 => match m.as_slice() {
                [Atom::Symbol(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Products and their factors, in canonical order; the plain number last.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        // Names first and the plain number last reads as people write it: batch*12 + 1.
        let plain = self.0.iter().filter(|(m, _)| m.is_empty());
        self.0.iter().filter(|(m, _)| !m.is_empty()).chain(plain).map(|(m, k)| (m.as_slice(), *k))
    }

    /// Sum.
    pub fn add(&self, other: &Expr) -> Option<Expr> {
        let mut terms = (*self.0).clone();
        for (m, k) in other.0.iter() {
            add_term(&mut terms, m.clone(), *k)?;
        }
        Some(Expr(Arc::new(terms)))
    }

    /// Difference.
    pub fn sub(&self, other: &Expr) -> Option<Expr> {
        self.add(&other.mul(&Expr::constant(-1))?)
    }

    /// Product; `None` also when the result would have more than 64 terms.
    pub fn mul(&self, other: &Expr) -> Option<Expr> {
        let mut terms = BTreeMap::new();
        for (a, x) in self.0.iter() {
            for (b, y) in other.0.iter() {
                let mut m: Monomial = a.iter().chain(b).cloned().collect();
                m.sort();
                add_term(&mut terms, m, x.checked_mul(*y)?)?;
            }
        }
        (terms.len() <= 64).then(|| Expr(Arc::new(terms)))
    }

    /// Quotient when every term divides exactly, else `None`.
    pub fn exact_div(&self, other: &Expr) -> Option<Expr> {
        if other.0.len() != 1 {
            return (self == other && !self.0.is_empty()).then(|| Expr::constant(1));
        }
        let (divisor, factor) = other.0.iter().next()?;
        let mut terms = BTreeMap::new();
        for (m, k) in self.0.iter() {
            if k.checked_rem(*factor)? != 0 {
                return None;
            }
            let mut left = m.clone();
            for atom in divisor {
                let at = left.iter().position(|a| a == atom)?;
                left.remove(at);
            }
            add_term(&mut terms, left, k.checked_div(*factor)?)?;
        }
        Some(Expr(Arc::new(terms)))
    }

    /// Floor of the quotient, for a divisor that is not zero and operands that are not negative.
    ///
    /// With a positive number as divisor, terms that divide exactly are taken out, so that different ways to write the
    /// same count of windows come out equal: `floor((h - 2)/2) + 1` is `floor(h/2)`.
    pub fn floor_div(&self, other: &Expr) -> Option<Expr> {
        match (self.as_constant(), other.as_constant()) {
            (_, Some(0)) => None,
            (Some(a), Some(b)) => Some(Expr::constant(a.checked_div_euclid(b)?)),
            _ if self.exact_div(other).is_some() => self.exact_div(other),
            (None, Some(divisor)) if divisor > 0 => self.floor_div_by(divisor),
            _ => Some(Expr::atom(Atom::FloorDiv(self.clone(), other.clone()))),
        }
    }

    fn floor_div_by(&self, divisor: i64) -> Option<Expr> {
        let (mut whole, mut rest) = (BTreeMap::new(), BTreeMap::new());
        for (m, k) in self.0.iter() {
            let (quotient, remainder) = match m.is_empty() {
                true => (k.div_euclid(divisor), k.rem_euclid(divisor)),
                false if k % divisor == 0 => (k / divisor, 0),
                false => (0, *k),
            };
            for (terms, k) in [(&mut whole, quotient), (&mut rest, remainder)] {
                if k != 0 {
                    terms.insert(m.clone(), k);
                }
            }
        }
        let rest = Expr(Arc::new(rest));
        let by = Expr::constant(divisor);
        let floor = match rest.as_constant() {
            Some(n) => Expr::constant(n.div_euclid(divisor)),
            None => match rest.sole_atom() {
                // floor(floor(a/b)/c) = floor(a/(b*c)) for positive b and c.
                Some(Atom::FloorDiv(a, b)) if b.as_constant().is_some_and(|b| b > 0) => {
                    return Expr(Arc::new(whole)).add(&a.floor_div(&b.mul(&by)?)?);
                }
                _ => Expr::atom(Atom::FloorDiv(rest, by)),
            },
        };
        Expr(Arc::new(whole)).add(&floor)
    }

    fn sole_atom(&self) -> Option<&Atom> {
        match self.0.iter().next() {
            Some((m, 1)) if self.0.len() == 1 && m.len() == 1 => m.first(),
            _ => None,
        }
    }

    /// The operands, when the expression is the smaller of two and nothing else.
    pub fn as_min(&self) -> Option<(&Expr, &Expr)> {
        match self.sole_atom() {
            Some(Atom::Min(a, b)) => Some((a, b)),
            _ => None,
        }
    }

    /// The operands, when the expression is the larger of two and nothing else.
    pub fn as_max(&self) -> Option<(&Expr, &Expr)> {
        match self.sole_atom() {
            Some(Atom::Max(a, b)) => Some((a, b)),
            _ => None,
        }
    }

    /// True when the value is 0 or more whatever the sizes of the named dimensions; false when that is not certain.
    pub fn is_never_negative(&self) -> bool {
        self.is_never_negative_within(4)
    }

    fn is_never_negative_within(&self, attempts: usize) -> bool {
        let mut below = self.0.iter().filter(|(m, k)| **k < 0 || !m.iter().all(Atom::is_never_negative));
        let Some((m, k)) = below.next() else { return true };
        // -k*floor(a/b) is at least -k*a/b, and -k*min(a, b) at least -k*a and at least -k*b.
        if attempts == 0 || *k >= 0 {
            return false;
        }
        let without = |by: &Expr, factor: i64, instead: &Expr| -> Option<Expr> {
            let rest = self.sub(&Expr(Arc::new(BTreeMap::from([(m.clone(), *k)]))))?;
            rest.mul(by)?.add(&instead.mul(&Expr::constant(factor))?)
        };
        let holds = |e: Option<Expr>| e.is_some_and(|e| e.is_never_negative_within(attempts - 1));
        match m.as_slice() {
            [Atom::FloorDiv(a, b)] if b.as_constant().is_some_and(|b| b > 0) => {
                holds(without(b, *k, a))
                    || self.coarser(a, b).any(|(part, by)| holds(without(&by, *k, &part)))
            }
            [Atom::Min(a, b)] => {
                let one = Expr::constant(1);
                holds(without(&one, *k, a)) || holds(without(&one, *k, b))
            }
            _ => false,
        }
    }

    /// Terms floor(a/c) of the expression for which floor(a/b) is floor(floor(a/c)/(b/c)), each with b/c.
    fn coarser<'e>(&'e self, a: &'e Expr, b: &'e Expr) -> impl Iterator<Item = (Expr, Expr)> + 'e {
        self.0.keys().filter_map(move |m| match m.as_slice() {
            [Atom::FloorDiv(x, c)] if x == a && c != b && c.as_constant().is_some_and(|c| c > 0) => {
                Some((Expr(Arc::new(BTreeMap::from([(m.clone(), 1)]))), b.exact_div(c)?))
            }
            _ => None,
        })
    }

    /// True when the expression, with all that is nested in it, has at most `limit` numbers and names: what is kept
    /// per value must not grow along a chain of nodes.
    pub fn is_within(&self, limit: usize) -> bool {
        fn count(e: &Expr, left: &mut usize) -> bool {
            e.0.keys().all(|m| {
                let enough = *left > m.len();
                *left = left.saturating_sub(m.len() + 1);
                enough
                    && m.iter().all(|atom| match atom {
                        Atom::Symbol(_) => true,
                        Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) | Atom::Min(a, b) => {
                            count(a, left) && count(b, left)
                        }
                    })
            })
        }
        count(self, &mut { limit })
    }

    /// Remainder that belongs to [`Expr::floor_div`].
    pub fn modulo(&self, other: &Expr) -> Option<Expr> {
        match (self.as_constant(), other.as_constant()) {
            (_, Some(0)) => None,
            (Some(a), Some(b)) => Some(Expr::constant(a.checked_rem_euclid(b)?)),
            _ if self.exact_div(other).is_some() => Some(Expr::constant(0)),
            _ => Some(Expr::atom(Atom::Mod(self.clone(), other.clone()))),
        }
    }

    /// Larger of two.
    pub fn max(&self, other: &Expr) -> Expr {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Expr::constant(a.max(b)),
            _ if self == other => self.clone(),
            _ if self <= other => Expr::atom(Atom::Max(self.clone(), other.clone())),
            _ => Expr::atom(Atom::Max(other.clone(), self.clone())),
        }
    }

    /// Smaller of two.
    pub fn min(&self, other: &Expr) -> Expr {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Expr::constant(a.min(b)),
            _ if self == other => self.clone(),
            _ if self <= other => Expr::atom(Atom::Min(self.clone(), other.clone())),
            _ => Expr::atom(Atom::Min(other.clone(), self.clone())),
        }
    }

    /// Value for given sizes of the named dimensions; `None` when a name is missing or arithmetic overflows.
    pub fn evaluate(&self, size: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (m, k) in self.0.iter() {
            let mut product = *k;
            for atom in m {
                let factor = match atom {
                    Atom::Symbol(name) => size(name)?,
                    Atom::FloorDiv(a, b) => a.evaluate(size)?.checked_div_euclid(b.evaluate(size)?)?,
                    Atom::Mod(a, b) => a.evaluate(size)?.checked_rem_euclid(b.evaluate(size)?)?,
                    Atom::Max(a, b) => a.evaluate(size)?.max(b.evaluate(size)?),
                    Atom::Min(a, b) => a.evaluate(size)?.min(b.evaluate(size)?),
                };
                product = product.checked_mul(factor)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// Names of the dimensions in it, sorted, each once.
    pub fn symbols(&self) -> Vec<Text> {
        fn collect(e: &Expr, into: &mut Vec<Text>) {
            for atom in e.0.keys().flatten() {
                match atom {
                    Atom::Symbol(name) => into.push(name.clone()),
                    Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) | Atom::Min(a, b) => {
                        collect(a, into);
                        collect(b, into);
                    }
                }
            }
        }
        let mut names = Vec::new();
        collect(self, &mut names);
        names.sort();
        names.dedup();
        names
    }
}

impl Atom {
    fn is_never_negative(&self) -> bool {
        match self {
            Atom::Symbol(_) => true,
            Atom::FloorDiv(a, b) => a.is_never_negative() && b.is_never_negative(),
            Atom::Mod(_, b) => b.is_never_negative(),
            Atom::Max(a, b) => a.is_never_negative() || b.is_never_negative(),
            Atom::Min(a, b) => a.is_never_negative() && b.is_never_negative(),
        }
    }
}

fn add_term(terms: &mut BTreeMap<Monomial, i64>, m: Monomial, k: i64) -> Option<()> {
    let sum = terms.get(&m).copied().unwrap_or(0).checked_add(k)?;
    if sum == 0 {
        terms.remove(&m);
    } else {
        terms.insert(m, sum);
    }
    Some(())
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::FloorDiv(a, b) => write!(f, "floor(({a})/({b}))"),
            Atom::Mod(a, b) => write!(f, "mod({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        for (i, (m, k)) in self.terms().enumerate() {
            let sign = match (i, k < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            let factor = k.unsigned_abs();
            let mut first = true;
            if m.is_empty() || factor != 1 {
                write!(f, "{factor}")?;
                first = false;
            }
            for atom in m {
                if !first {
                    f.write_str("*")?;
                }
                write!(f, "{atom}")?;
                first = false;
            }
        }
        Ok(())
    }
}

// A file only ever names a dimension; expressions are our own inference and are written as that text.
impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Expr, D::Error> {
        Ok(Expr::symbol(&String::deserialize(d)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_polynomials_compare_equal() {
        let (b, s) = (Expr::symbol("b"), Expr::symbol("s"));
        let left = b.add(&s).unwrap().mul(&Expr::constant(12)).unwrap();
        let right = s.mul(&Expr::constant(12)).unwrap().add(&b.mul(&Expr::constant(12)).unwrap()).unwrap();
        assert_eq!(left, right);
        assert_eq!(left.to_string(), "12*b + 12*s");
        assert_eq!(left.exact_div(&Expr::constant(12)), b.add(&s));
        assert_eq!(left.sub(&right).unwrap().as_constant(), Some(0));
    }

    #[test]
    fn quotients_by_a_number_have_one_form() {
        let n = Expr::constant;
        let h = Expr::symbol("h");
        let pooled = h.sub(&n(2)).unwrap().floor_div(&n(2)).unwrap().add(&n(1)).unwrap();
        assert_eq!(pooled, h.floor_div(&n(2)).unwrap());
        let quarter = pooled.floor_div(&n(2)).unwrap();
        assert_eq!(quarter, h.floor_div(&n(4)).unwrap());
        let mixed = h.mul(&n(4)).unwrap().add(&h.mul(&h).unwrap()).unwrap().add(&n(-3)).unwrap();
        let mixed = mixed.floor_div(&n(2)).unwrap();
        for size in [0, 1, 2, 7, 10] {
            let at = |e: &Expr| e.evaluate(&|_| Some(size)).unwrap();
            assert_eq!(at(&pooled), size.div_euclid(2));
            assert_eq!(at(&quarter), size.div_euclid(4));
            assert_eq!(at(&mixed), (4 * size + size * size - 3).div_euclid(2));
        }
    }

    #[test]
    fn sign_and_size_of_expressions() {
        let h = Expr::symbol("h");
        let less = h.sub(&Expr::constant(1)).unwrap();
        assert!(h.is_never_negative() && !less.is_never_negative());
        assert!(Expr::max(&less, &Expr::constant(0)).is_never_negative());
        let remainder =
            h.sub(&h.floor_div(&Expr::constant(2)).unwrap().mul(&Expr::constant(2)).unwrap()).unwrap();
        assert!(
            remainder.is_never_negative() && !remainder.sub(&Expr::constant(1)).unwrap().is_never_negative()
        );
        let of = |n: i64| h.floor_div(&Expr::constant(n)).unwrap();
        assert!(of(8).sub(&of(16).mul(&Expr::constant(2)).unwrap()).unwrap().is_never_negative());
        assert!(!of(8).sub(&of(16).mul(&Expr::constant(3)).unwrap()).unwrap().is_never_negative());
        let left = h.sub(&Expr::min(&h, &Expr::constant(512))).unwrap();
        assert!(left.is_never_negative());
        assert!(less.is_within(3) && !less.is_within(2));
        assert!(Expr::constant(0).is_within(1));
    }

    #[test]
    fn overflow_is_not_a_number() {
        let big = Expr::constant(i64::MAX);
        assert_eq!(big.add(&Expr::constant(1)), None);
        assert_eq!(Expr::constant(i64::MIN).floor_div(&Expr::constant(-1)), None);
        assert_eq!(Expr::symbol("n").floor_div(&Expr::constant(0)), None);
    }

    #[test]
    fn inexact_quotients_stay_opaque_but_evaluate() {
        let h = Expr::symbol("h");
        let half = h.add(&Expr::constant(1)).unwrap().floor_div(&Expr::constant(2)).unwrap();
        assert_eq!(half.to_string(), "floor((h + 1)/(2))");
        assert_eq!(half.evaluate(&|n| (n == "h").then_some(7)), Some(4));
        assert_eq!(half.evaluate(&|_| None), None);
    }
}
