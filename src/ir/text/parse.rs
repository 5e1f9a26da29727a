//! Text to syntax: what stands where, with names still as names. [`super::lower`] gives them meaning.

use super::lex::{At, Lexer, Token, error_at};
use super::notes::{FUNCTION, GRAPH, MODEL, NODE, Notes};
use super::{Fetch, TextError};
use crate::ir::attribute::AttributeValue;
use crate::ir::ids::Text;
use crate::ir::model::Header;
use crate::ir::node::{Declaration, Extra};
use crate::ir::tensor::Constant;
use crate::ir::types::Type;
use bytes::Bytes;
use std::collections::VecDeque;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

pub(super) type Result<T> = std::result::Result<T, TextError>;

/// Bodies in bodies, types in types and operands in operands may be nested this deep.
const DEPTH: u32 = 100;

/// A model with names in place of ids.
pub(super) struct ModelText {
    pub header: Header,
    pub graph: GraphText,
    pub functions: Vec<FunctionText>,
}

pub(super) struct FunctionText {
    pub at: At,
    pub name: Text,
    pub domain: Text,
    pub overload: Text,
    pub attributes: Vec<Text>,
    pub defaults: Vec<AttributeText>,
    pub opsets: Vec<(Text, i64)>,
    pub extra: Option<Arc<Extra>>,
    pub graph: GraphText,
}

#[derive(Default)]
pub(super) struct GraphText {
    pub name: Text,
    pub doc: Text,
    pub metadata: Vec<(Text, Text)>,
    pub annotations: Vec<(Text, Bytes)>,
    pub extra: Option<Arc<Extra>>,
    pub inputs: Vec<Item>,
    pub outputs: Vec<Item>,
    pub items: Vec<Item>,
    pub nodes: Vec<NodeText>,
}

/// A port, a declaration or an initializer.
pub(super) struct Item {
    pub at: At,
    pub name: Text,
    /// Type that is declared; `None` where no type stands.
    pub declaration: Option<Declaration>,
    pub constant: Option<Constant>,
    pub position: Option<u32>,
    pub value_type: Option<Type>,
    pub stray: bool,
}

pub(super) struct NodeText {
    pub name: Text,
    pub domain: Text,
    pub op_type: Text,
    pub overload: Text,
    pub inputs: Vec<(At, Text)>,
    pub outputs: Vec<(At, Text)>,
    pub attributes: Vec<AttributeText>,
    pub doc: Text,
    pub metadata: Vec<(Text, Text)>,
    pub extra: Option<Arc<Extra>>,
}

pub(super) struct AttributeText {
    pub at: At,
    pub name: Text,
    pub value: ValueText,
    pub doc: Text,
    pub extra: Option<Arc<Extra>>,
}

pub(super) enum ValueText {
    Plain(AttributeValue),
    Graph(Box<GraphText>),
    Graphs(Vec<GraphText>),
}

pub(super) struct Parser<'t, 'f> {
    lexer: Lexer<'t>,
    ahead: VecDeque<(At, Token<'t>)>,
    depth: u32,
    pub(super) base: &'f Path,
    pub(super) fetch: &'f mut Fetch<'f>,
}

impl<'t, 'f> Parser<'t, 'f> {
    pub fn new(text: &'t str, base: &'f Path, fetch: &'f mut Fetch<'f>) -> Parser<'t, 'f> {
        Parser { lexer: Lexer::new(text), ahead: VecDeque::new(), depth: 0, base, fetch }
    }

    /// The token `n` places ahead.
    pub(super) fn peek(&mut self, n: usize) -> Result<&Token<'t>> {
        while self.ahead.len() <= n {
            let token = self.lexer.next()?;
            self.ahead.push_back(token);
        }
        Ok(&self.ahead[n].1)
    }

    /// Where the next token begins.
    pub(super) fn at(&mut self) -> Result<At> {
        self.peek(0)?;
        Ok(self.ahead[0].0)
    }

    pub(super) fn next(&mut self) -> Result<(At, Token<'t>)> {
        match self.ahead.pop_front() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    pub(super) fn error(&self, at: At, what: impl Into<String>) -> TextError {
        error_at(self.lexer.text(), at, what)
    }

    fn wanted(&mut self, what: &str) -> TextError {
        match self.next() {
            Ok((at, token)) => self.error(at, format!("expected {what}, found {}", token.describe())),
            Err(e) => e,
        }
    }

    pub(super) fn eat(&mut self, mark: char) -> Result<bool> {
        let here = *self.peek(0)? == Token::Mark(mark);
        if here {
            self.next()?;
        }
        Ok(here)
    }

    /// A mark that must stand here; `place` says where that is.
    pub(super) fn expect(&mut self, mark: char, place: &str) -> Result<()> {
        if self.eat(mark)? { Ok(()) } else { Err(self.wanted(&format!("'{mark}' {place}"))) }
    }

    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth <= DEPTH {
            return Ok(());
        }
        let at = self.at()?;
        Err(self.error(at, format!("this is nested more than {DEPTH} deep")))
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'t str> {
        match *self.peek(0)? {
            Token::Word(word) => {
                self.next()?;
                Ok(word)
            }
            _ => Err(self.wanted(what)),
        }
    }

    /// A name, quoted or not.
    pub(super) fn quotable(&mut self, what: &str) -> Result<String> {
        match self.peek(0)? {
            Token::Word(word) => {
                let word = word.to_string();
                self.next()?;
                Ok(word)
            }
            Token::Quoted(_) => self.quoted(what),
            _ => Err(self.wanted(what)),
        }
    }

    fn quoted(&mut self, what: &str) -> Result<String> {
        match self.peek(0)? {
            Token::Quoted(_) => match self.next()? {
                (_, Token::Quoted(text)) => Ok(text),
                (at, _) => Err(self.error(at, format!("expected {what}"))),
            },
            _ => Err(self.wanted(what)),
        }
    }

    /// Names with points between them.
    pub(super) fn dotted(&mut self, what: &str) -> Result<String> {
        let mut name = self.quotable(what)?;
        while self.eat('.')? {
            name.push('.');
            name.push_str(&self.quotable(what)?);
        }
        Ok(name)
    }

    pub(super) fn text(&mut self) -> Result<Text> {
        self.quoted("text in quotes").map(Into::into)
    }

    /// Quoted text or base64.
    pub(super) fn string(&mut self, what: &str) -> Result<Bytes> {
        match self.next()? {
            (_, Token::Quoted(text)) => Ok(text.into_bytes().into()),
            (_, Token::Bytes(bytes)) => Ok(bytes.into()),
            (at, other) => Err(self.error(at, format!("expected {what}, found {}", other.describe()))),
        }
    }

    pub(super) fn number<N: FromStr>(&mut self, what: &str) -> Result<N> {
        match *self.peek(0)? {
            Token::Number(n) => {
                let at = self.at()?;
                self.next()?;
                n.parse().map_err(|_| self.error(at, format!("expected {what}, found '{n}'")))
            }
            _ => Err(self.wanted(what)),
        }
    }

    pub(super) fn int(&mut self) -> Result<i64> {
        self.number("an integer of 64 bits")
    }

    pub(super) fn in_parentheses<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect('(', "here")?;
        let result = inner(self)?;
        self.expect(')', "to close the parenthesis")?;
        Ok(result)
    }

    /// `[…, …]`.
    pub(super) fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect('[', "before the list")?;
        let mut list = Vec::new();
        while !self.eat(']')? {
            if !list.is_empty() {
                self.expect(',', "between two entries of the list")?;
            }
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// The whole text.
    pub fn model(mut self) -> Result<ModelText> {
        let header = match self.peek(0)? {
            Token::Mark('<') => self.entries('<', '>', MODEL)?,
            _ => Notes::default(),
        };
        let graph = self.graph(false)?;
        let mut functions = Vec::new();
        while *self.peek(0)? != Token::End {
            functions.push(self.function()?);
        }
        Ok(ModelText { header: model_header(header), graph, functions })
    }

    fn function(&mut self) -> Result<FunctionText> {
        let at = self.at()?;
        let mut notes = match self.peek(0)? {
            Token::Mark('<') => self.entries('<', '>', FUNCTION)?,
            _ => Notes::default(),
        };
        let mut graph = GraphText::default();
        let name: Text = self.quotable("the name of a function, or the end of the text")?.into();
        graph.name = name.clone();
        self.graph_notes(&mut graph)?;
        graph.doc = notes.doc.take().unwrap_or_default();
        graph.metadata = std::mem::take(&mut notes.metadata);
        let (mut attributes, mut defaults) = (Vec::new(), Vec::new());
        if self.eat('<')? {
            while !self.eat('>')? {
                match self.peek(1)? {
                    Token::Mark(',' | '>') => {
                        attributes.push(self.quotable("the name of an attribute")?.into())
                    }
                    _ => defaults.push(self.attribute()?),
                }
                if !matches!(self.peek(0)?, Token::Mark('>')) {
                    self.expect(',', "between two attributes")?;
                }
            }
        }
        self.rest_of_graph(&mut graph, true)?;
        Ok(FunctionText {
            at,
            name,
            domain: notes.domain.take().unwrap_or_default(),
            overload: notes.overload.take().unwrap_or_default(),
            attributes,
            defaults,
            opsets: notes.opsets.take().unwrap_or_default(),
            extra: notes.extra(),
            graph,
        })
    }

    /// `name (…) => (…) <…> {…}`.
    pub(super) fn graph(&mut self, function: bool) -> Result<GraphText> {
        self.enter()?;
        let mut graph =
            GraphText { name: self.quotable("the name of a graph")?.into(), ..GraphText::default() };
        self.graph_notes(&mut graph)?;
        self.rest_of_graph(&mut graph, function)?;
        self.leave();
        Ok(graph)
    }

    fn graph_notes(&mut self, graph: &mut GraphText) -> Result<()> {
        let mut notes = self.notes(GRAPH)?;
        graph.extra = notes.extra();
        graph.doc = notes.doc.unwrap_or_default();
        graph.metadata = notes.metadata;
        graph.annotations = notes.annotations;
        if let Some(name) = notes.graph_name {
            graph.name = name;
        }
        Ok(())
    }

    fn rest_of_graph(&mut self, graph: &mut GraphText, function: bool) -> Result<()> {
        graph.inputs = self.ports(function, "before the inputs")?;
        if *self.peek(0)? != Token::Arrow {
            return Err(self.wanted("'=>' between inputs and outputs"));
        }
        self.next()?;
        graph.outputs = self.ports(function, "before the outputs")?;
        if self.eat('<')? {
            while !self.eat('>')? {
                let item = self.item()?;
                graph.items.push(item);
                if !matches!(self.peek(0)?, Token::Mark('>')) {
                    self.expect(',', "between two initializers or types")?;
                }
            }
        }
        self.expect('{', "before the nodes")?;
        while !self.eat('}')? {
            let node = self.node()?;
            graph.nodes.push(node);
        }
        Ok(())
    }

    fn node(&mut self) -> Result<NodeText> {
        let mut name = String::new();
        if self.eat('[')? {
            if !matches!(self.peek(0)?, Token::Mark(']')) {
                name = self.quotable("the name of a node")?;
            }
            self.expect(']', "after the node's name")?;
        }
        let outputs =
            self.names(Token::Mark('='), "the name of a node's output, or '=' before its operator")?;
        self.expect('=', "between outputs and operator")?;
        let mut path = vec![self.quotable("an operator")?];
        while self.eat('.')? {
            path.push(self.quotable("the rest of the operator's name")?);
        }
        let op_type = path.pop().unwrap_or_default();
        let overload = if self.eat(':')? { self.quotable("the name of an overload")? } else { String::new() };
        let mut attributes = self.attributes()?;
        self.expect('(', "before the inputs")?;
        let inputs = self.names(Token::Mark(')'), "the name of an input, or ')'")?;
        self.expect(')', "after the inputs")?;
        if attributes.is_empty() {
            attributes = self.attributes()?;
        }
        let mut notes = self.notes(NODE)?;
        Ok(NodeText {
            name: name.into(),
            domain: path.join(".").into(),
            op_type: op_type.into(),
            overload: overload.into(),
            inputs,
            outputs,
            attributes,
            extra: notes.extra(),
            doc: notes.doc.unwrap_or_default(),
            metadata: notes.metadata,
        })
    }

    /// Names up to a closing token, which stays; nothing between two commas is a skipped one.
    fn names(&mut self, close: Token<'static>, what: &str) -> Result<Vec<(At, Text)>> {
        let mut names = Vec::new();
        while *self.peek(0)? != close {
            let at = self.at()?;
            let skipped = *self.peek(0)? == Token::Mark(',');
            let name = if skipped { String::new() } else { self.quotable(what)? };
            names.push((at, name.into()));
            if *self.peek(0)? != close {
                self.expect(',', &format!("between two names, or {} after the last", close.describe()))?;
            }
        }
        Ok(names)
    }

    fn attributes(&mut self) -> Result<Vec<AttributeText>> {
        let mut list = Vec::new();
        if self.eat('<')? {
            while !self.eat('>')? {
                list.push(self.attribute()?);
                if !matches!(self.peek(0)?, Token::Mark('>')) {
                    self.expect(',', "between two attributes, or '>' after the last")?;
                }
            }
        }
        Ok(list)
    }
}

/// A text without a header, or one that does not say versions, is of IR version 8 with operator set 17.
fn model_header(mut notes: Notes) -> Header {
    Header {
        ir_version: notes.ir_version.unwrap_or(8),
        opsets: notes.opsets.take().unwrap_or_else(|| vec![("".into(), 17)]),
        producer_name: notes.producer_name.take().unwrap_or_default(),
        producer_version: notes.producer_version.take().unwrap_or_default(),
        domain: notes.domain.take().unwrap_or_default(),
        model_version: notes.model_version.unwrap_or_default(),
        doc: notes.doc.take().unwrap_or_default(),
        metadata: std::mem::take(&mut notes.metadata),
        functions: Vec::new(),
        training: std::mem::take(&mut notes.training),
        configurations: std::mem::take(&mut notes.configurations),
        extra: notes.extra(),
    }
}
