//! What the graph promises: a snapshot of 50,000 nodes, 10,000 steps on it, the full check. Run with
//! `cargo bench --bench ir`; bytes are counted by the allocator, times are of this machine now.

use passlens::ir::{Builder, ElementType, Model, NodeId, PatchBuilder, check::check};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

struct Counting;

static ALIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NODES: usize = 50_000;
const STEPS: usize = 10_000;

fn main() {
    let model = chain();
    let clock = Instant::now();
    for _ in 0..1_000 {
        black_box(model.clone());
    }
    println!(
        "snapshot of {NODES} nodes   {:.2} µs (promised: under 50)",
        clock.elapsed().as_secs_f64() * 1e3
    );

    let before = ALIVE.load(Ordering::Relaxed);
    let clock = Instant::now();
    let mut at = model.clone();
    let mut kept = Vec::with_capacity(STEPS);
    for i in 0..STEPS {
        let patch = skip(&at, NodeId(i as u32 * 5));
        let (inverse, _) = at.apply(&patch).expect("the patch fits");
        let snapshot = (i % 64 == 0).then(|| at.clone());
        kept.push((patch, inverse, snapshot));
    }
    let seconds = clock.elapsed().as_secs_f64();
    let grown = ALIVE.load(Ordering::Relaxed).saturating_sub(before);
    println!("{STEPS} steps, kept       {:.1} MB (promised: under 250)", grown as f64 / 1e6);
    println!("a step                   {:.1} µs", seconds / STEPS as f64 * 1e6);

    let clock = Instant::now();
    assert!(check(&at).is_empty());
    println!("full check               {:.1} ms", clock.elapsed().as_secs_f64() * 1e3);

    let clock = Instant::now();
    for (_, inverse, _) in kept.iter().rev() {
        at.apply(inverse).expect("the inverse fits");
    }
    println!("all steps undone         {:.1} ms", clock.elapsed().as_secs_f64() * 1e3);
    assert_eq!(at.node_count(), model.node_count());
}

/// Identities with a Relu after every fourth.
fn chain() -> Model {
    let mut b = Builder::new("chain", 17);
    let mut x = b.input("x", ElementType::FLOAT, &["n".into(), 16.into()]);
    for i in 0..NODES {
        x = b.op(if i % 5 == 4 { "Relu" } else { "Identity" }, &[x]).one();
    }
    b.output(x);
    b.finish().expect("the chain is sound")
}

fn skip(model: &Model, node: NodeId) -> passlens::ir::Patch {
    let n = model.node(node);
    let (input, output) = (n.input(0).expect("one input"), n.output(0).expect("one output"));
    let mut p = PatchBuilder::new(model);
    p.replace_uses(output, input);
    p.remove_node(node);
    p.finish()
}
