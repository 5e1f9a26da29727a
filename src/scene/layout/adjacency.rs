//! Neighbour lists in two flat arrays.

/// For each vertex a run of entries, in the order in which they were given.
#[derive(Clone, Debug)]
pub(super) struct Adjacency<T> {
    start: Vec<u32>,
    entries: Vec<T>,
}

impl<T: Copy + Default> Adjacency<T> {
    /// Groups `(vertex, entry)` pairs by vertex; a stable counting sort.
    pub(super) fn new(vertices: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut start = vec![0u32; vertices + 1];
        for (vertex, _) in pairs.clone() {
            start[vertex as usize + 1] += 1;
        }
        for i in 0..vertices {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut entries = vec![T::default(); start[vertices] as usize];
        for (vertex, entry) in pairs {
            let slot = &mut next[vertex as usize];
            entries[*slot as usize] = entry;
            *slot += 1;
        }
        Self { start, entries }
    }

    pub(super) fn of(&self, vertex: u32) -> &[T] {
        let v = vertex as usize;
        &self.entries[self.start[v] as usize..self.start[v + 1] as usize]
    }
}
