//! What must hold for every layout, on made and on random graphs.

use super::*;
use proptest::prelude::*;

fn boxes(n: usize) -> Vec<BoxSpec> {
    (0..n).map(|_| BoxSpec { width: 120.0, height: 40.0, ..BoxSpec::default() }).collect()
}

fn edge(from: u32, to: u32) -> EdgeSpec {
    EdgeSpec { from, to, value: from, ..EdgeSpec::default() }
}

fn request(n: usize, edges: &[(u32, u32)]) -> Request {
    Request { boxes: boxes(n), edges: edges.iter().map(|&(a, b)| edge(a, b)).collect(), ..Request::default() }
}

fn run(request: &Request) -> Layout {
    layout(request, &AtomicBool::new(false)).expect("not cancelled")
}

/// No two boxes overlap, everything is inside the frame, lines end at their boxes and go one way.
fn sound(request: &Request, layout: &Layout) {
    let rect = |b: usize| {
        let [x, y] = layout.places[b];
        (x, y, x + request.boxes[b].width, y + request.boxes[b].height)
    };
    let mut by_y: Vec<usize> = (0..request.boxes.len()).collect();
    by_y.sort_by(|&a, &b| layout.places[a][1].total_cmp(&layout.places[b][1]));
    for (k, &a) in by_y.iter().enumerate() {
        let (ax, ay, ax2, ay2) = rect(a);
        assert!(ax >= -0.1 && ay >= -0.1 && ax2 <= layout.width + 0.1 && ay2 <= layout.height + 0.1);
        for &b in by_y[k + 1..].iter().take_while(|&&b| layout.places[b][1] < ay2 - 0.01) {
            let (bx, _, bx2, _) = rect(b);
            assert!(bx >= ax2 - 0.01 || ax >= bx2 - 0.01, "boxes {a} and {b} overlap");
        }
    }
    let mut seen = vec![false; request.edges.len()];
    for route in &layout.routes {
        let e = &request.edges[route.edges[0] as usize];
        let (from, to) = (rect(e.from as usize), rect(e.to as usize));
        let (first, last) = (route.points[0], route.points[route.points.len() - 1]);
        let (leaves, arrives) = if route.upward { (from.1, to.3) } else { (from.3, to.1) };
        assert!((first[1] - leaves).abs() < 0.1 && (last[1] - arrives).abs() < 0.1);
        assert!(first[0] >= from.0 - 0.1 && first[0] <= from.2 + 0.1);
        assert!(last[0] >= to.0 - 0.1 && last[0] <= to.2 + 0.1);
        for pair in route.points.windows(2) {
            let down = pair[1][1] - pair[0][1];
            assert!(if route.upward { down <= 0.01 } else { down >= -0.01 });
        }
        for &i in &route.edges {
            assert!(!std::mem::replace(&mut seen[i as usize], true));
        }
    }
    for &i in &layout.stubs {
        assert!(!std::mem::replace(&mut seen[i as usize], true));
    }
    for (i, e) in request.edges.iter().enumerate() {
        assert_eq!(seen[i], e.from != e.to, "edge {i} is neither a line nor a stub, or both");
    }
}

#[test]
fn nothing_and_one_box() {
    assert_eq!(run(&Request::default()), Layout::default());
    let one = request(1, &[]);
    let layout = run(&one);
    assert_eq!((layout.width, layout.height), (120.0, 40.0));
}

#[test]
fn a_diamond_is_symmetrical() {
    let diamond = request(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let layout = run(&diamond);
    sound(&diamond, &layout);
    let centre = |b: usize| layout.places[b][0] + 60.0;
    assert!((centre(0) - (centre(1) + centre(2)) / 2.0).abs() < 0.5);
    assert!((centre(0) - centre(3)).abs() < 0.5);
    assert_eq!(layout.rows, [0, 1, 1, 2]);
}

#[test]
fn a_chain_with_a_skip_stays_straight() {
    let skip = request(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]);
    let layout = run(&skip);
    sound(&skip, &layout);
    for b in 1..4 {
        assert!((layout.places[b][0] - layout.places[1][0]).abs() < 0.5);
    }
}

#[test]
fn a_chain_of_thirty_thousand() {
    let edges: Vec<(u32, u32)> = (1..30_000).map(|i| (i - 1, i)).collect();
    let chain = request(30_000, &edges);
    let layout = run(&chain);
    sound(&chain, &layout);
    assert_eq!(layout.width, 120.0);
}

#[test]
fn a_mask_read_by_four_hundred_is_no_line_and_no_carpet() {
    // A mask, 400 readers that a chain joins, as a model with 400 layers in one flat level has it.
    let mut edges = Vec::new();
    for k in 0..400 {
        edges.push((0, 2 * k + 1));
        edges.push((2 * k + 1, 2 * k + 2));
        if k > 0 {
            edges.push((2 * k, 2 * k + 1));
        }
    }
    let chain = request(801, &edges);
    let layout = run(&chain);
    sound(&chain, &layout);
    assert_eq!(layout.stubs.len(), 400);
    assert!(layout.width < 500.0, "width {}", layout.width);

    // The same readers side by side: a grid, not 400 boxes in a row.
    let edges: Vec<(u32, u32)> = (1..=400).flat_map(|k| [(0, k), (k, k + 400)]).collect();
    let fan = request(801, &edges);
    let layout = run(&fan);
    sound(&fan, &layout);
    assert!(layout.width < 6_000.0, "width {}", layout.width);

    // And gathered again by one box, which takes too many lines to be one more row.
    let mut edges: Vec<(u32, u32)> = (1..=400).flat_map(|k| [(0, k), (k, k + 400)]).collect();
    edges.extend((401..=800).map(|k| (k, 801)));
    let gathered = request(802, &edges);
    let layout = run(&gathered);
    sound(&gathered, &layout);
    assert!(layout.width < 6_000.0, "width {}", layout.width);
}

#[test]
fn sources_stand_just_above_their_reader() {
    // 0 feeds a chain of ten; 11 -> 12 is a side chain read by the last.
    let mut edges: Vec<(u32, u32)> = (1..=10).map(|i| (i - 1, i)).collect();
    edges.extend([(11, 12), (12, 10)]);
    for n in [13usize, 700] {
        let layout = run(&request(n, &edges));
        assert_eq!((layout.rows[12], layout.rows[11]), (9, 8));
    }
}

#[test]
fn parallel_edges_are_one_line() {
    let mut two = request(2, &[(0, 1), (0, 1)]);
    two.edges[1].value = 7;
    let layout = run(&two);
    assert_eq!(layout.routes.len(), 1);
    assert_eq!(layout.routes[0].edges.as_slice(), [0, 1]);
}

#[test]
fn cycles_between_blocks_run_upward_and_others_stay() {
    let cyclic = request(4, &[(0, 1), (1, 2), (2, 1), (2, 3), (2, 2)]);
    let layout = run(&cyclic);
    sound(&cyclic, &layout);
    let upward: Vec<u32> = layout.routes.iter().filter(|r| r.upward).map(|r| r.edges[0]).collect();
    assert_eq!(upward, [2]);
    // An order of indices that is not topological is no cycle.
    let backward = request(3, &[(2, 1), (1, 0)]);
    let layout = run(&backward);
    assert!(layout.routes.iter().all(|r| !r.upward));
    assert_eq!(layout.rows, [2, 1, 0]);
}

#[test]
fn ports_stand_on_the_border_and_lines_meet_them() {
    let mut level = request(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]);
    level.boxes[0] = BoxSpec { pin: Pin::Top, ..BoxSpec::default() };
    level.boxes[4] = BoxSpec { pin: Pin::Bottom, ..BoxSpec::default() };
    let layout = run(&level);
    sound(&level, &layout);
    assert_eq!(layout.places[0][1], 0.0);
    assert_eq!(layout.places[4][1], layout.height);
    let mut fixed = request(2, &[(0, 1)]);
    fixed.edges[0].from_x = Some(-30.0);
    fixed.edges[0].to_x = Some(20.0);
    let layout = run(&fixed);
    let points = &layout.routes[0].points;
    assert_eq!(points.len(), 2);
    assert!((points[0][0] - points[1][0]).abs() < 0.01, "fixed ends are aligned into a straight line");
}

#[test]
fn long_edges_are_stubs_and_trunks_are_shared() {
    let mut edges: Vec<(u32, u32)> = (1..=40).map(|i| (i - 1, i)).collect();
    edges.push((0, 40));
    let long = request(41, &edges);
    let layout = run(&long);
    assert_eq!(layout.stubs, [40]);
    // Three taps of one value on the way down: the trunk is one line, so their bends coincide.
    let mut edges: Vec<(u32, u32)> = (1..=12).map(|i| (i - 1, i)).collect();
    edges.extend([(0, 6), (0, 9), (0, 12)]);
    let taps = request(13, &edges);
    let layout = run(&taps);
    sound(&taps, &layout);
    let second = |to: u32| {
        layout
            .routes
            .iter()
            .find(|r| r.edges[0] >= 12 && taps.edges[r.edges[0] as usize].to == to)
            .map(|r| r.points[1])
    };
    assert_eq!(second(6).map(|p| p[0]), second(12).map(|p| p[0]));
}

#[test]
fn unseen_edges_only_rank() {
    let mut two = request(2, &[(0, 1)]);
    two.edges[0].unseen = true;
    let layout = run(&two);
    assert_eq!((layout.routes.len(), layout.stubs.len()), (0, 0));
    assert_eq!(layout.rows, [0, 1]);
}

#[test]
fn boxes_that_stay_keep_their_order() {
    // Four branches; crossings would be fewer in another order, but the order from before holds.
    let mut edges = Vec::new();
    for b in 1..=4 {
        edges.extend([(0, b), (b, b + 4), (b + 4, 9)]);
    }
    let mut level = request(10, &edges);
    let before = [3.0, 1.0, 4.0, 2.0];
    for b in 1..=4usize {
        level.boxes[b].previous = Some(before[b - 1]);
    }
    let layout = run(&level);
    sound(&level, &layout);
    let mut by_x: Vec<usize> = (1..=4).collect();
    by_x.sort_by(|&a, &b| layout.places[a][0].total_cmp(&layout.places[b][0]));
    assert_eq!(by_x, [2, 4, 1, 3]);
    // Given its own result as the previous one, a layout does not move.
    for b in 0..10 {
        level.boxes[b].previous = Some(layout.places[b][0] + 60.0);
    }
    assert_eq!(run(&level).places, layout.places);
}

#[test]
fn crossings_fall() {
    // Two columns written crosswise: the depth-first start cannot know, the sweeps can.
    let edges =
        [(0, 4), (0, 5), (1, 6), (1, 7), (2, 4), (2, 5), (3, 6), (3, 7), (4, 8), (5, 8), (6, 9), (7, 9)];
    let level = request(10, &edges);
    let topology = topology::Topology::new(&level);
    let part = components::Part { boxes: (0..10).collect(), edges: (0..12).collect() };
    let local: Vec<u32> = (0..10).collect();
    let cancel = AtomicBool::new(false);
    let rank = rank::assign(&level, &topology, &cancel).expect("not cancelled");
    let lines = arrange::merge(&level, &topology, &part, &local);
    let rows = fold::rows(&level, &rank, &part, &lines);
    let mut levels = levels::Levels::new(&level, &part, &rows, &lines, &[0; 10]);
    let before = order::count_crossings(&levels);
    order::reduce_crossings(&mut levels, &[], &cancel).expect("not cancelled");
    let after = order::count_crossings(&levels);
    assert!(before > after, "{before} -> {after}");
    assert_eq!(after, 2, "each pair of sources with two common readers crosses once");
}

#[test]
fn cancelled_and_wrong_requests_are_errors() {
    let level = request(2, &[(0, 1)]);
    assert_eq!(layout(&level, &AtomicBool::new(true)), Err(LayoutError::Cancelled));
    let wrong = request(2, &[(0, 2)]);
    let error = layout(&wrong, &AtomicBool::new(false)).expect_err("box 2 does not exist");
    assert_eq!(error.to_string(), "edge 0 of the layout request names box 2, but there are 2 boxes");
}

/// Ranks of the simplex method are feasible and not worse than those it began with.
#[test]
fn simplex_shortens_edges() {
    let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 4), (7, 6), (8, 2), (8, 3), (9, 4)];
    let level = request(10, &edges);
    let layout = run(&level);
    let length: i64 = edges
        .iter()
        .map(|&(a, b)| i64::from(layout.rows[b as usize]) - i64::from(layout.rows[a as usize]))
        .sum();
    assert_eq!(length, 13);
}

fn random_level() -> impl Strategy<Value = Request> {
    (2usize..60).prop_flat_map(|n| {
        let size = (10.0f32..200.0, 10.0f32..400.0);
        let edge = (0..n as u32, 0..n as u32, 0u32..3, any::<bool>());
        (prop::collection::vec(size, n), prop::collection::vec(edge, 0..3 * n), any::<bool>(), any::<bool>())
            .prop_map(|(sizes, edges, acyclic, kept)| Request {
                boxes: sizes
                    .iter()
                    .enumerate()
                    .map(|(k, &(width, height))| BoxSpec {
                        width,
                        height,
                        previous: (kept && k % 3 != 0).then_some((k * 37 % 101) as f32),
                        pin: Pin::Free,
                    })
                    .collect(),
                edges: edges
                    .iter()
                    .map(|&(a, b, value, fixed)| EdgeSpec {
                        from: if acyclic { a.min(b) } else { a },
                        to: if acyclic { a.max(b) } else { b },
                        value,
                        from_x: fixed.then_some(3.0),
                        to_x: fixed.then_some(-4.0),
                        unseen: false,
                    })
                    .collect(),
                ..Request::default()
            })
    })
}

proptest! {
    #[test]
    fn every_random_level_is_sound(level in random_level()) {
        let layout = run(&level);
        sound(&level, &layout);
        prop_assert_eq!(&run(&level), &layout);
    }
}
