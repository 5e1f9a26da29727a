//! passlens opens neural-network models as hierarchical graphs, applies optimization passes one rewrite at a time,
//! and shows what each one did.
//!
//! # A graph made by hand
//!
//! ```
//! use passlens::ir::{Builder, ElementType, Tensor};
//! let mut b = Builder::new("tiny", 17);
//! let x = b.input("x", ElementType::FLOAT, &["batch".into(), 2.into()]);
//! let w = b.constant("w", Tensor::from_f32(&[2, 1], &[0.5, -1.0]));
//! let y = b.op("MatMul", &[x, w]).one();
//! b.output(y);
//! let model = b.finish().unwrap();
//! # assert_eq!(model.node_count(), 1);
//! ```
//!
//! # Running passes over it
//!
//! ```
//! # use passlens::ir::{Builder, ElementType};
//! # let mut b = Builder::new("tiny", 17);
//! # let x = b.input("x", ElementType::FLOAT, &["batch".into()]);
//! # let i = b.op("Identity", &[x]).one();
//! # let y = b.op("Relu", &[i]).one();
//! # b.output(y);
//! # let model = b.finish().unwrap();
//! use passlens::pipeline::{Config, Options, Registry, Runner};
//! let cancel = std::sync::atomic::AtomicBool::new(false);
//! let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
//! let run = Runner::new(model).run(&Registry::builtin(), &Config::default(), &mut options);
//! for step in &run.steps {
//!     println!("{} {}", step.number, step.key);
//! }
//! let optimized = run.last_state().model;
//! # assert_eq!(optimized.node_count(), 1);
//! ```
//!
//! # The rooms
//!
//! Each room uses only those above it in this list; a test holds them to it.
//!
//! - [`ir`]: the graph: models, nodes, values, types, constants; patches, checks, the text form, the builder
//! - [`table`]: a plain table; every list that people see is one
//! - [`samples`]: three models made with the builder
//! - [`formats`]: ONNX and JSON files; nothing else knows protobuf
//! - [`facts`]: what is known without running: shapes, small integers, one canonical view of operators
//! - [`blocks`]: the hierarchy: scopes, structure, recognised modules, repeats
//! - `diff`: what differs between two graphs
//! - [`engine`]: runs a model, node by node, and gives any value, every time and every byte
//! - [`passes`]: what finds sites and proposes patches, one file a pass
//! - [`pipeline`]: rounds, numbered steps, rollback, provenance, configuration, log
//! - [`report`]: a run as a document to send around
//! - [`scene`]: from a model, its blocks and what is open to boxes, lines and tags with places
//! - [`session`]: the open document: commands in, state out, long work in the background
//! - `gui`: the window (feature `gui`); [`cli`]: one file a verb

pub mod blocks;
pub mod cli;
pub mod diff;
pub mod engine;
pub mod facts;
pub mod formats;
#[cfg(feature = "gui")]
pub mod gui;
pub mod ir;
pub mod passes;
pub mod pipeline;
pub mod report;
pub mod samples;
pub mod scene;
pub mod session;
pub mod table;
