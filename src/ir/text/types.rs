//! Types and dimensions, printed and parsed.

use super::lex::Token;
use super::parse::{Parser, Result};
use super::write::{is_identifier, name, quoted};
use crate::ir::symbolic::{Atom, Expr};
use crate::ir::types::{Dim, ElementType, Shape, Type};

/// A type as the text form writes it.
pub(super) fn type_text(ty: &Type) -> String {
    match ty {
        Type::Unknown => "unknown".to_owned(),
        Type::Tensor { element, shape } => format!("{element}{}", shape_suffix(shape.as_ref())),
        Type::Sparse { element, shape } => {
            format!("sparse_tensor({element}{})", shape_suffix(shape.as_ref()))
        }
        Type::Sequence(of) => format!("seq({})", type_text(of)),
        Type::Optional(of) => format!("optional({})", type_text(of)),
        Type::Map { key, value } => format!("map({key}, {})", type_text(value)),
        Type::Opaque { domain, name: n } if domain.is_empty() => format!("opaque({})", name(n)),
        Type::Opaque { domain, name: n } => format!("opaque({}, {})", name(domain), name(n)),
    }
}

fn shape_suffix(shape: Option<&Shape>) -> String {
    match shape {
        None => "[]".to_owned(),
        Some(shape) if shape.is_empty() => String::new(),
        Some(shape) => {
            let dims: Vec<String> = shape.iter().map(dim_text).collect();
            format!("[{}]", dims.join(", "))
        }
    }
}

fn dim_text(dim: &Dim) -> String {
    match dim {
        Dim::Fixed(n) => n.to_string(),
        Dim::Unknown => "?".to_owned(),
        Dim::Symbolic(e) => match e.as_symbol() {
            Some(symbol) => name(symbol),
            None => format!("({})", expr_text(e)),
        },
    }
}

const FUNCTIONS: [&str; 4] = ["floor", "mod", "max", "min"];

fn expr_text(e: &Expr) -> String {
    let mut out = String::new();
    for (atoms, factor) in e.terms() {
        out.push_str(match (out.is_empty(), factor < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        });
        let mut parts: Vec<String> = atoms.iter().map(atom_text).collect();
        if factor.unsigned_abs() != 1 || parts.is_empty() {
            parts.insert(0, factor.unsigned_abs().to_string());
        }
        out.push_str(&parts.join("*"));
    }
    if out.is_empty() { "0".to_owned() } else { out }
}

fn atom_text(atom: &Atom) -> String {
    let (function, a, b) = match atom {
        Atom::Symbol(s) if is_identifier(s) && !FUNCTIONS.contains(&&**s) => return s.to_string(),
        Atom::Symbol(s) => return quoted(s),
        Atom::FloorDiv(a, b) => ("floor", a, b),
        Atom::Mod(a, b) => ("mod", a, b),
        Atom::Max(a, b) => ("max", a, b),
        Atom::Min(a, b) => ("min", a, b),
    };
    format!("{function}({}, {})", expr_text(a), expr_text(b))
}

impl Parser<'_, '_> {
    /// True when a type stands here: its first word, followed by what cannot follow a name of that spelling.
    pub(super) fn at_type(&mut self) -> Result<bool> {
        let Token::Word(word) = *self.peek(0)? else { return Ok(false) };
        let scalar = word == "unknown" || ElementType::from_name(word).is_some();
        let composed = matches!(word, "seq" | "map" | "optional" | "sparse_tensor" | "opaque");
        Ok(match self.peek(1)? {
            Token::Mark('(') => composed,
            Token::Mark('[') | Token::Word(_) | Token::Quoted(_) => scalar,
            _ => false,
        })
    }

    pub(super) fn ty(&mut self) -> Result<Type> {
        self.enter()?;
        let at = self.at()?;
        let word = self.word("a type")?;
        let ty = match word {
            "unknown" => Type::Unknown,
            "seq" => Type::Sequence(Box::new(self.in_parentheses(Self::ty)?)),
            "optional" => Type::Optional(Box::new(self.in_parentheses(Self::ty)?)),
            "sparse_tensor" => self.in_parentheses(|p| {
                let element = p.element()?;
                Ok(Type::Sparse { element, shape: p.shape()? })
            })?,
            "map" => self.in_parentheses(|p| {
                let key = p.element()?;
                p.expect(',', "and the type of the map's values")?;
                Ok(Type::Map { key, value: Box::new(p.ty()?) })
            })?,
            "opaque" => self.in_parentheses(|p| {
                if matches!(p.peek(0)?, Token::Mark(')')) {
                    return Ok(Type::Opaque { domain: "".into(), name: "".into() });
                }
                let first = p.dotted("the opaque type's name")?;
                Ok(match p.eat(',')? {
                    true => Type::Opaque {
                        domain: first.into(),
                        name: p.quotable("the opaque type's name")?.into(),
                    },
                    false => Type::Opaque { domain: "".into(), name: first.into() },
                })
            })?,
            word => match ElementType::from_name(word) {
                Some(element) => Type::Tensor { element, shape: self.shape()? },
                None => {
                    return Err(
                        self.error(at, format!("expected a type (float, int64, seq, …), found '{word}'"))
                    );
                }
            },
        };
        self.leave();
        Ok(ty)
    }

    pub(super) fn element(&mut self) -> Result<ElementType> {
        let at = self.at()?;
        let word = self.word("an element type")?;
        ElementType::from_name(word).ok_or_else(|| {
            self.error(at, format!("expected an element type (float, int64, …), found '{word}'"))
        })
    }

    /// `[…]`, `[]` for an unknown rank, nothing for a scalar.
    fn shape(&mut self) -> Result<Option<Shape>> {
        if !self.eat('[')? {
            return Ok(Some(Shape::new()));
        }
        if self.eat(']')? {
            return Ok(None);
        }
        let mut dims = Shape::new();
        loop {
            dims.push(self.dim()?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']', "after the dimensions")?;
        Ok(Some(dims))
    }

    fn dim(&mut self) -> Result<Dim> {
        let at = self.at()?;
        if self.eat('?')? {
            return Ok(Dim::Unknown);
        }
        if self.eat('(')? {
            let e = self.expr()?;
            self.expect(')', "after the dimension's expression")?;
            return Ok(Dim::Symbolic(e));
        }
        if let Token::Number(n) = *self.peek(0)? {
            self.next()?;
            // Some exporters write -1 for what they do not know.
            if n.parse::<i64>().is_ok_and(|n| n < 0) {
                return Ok(Dim::Unknown);
            }
            let size = n.parse().map_err(|_| self.error(at, format!("'{n}' is no size of a dimension")))?;
            return Ok(Dim::Fixed(size));
        }
        Ok(Dim::symbol(&self.quotable("a dimension: a number, a name, ?, or an expression in parentheses")?))
    }

    fn expr(&mut self) -> Result<Expr> {
        self.enter()?;
        let at = self.at()?;
        let mut sum = Expr::constant(0);
        let mut negative = self.eat('-')?;
        loop {
            let term = self.term(negative)?;
            sum = sum.add(&term).ok_or_else(|| self.too_large(at))?;
            // "n -1" reads as n and a number with a sign.
            match self.peek(0)? {
                Token::Mark('+') => negative = false,
                Token::Mark('-') => negative = true,
                _ => break,
            }
            self.next()?;
        }
        self.leave();
        Ok(sum)
    }

    fn too_large(&self, at: usize) -> super::TextError {
        self.error(at, "this expression's numbers do not fit 64 bits, or it has too many terms")
    }

    fn term(&mut self, negative: bool) -> Result<Expr> {
        let at = self.at()?;
        let mut product = Expr::constant(if negative { -1 } else { 1 });
        loop {
            let factor = self.factor(negative)?;
            // The smallest integer has no positive counterpart: its sign is taken with it.
            product = match factor.as_constant() {
                Some(i64::MIN) if negative => factor,
                _ => product.mul(&factor).ok_or_else(|| self.too_large(at))?,
            };
            if !self.eat('*')? {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self, negative: bool) -> Result<Expr> {
        let at = self.at()?;
        if let Token::Number(n) = *self.peek(0)? {
            self.next()?;
            if negative && n == "9223372036854775808" {
                return Ok(Expr::constant(i64::MIN));
            }
            return n.parse().map(Expr::constant).map_err(|_| self.error(at, format!("'{n}' is no integer")));
        }
        let function = match *self.peek(0)? {
            Token::Word(word) if FUNCTIONS.contains(&word) => Some(word),
            _ => None,
        };
        let Some(function) = function else {
            return Ok(Expr::symbol(&self.quotable("a number, a dimension's name, floor, mod, max or min")?));
        };
        self.next()?;
        let (a, b) = self.in_parentheses(|p| {
            let a = p.expr()?;
            p.expect(',', "between two operands")?;
            Ok((a, p.expr()?))
        })?;
        let result = match function {
            "floor" => a.floor_div(&b),
            "mod" => a.modulo(&b),
            "max" => Some(Expr::max(&a, &b)),
            _ => Some(Expr::min(&a, &b)),
        };
        result.ok_or_else(|| {
            self.error(at, format!("{function} of these is not defined (division by zero or overflow)"))
        })
    }
}
