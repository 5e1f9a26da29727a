//! egui_graphs behind one door: it is given the visible boxes and lines only, with our own displays; its layouts,
//! dragging, selection, zooming and hit tests are off.

use std::rc::Rc;

use egui::{Pos2, Rect, Shape, Ui, UiBuilder, Vec2, vec2};
use egui_graphs::{
    DisplayEdge, DisplayNode, DrawContext, EdgeProps, Graph, GraphView, Layout, LayoutState, MetadataFrame,
    Node, NodeProps, SettingsInteraction, SettingsNavigation,
};
use petgraph::stable_graph::{DefaultIx, IndexType};
use petgraph::{Directed, EdgeType};
use serde::{Deserialize, Serialize};

use super::look::{LineState, Look};

/// A box as egui_graphs carries it: small, because it is cloned for every line in every frame.
#[derive(Clone)]
struct BoxPayload {
    look: Rc<Look>,
    index: u32,
    /// In picture points.
    size: Vec2,
}

/// A line as egui_graphs carries it.
#[derive(Clone)]
struct LinePayload {
    look: Rc<Look>,
    index: u32,
    /// Relative to the frame's anchor, in picture points.
    points: Rc<[Pos2]>,
    label_at: Option<Pos2>,
    state: LineState,
}

#[derive(Clone)]
struct BoxDisplay {
    payload: BoxPayload,
    centre: Pos2,
}

impl From<NodeProps<BoxPayload>> for BoxDisplay {
    fn from(props: NodeProps<BoxPayload>) -> BoxDisplay {
        BoxDisplay { centre: props.location(), payload: props.payload }
    }
}

impl<E: Clone, Ty: EdgeType, Ix: IndexType> DisplayNode<BoxPayload, E, Ty, Ix> for BoxDisplay {
    fn closest_boundary_point(&self, dir: Vec2) -> Pos2 {
        let half = self.payload.size / 2.0;
        let reach = |half: f32, d: f32| if d == 0.0 { f32::INFINITY } else { half / d.abs() };
        let t = reach(half.x, dir.x).min(reach(half.y, dir.y));
        if t.is_finite() { self.centre + dir * t } else { self.centre }
    }

    fn shapes(&mut self, ctx: &DrawContext) -> Vec<Shape> {
        let centre = ctx.meta.canvas_to_screen_pos(self.centre);
        let rect = Rect::from_center_size(centre, self.payload.size * ctx.meta.zoom);
        if !ctx.painter.clip_rect().expand(24.0).intersects(rect) {
            return Vec::new();
        }
        self.payload.look.box_shapes(self.payload.index, rect)
    }

    fn update(&mut self, state: &NodeProps<BoxPayload>) {
        self.centre = state.location();
    }

    fn is_inside(&self, pos: Pos2) -> bool {
        Rect::from_center_size(self.centre, self.payload.size).contains(pos)
    }
}

#[derive(Clone)]
struct LineDisplay {
    payload: LinePayload,
}

impl From<EdgeProps<LinePayload>> for LineDisplay {
    fn from(props: EdgeProps<LinePayload>) -> LineDisplay {
        LineDisplay { payload: props.payload }
    }
}

impl<Ty: EdgeType, Ix: IndexType> DisplayEdge<BoxPayload, LinePayload, Ty, Ix, BoxDisplay> for LineDisplay {
    fn shapes(
        &mut self,
        _start: &Node<BoxPayload, LinePayload, Ty, Ix, BoxDisplay>,
        _end: &Node<BoxPayload, LinePayload, Ty, Ix, BoxDisplay>,
        ctx: &DrawContext,
    ) -> Vec<Shape> {
        let to_screen = |p: &Pos2| ctx.meta.canvas_to_screen_pos(*p);
        let points: Vec<Pos2> = self.payload.points.iter().map(to_screen).collect();
        let label_at = self.payload.label_at.as_ref().map(to_screen);
        self.payload.look.line_shapes(self.payload.index, &points, label_at, self.payload.state)
    }

    fn update(&mut self, _state: &EdgeProps<LinePayload>) {}

    fn is_inside(
        &self,
        _start: &Node<BoxPayload, LinePayload, Ty, Ix, BoxDisplay>,
        _end: &Node<BoxPayload, LinePayload, Ty, Ix, BoxDisplay>,
        _pos: Pos2,
    ) -> bool {
        false
    }
}

/// Our own layout has placed everything already.
#[derive(Debug, Default)]
struct Placed;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct PlacedState;

impl LayoutState for PlacedState {}

impl Layout<PlacedState> for Placed {
    fn from_state(_state: PlacedState) -> impl Layout<PlacedState> {
        Placed
    }

    fn next<N, E, Ty, Ix, Dn, De>(&mut self, _graph: &mut Graph<N, E, Ty, Ix, Dn, De>, _ui: &Ui)
    where
        N: Clone,
        E: Clone,
        Ty: EdgeType,
        Ix: IndexType,
        Dn: DisplayNode<N, E, Ty, Ix>,
        De: DisplayEdge<N, E, Ty, Ix, Dn>,
    {
    }

    fn state(&self) -> PlacedState {
        PlacedState
    }
}

type VisibleGraph = Graph<BoxPayload, LinePayload, Directed, DefaultIx, BoxDisplay, LineDisplay>;

/// One box to draw: which, and where (relative to the anchor, in picture points).
pub struct VisibleBox {
    pub index: u32,
    pub rect: Rect,
}

/// One line to draw.
pub struct VisibleLine {
    pub index: u32,
    /// Places of its ends in the list of visible boxes.
    pub ends: (usize, usize),
    /// Relative to the anchor, in picture points.
    pub points: Rc<[Pos2]>,
    pub label_at: Option<Pos2>,
    pub state: LineState,
}

/// Draws boxes and lines into `rect`; a place `p` (relative to the anchor) goes to `p * zoom + pan` from the rect's
/// corner. False when egui_graphs only warmed up and the frame has to be drawn again.
pub fn draw(
    ui: &mut Ui,
    id: &str,
    rect: Rect,
    pan: Vec2,
    look: &Rc<Look>,
    boxes: &[VisibleBox],
    lines: &[VisibleLine],
) -> bool {
    let mut graph = VisibleGraph::new();
    let nodes: Vec<_> = boxes
        .iter()
        .map(|b| {
            let payload = BoxPayload { look: look.clone(), index: b.index, size: b.rect.size() };
            graph.add_node_with_location(payload, b.rect.center())
        })
        .collect();
    for line in lines {
        let (Some(&from), Some(&to)) = (nodes.get(line.ends.0), nodes.get(line.ends.1)) else { continue };
        let payload = LinePayload {
            look: look.clone(),
            index: line.index,
            points: line.points.clone(),
            label_at: line.label_at,
            state: line.state,
        };
        graph.add_edge(from, to, payload);
    }

    let custom_id = Some(id.to_owned());
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("graph", id)));
    child.set_clip_rect(rect.intersect(ui.clip_rect()));
    let mut frame = MetadataFrame::new(custom_id.clone());
    (frame.zoom, frame.pan) = (look.zoom, pan);
    frame.save(&mut child);
    let interaction = SettingsInteraction::new().with_dragging_enabled(false).with_hover_enabled(false);
    let navigation =
        SettingsNavigation::new().with_fit_to_screen_enabled(false).with_zoom_and_pan_enabled(false);
    GraphView::<PlacedState, Placed>::new()
        .with_interactions(&interaction)
        .with_navigations(&navigation)
        .with_id(custom_id.clone())
        .show(&mut child, &mut graph);
    // The first frame of an instance fits its graph to the screen, whatever the settings say.
    let after = MetadataFrame::new(custom_id).load(&child);
    after.zoom == look.zoom && (after.pan - pan).length() < 0.5
}

/// Forgets what egui_graphs keeps in egui's memory under this id.
pub fn forget(ui: &mut Ui, id: &str) {
    egui_graphs::reset::<PlacedState>(ui, Some(id.to_owned()));
}

/// A rectangle of the scene as one of egui.
pub fn to_egui(rect: &crate::scene::Rect) -> Rect {
    Rect::from_min_size(
        Pos2::new(rect.min.x, rect.min.y),
        vec2(rect.max.x - rect.min.x, rect.max.y - rect.min.y),
    )
}
