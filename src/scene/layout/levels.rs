//! The proper layered graph: boxes and the bends of long lines as items, each linked to the next row only.

use super::Request;
use super::adjacency::Adjacency;
use super::arrange::Line;
use super::components::Part;

/// One end of a segment as seen from the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub(super) item: u32,
    /// Where the segment touches this item and that one, right of their centres.
    pub(super) own_x: f32,
    pub(super) other_x: f32,
    pub(super) segment: u32,
}

/// Bends of one trunk: consecutive items, one a row.
#[derive(Clone, Copy, Debug)]
struct Trunk {
    first_item: u32,
    first_row: u32,
}

/// Items by row, in order from left to right. Items below `boxes` are boxes, the others are bends.
#[derive(Clone)]
pub(super) struct Levels {
    pub(super) boxes: u32,
    /// Items, row after row.
    pub(super) order: Vec<u32>,
    /// Where each row begins in `order`; one more than there are rows.
    pub(super) start: Vec<u32>,
    pub(super) row: Vec<u32>,
    /// Place of an item in its row.
    pub(super) position: Vec<u32>,
    /// Bends have none.
    pub(super) width: Vec<f32>,
    pub(super) up: Adjacency<Link>,
    pub(super) down: Adjacency<Link>,
    pub(super) segments: usize,
    trunk_of_line: Vec<Option<Trunk>>,
}

impl Levels {
    /// Lines of one value from one place share their bends (one trunk with taps); so do bundles of values from one box,
    /// and the many lines into one box.
    pub(super) fn new(request: &Request, part: &Part, rows: &[u32], lines: &[Line], fan_in: &[u32]) -> Self {
        let boxes = part.boxes.len() as u32;
        let bits = |x: Option<f32>| x.map_or(u32::MAX, f32::to_bits);
        let span = |line: &Line| rows[line.lower as usize] - rows[line.upper as usize];
        let gathers = |line: &Line| fan_in[line.lower as usize] > request.limits.readers;
        let key = |&l: &u32| {
            let line = &lines[l as usize];
            if gathers(line) {
                (true, line.lower, bits(line.lower_x), 0)
            } else {
                // Bundles of several values from one box go together, whatever values they are.
                let value = if line.edges.len() > 1 { u64::MAX } else { u64::from(line.value) };
                (false, line.upper, bits(line.upper_x), value)
            }
        };
        let mut long: Vec<u32> = (0..lines.len() as u32).filter(|&l| span(&lines[l as usize]) > 1).collect();
        long.sort_by_key(key);

        let mut row: Vec<u32> = rows.to_vec();
        let mut segments: Vec<(u32, u32, f32, f32)> = lines
            .iter()
            .filter(|line| span(line) == 1)
            .map(|line| (line.upper, line.lower, line.upper_x.unwrap_or(0.0), line.lower_x.unwrap_or(0.0)))
            .collect();
        let mut trunk_of_line = vec![None; lines.len()];
        for run in long.chunk_by(|a, b| key(a) == key(b)) {
            let of_run = || run.iter().map(|&l| &lines[l as usize]);
            let first_row = of_run().map(|l| rows[l.upper as usize] + 1).min().unwrap_or(0);
            let last_row = of_run().map(|l| rows[l.lower as usize] - 1).max().unwrap_or(0);
            let trunk = Trunk { first_item: row.len() as u32, first_row };
            row.extend(first_row..=last_row);
            let bend = |at: u32| trunk.first_item + (at - first_row);
            for at in first_row..last_row {
                segments.push((bend(at), bend(at + 1), 0.0, 0.0));
            }
            let head = &lines[run[0] as usize];
            let (upper_x, lower_x) = (head.upper_x.unwrap_or(0.0), head.lower_x.unwrap_or(0.0));
            if gathers(head) {
                segments.push((bend(last_row), head.lower, 0.0, lower_x));
            } else {
                segments.push((head.upper, bend(first_row), upper_x, 0.0));
            }
            for &l in run {
                let line = &lines[l as usize];
                trunk_of_line[l as usize] = Some(trunk);
                if gathers(head) {
                    let entry = bend(rows[line.upper as usize] + 1);
                    segments.push((line.upper, entry, line.upper_x.unwrap_or(0.0), 0.0));
                } else {
                    let exit = bend(rows[line.lower as usize] - 1);
                    segments.push((exit, line.lower, 0.0, line.lower_x.unwrap_or(0.0)));
                }
            }
        }

        let items = row.len();
        let mut width = vec![0.0f32; items];
        for (k, &b) in part.boxes.iter().enumerate() {
            width[k] = request.boxes[b as usize].width.max(0.0);
        }
        let row_count = row.iter().max().map_or(0, |&r| r as usize + 1);
        let mut start = vec![0u32; row_count + 1];
        for &r in &row {
            start[r as usize + 1] += 1;
        }
        for r in 0..row_count {
            start[r + 1] += start[r];
        }
        let number = || segments.iter().enumerate();
        let down = Adjacency::new(
            items,
            number().map(|(s, &(upper, lower, own_x, other_x))| {
                (upper, Link { item: lower, own_x, other_x, segment: s as u32 })
            }),
        );
        let up = Adjacency::new(
            items,
            number().map(|(s, &(upper, lower, other_x, own_x))| {
                (lower, Link { item: upper, own_x, other_x, segment: s as u32 })
            }),
        );
        let segments = segments.len();
        let mut levels = Self {
            boxes,
            order: vec![0; items],
            start,
            row,
            position: vec![0; items],
            width,
            up,
            down,
            segments,
            trunk_of_line,
        };
        let mut next: Vec<u32> = levels.start.clone();
        for item in 0..items as u32 {
            levels.put(item, &mut next);
        }
        levels
    }

    /// Appends an item to its row; `next` holds the first free slot of each row.
    pub(super) fn put(&mut self, item: u32, next: &mut [u32]) {
        let r = self.row[item as usize] as usize;
        self.order[next[r] as usize] = item;
        self.position[item as usize] = next[r] - self.start[r];
        next[r] += 1;
    }

    pub(super) fn rows(&self) -> usize {
        self.start.len() - 1
    }

    pub(super) fn items(&self) -> usize {
        self.row.len()
    }

    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.start[row] as usize..self.start[row + 1] as usize
    }

    pub(super) fn in_row(&self, row: usize) -> &[u32] {
        &self.order[self.range(row)]
    }

    pub(super) fn is_bend(&self, item: u32) -> bool {
        item >= self.boxes
    }

    /// The bends of a line, top to bottom.
    pub(super) fn bends(&self, line: usize, upper_row: u32, lower_row: u32) -> std::ops::Range<u32> {
        self.trunk_of_line[line].map_or(0..0, |trunk| {
            let first = trunk.first_item + (upper_row + 1 - trunk.first_row);
            first..first + (lower_row - upper_row - 1)
        })
    }
}
