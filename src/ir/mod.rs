//! The graph: models, graphs, nodes, values, types and constants, and the patches that change them.

mod apply;
pub mod attribute;
pub mod beside;
pub mod builder;
pub mod check;
pub mod construct;
pub mod ids;
pub mod model;
pub mod node;
pub mod patch;
pub mod patch_builder;
pub mod region;
pub mod symbolic;
pub mod tensor;
pub mod text;
pub mod types;

pub use attribute::{Attribute, AttributeValue};
pub use beside::{Beside, Counterparts};
pub use builder::Builder;
pub use construct::Construction;
pub use ids::{GraphId, NodeId, OrderKey, Text, ValueId};
pub use model::{Function, Graph, GraphKind, Header, Model, Port};
pub use node::{Declaration, Extra, Node, Producer, Use, Uses, Value};
pub use patch::{Edit, Patch, PatchError, Touched};
pub use patch_builder::PatchBuilder;
pub use symbolic::Expr;
pub use tensor::{Constant, Data, Dims, Encoding, SparseTensor, Tensor};
pub use types::{Dim, ElementType, Shape, Type, shape_text};
