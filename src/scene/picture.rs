//! A picture: boxes, lines and tags with places, in points; what every painter draws and every hit test asks.

use crate::blocks::BlockId;
use crate::ir::{NodeId, Text, ValueId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Item {
    Node(NodeId),
    Block(BlockId),
    /// A formal input of the graph on display.
    Input(ValueId),
    /// An output, by position.
    Output(u32, ValueId),
}

/// Where in the picture: a function that is called twelve times shows twelve times.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Calls of model-local functions that lead there, outermost first.
    pub calls: SmallVec<[NodeId; 2]>,
    pub item: Item,
}

impl Place {
    /// A place that no call leads to.
    pub fn of(item: Item) -> Place {
        Place { calls: SmallVec::new(), item }
    }
}

/// A point; y grows downward.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    pub x: f32,
    pub y: f32,
}

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rect {
    pub min: Point,
    pub max: Point,
}

impl Rect {
    pub fn new(x: f32, y: f32, width: f32, height: f32) -> Rect {
        Rect { min: Point { x, y }, max: Point { x: x + width, y: y + height } }
    }

    pub fn width(&self) -> f32 {
        self.max.x - self.min.x
    }

    pub fn height(&self) -> f32 {
        self.max.y - self.min.y
    }

    pub fn center(&self) -> Point {
        Point { x: (self.min.x + self.max.x) / 2.0, y: (self.min.y + self.max.y) / 2.0 }
    }

    pub fn contains(&self, p: Point) -> bool {
        p.x >= self.min.x && p.x <= self.max.x && p.y >= self.min.y && p.y <= self.max.y
    }

    pub fn intersects(&self, other: &Rect) -> bool {
        self.min.x <= other.max.x
            && other.min.x <= self.max.x
            && self.min.y <= other.max.y
            && other.min.y <= self.max.y
    }
}

/// What a box looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoxKind {
    Node,
    /// A node with bodies or a call of a local function, closed.
    ClosedNode,
    /// The same, open: a container.
    OpenNode,
    ClosedBlock,
    OpenBlock,
    /// Container of one body graph inside an open node.
    Body,
    Input,
    Output,
}

/// Family of an operator: what its colour says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Family {
    /// Conv, ConvTranspose, …
    Convolution,
    /// MatMul, Gemm, Einsum, attention, …
    Matrix,
    /// BatchNormalization, LayerNormalization, …
    Normalization,
    /// Relu, Sigmoid, Softmax, …
    Activation,
    /// Pooling and reductions.
    Reduction,
    /// Add, Mul, comparisons, …
    Elementwise,
    /// Reshape, Transpose, Slice, Concat, Gather, …
    Layout,
    /// Shape, Range, ConstantOfShape, Constant, …
    Shape,
    /// QuantizeLinear, Cast, …
    Conversion,
    /// LSTM, GRU, RNN.
    Recurrent,
    /// If, Loop, Scan.
    Control,
    /// Everything else, and foreign domains.
    Other,
}

/// What a comparison says of a thing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Mark {
    #[default]
    Same,
    Added,
    Removed,
    /// Another operator, attribute or weight.
    Changed,
    /// Other inputs.
    Rewired,
}

/// A constant or far value shown at its reader.
#[derive(Clone, PartialEq, Debug)]
pub struct Tag {
    pub value: ValueId,
    /// `W [64, 3, 7, 7]`, `axes = [1]`, `mask →`.
    pub text: Text,
    /// Constant data, as against a value that comes from far away.
    pub constant: bool,
    pub rect: Rect,
}

/// A box of a picture.
#[derive(Clone, PartialEq, Debug)]
pub struct PictureBox {
    pub place: Place,
    pub kind: BoxKind,
    pub rect: Rect,
    /// Nesting: 0 at the outermost level. Containers come before what is in them.
    pub depth: u32,
    /// The container's position in the picture's list.
    pub parent: Option<u32>,
    /// Operator or block name.
    pub title: Text,
    /// Node name (shortened in the middle), or counts of a block.
    pub subtitle: Text,
    /// Key attributes, a line each.
    pub lines: Vec<Text>,
    pub tags: Vec<Tag>,
    pub family: Family,
    pub mark: Mark,
    /// Pass that made or changed it; for a closed block how many of its nodes have one ("3 rewritten").
    pub badge: Option<Text>,
    /// `×12` of a repeated block; empty otherwise.
    pub repeat: Text,
    /// Found by the search, itself or (a closed block) this many inside.
    pub hits: u32,
    /// What a screen reader says.
    pub label: Text,
}

/// A line of a picture, downward from a box to a box.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    pub from: u32,
    pub to: u32,
    /// The first is on the border of `from`, the last on that of `to`; drawn as a smooth curve through all.
    pub points: Vec<Point>,
    /// Values that it stands for (merged lines have several); at most the first 16.
    pub values: SmallVec<[ValueId; 1]>,
    /// How many values it stands for.
    pub count: u32,
    /// Shape, or `3 values`.
    pub label: Text,
    /// Middle of the label; `None` when there is no room.
    pub label_at: Option<Point>,
    pub mark: Mark,
}

/// A value shown as tags at its readers: what a line on hover would join.
#[derive(Clone, PartialEq, Debug)]
pub struct Far {
    pub value: ValueId,
    /// Box of the producer.
    pub from: u32,
    /// Boxes of the readers.
    pub readers: Vec<u32>,
}

/// A picture.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picture {
    pub boxes: Vec<PictureBox>,
    pub lines: Vec<Line>,
    pub far: Vec<Far>,
    pub bounds: Rect,
}

impl Picture {
    /// Position of a place's box; `None` when it is not to be seen.
    pub fn find(&self, place: &Place) -> Option<u32> {
        self.boxes.iter().position(|b| b.place == *place).map(|i| i as u32)
    }
}
