//! Bottom: the tables. Changes, rewrites, log and problems; a click goes to the node or step.

use egui::{Align, Layout, RichText, ScrollArea, Ui, vec2};

use super::widgets::{columns, cut, cut_middle, empty, mark, row, seconds_text, signed};
use crate::gui::rows::{ChangeRow, LogRow, ProblemRow, StepRow};
use crate::gui::theme::{Palette, ROW_HEIGHT, size};
use crate::ir::NodeId;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    #[default]
    Changes,
    Rewrites,
    Log,
    Problems,
}

/// What the panel remembers.
#[derive(Debug, Default)]
pub struct BottomState {
    pub tab: Tab,
    filter: String,
}

/// What a person asked for in this panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Change(usize),
    ShowStep(u32),
    Reveal(NodeId),
}

/// What the tables show.
pub struct Tables<'a> {
    /// Two files are compared: the changes lead from the one to the other.
    pub compared: bool,
    pub changes: &'a [ChangeRow],
    pub steps: &'a [StepRow],
    pub log: &'a [LogRow],
    pub problems: &'a [ProblemRow],
    /// Step that the slider stands at.
    pub step: Option<u32>,
    /// Change that was visited last.
    pub change: Option<usize>,
}

/// Draws the panel.
pub fn bottom_ui(ui: &mut Ui, state: &mut BottomState, tables: &Tables) -> Vec<Ask> {
    let mut asks = Vec::new();
    // An empty table keeps the panel's height.
    ui.set_min_height(ui.available_height());
    let room = ui.available_width();
    let (roomy, filters) = (room > 420.0, room > 560.0);
    ui.horizontal(|ui| {
        let tabs = [
            (Tab::Changes, "Changes", tables.changes.len()),
            (Tab::Rewrites, "Rewrites", tables.steps.len()),
            (Tab::Log, "Log", tables.log.len()),
            (Tab::Problems, "Problems", tables.problems.len()),
        ];
        for (tab, name, count) in tabs {
            let text = if count > 0 && roomy {
                format!("{name}  {}", super::count_text(count))
            } else {
                name.to_owned()
            };
            let button = ui.selectable_label(state.tab == tab, text);
            button.widget_info(|| {
                egui::WidgetInfo::selected(egui::WidgetType::Button, true, state.tab == tab, name)
            });
            if button.clicked() {
                state.tab = tab;
            }
        }
        if !filters {
            state.filter.clear();
            return;
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let field =
                egui::TextEdit::singleline(&mut state.filter).hint_text("Filter rows").desired_width(170.0);
            ui.add(field);
        });
    });
    ui.separator();
    let words: Vec<String> = state.filter.split_whitespace().map(str::to_lowercase).collect();
    let fits = |line: String| {
        let line = line.to_lowercase();
        words.iter().all(|word| line.contains(word.as_str()))
    };
    match state.tab {
        Tab::Changes => {
            let shown = positions(tables.changes, words.is_empty(), |c| {
                let pass = c.pass.as_deref().unwrap_or_default();
                fits(format!(
                    "{} {} {} {pass} {}",
                    c.operator,
                    c.name,
                    c.detail,
                    crate::scene::palette::mark_name(c.mark)
                ))
            });
            let nothing = match tables.compared {
                true => ("No changes", "The two models have the same nodes"),
                false => ("No changes", "The pipeline leaves this model as it is"),
            };
            table(ui, &shown, nothing, |ui, i| {
                change_ui(ui, &tables.changes[i], i, tables.change == Some(i), &mut asks);
            });
        }
        Tab::Rewrites => {
            let shown = positions(tables.steps, words.is_empty(), |s| {
                fits(format!("{} {} {}", s.pass, s.what, s.name))
            });
            let nothing = match tables.compared {
                true => ("No rewrites", "A second file does not say how it was made"),
                false => ("No rewrites", "Switch on a pass that finds something"),
            };
            table(ui, &shown, nothing, |ui, i| {
                step_ui(ui, &tables.steps[i], tables.step, &mut asks);
            });
        }
        Tab::Log => {
            let shown = positions(tables.log, words.is_empty(), |l| {
                fits(format!("{} {} {} {}", l.pass, l.kind, l.scope, l.result))
            });
            table(ui, &shown, ("The log is empty", "It fills when the pipeline runs"), |ui, i| {
                log_ui(ui, &tables.log[i], &mut asks);
            });
        }
        Tab::Problems => {
            let shown = positions(tables.problems, words.is_empty(), |p| fits(p.text.clone()));
            table(ui, &shown, ("No problems", "The file says nothing that contradicts itself"), |ui, i| {
                problem_ui(ui, &tables.problems[i], &mut asks);
            });
        }
    }
    asks
}

fn positions<T>(rows: &[T], all: bool, fits: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..rows.len()).filter(|&i| all || fits(&rows[i])).collect()
}

/// Only the rows in view are drawn.
fn table(ui: &mut Ui, shown: &[usize], nothing: (&str, &str), mut draw: impl FnMut(&mut Ui, usize)) {
    if shown.is_empty() {
        empty(ui, nothing.0, nothing.1);
        return;
    }
    ui.spacing_mut().item_spacing.y = 1.0;
    ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW_HEIGHT, shown.len(), |ui, rows| {
        for &i in &shown[rows] {
            draw(ui, i);
        }
    });
}

/// A column of its own, or nothing where there is no room for it.
fn column(ui: &mut Ui, width: f32, content: impl FnOnce(&mut Ui)) {
    if width <= 0.0 {
        return;
    }
    ui.allocate_ui_with_layout(vec2(width, ROW_HEIGHT), Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(width);
        ui.set_max_width(width);
        content(ui);
    });
}

/// Text in a column of its own.
fn text_column(ui: &mut Ui, width: f32, text: RichText) {
    column(ui, width, |ui| {
        cut(ui, text);
    });
}

/// Room for `count` columns and what follows them, without the gaps between.
fn room(ui: &Ui, count: usize) -> f32 {
    ui.available_width() - count as f32 * ui.spacing().item_spacing.x
}

fn change_ui(ui: &mut Ui, change: &ChangeRow, index: usize, current: bool, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let label =
        format!("{} {} {}", crate::scene::palette::mark_name(change.mark), change.operator, change.name);
    let response = row(ui, &label, current, |ui| {
        mark(ui, change.mark);
        let [operator, name, pass] = columns(room(ui, 3), [150.0, 260.0, 190.0], 90.0);
        text_column(ui, operator, RichText::new(&*change.operator));
        column(ui, name, |ui| {
            cut_middle(ui, &change.name, |name| RichText::new(name).color(palette.weak));
        });
        let by = change.pass.as_deref().unwrap_or_default();
        text_column(ui, pass, RichText::new(by).color(palette.badge).size(size::SMALL));
        if pass > 0.0 {
            cut(ui, RichText::new(&change.detail).color(palette.weak));
        }
    });
    if response.clicked() {
        asks.push(Ask::Change(index));
    }
}

fn step_ui(ui: &mut Ui, step: &StepRow, current: Option<u32>, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let response = row(ui, &format!("Rewrite {}", step.number), current == Some(step.number), |ui| {
        let [number, pass, what, change] = columns(room(ui, 4), [44.0, 190.0, 220.0, 64.0], 120.0);
        text_column(ui, number, RichText::new(step.number.to_string()).monospace().color(palette.badge));
        text_column(ui, pass, RichText::new(&*step.pass));
        text_column(ui, what, RichText::new(&*step.what).color(palette.weak));
        text_column(ui, change, RichText::new(signed(step.node_change)).monospace());
        if change > 0.0 {
            cut_middle(ui, &step.name, |name| RichText::new(name).color(palette.weak));
        }
    });
    if response.clicked() {
        asks.push(Ask::ShowStep(step.number));
    }
}

fn log_ui(ui: &mut Ui, line: &LogRow, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let response = row(ui, &format!("Log {} {}", line.pass, line.scope), false, |ui| {
        let [seconds, pass, kind, scope] = columns(room(ui, 4), [64.0, 190.0, 80.0, 260.0], 120.0);
        text_column(ui, seconds, RichText::new(seconds_text(line.seconds)).monospace().color(palette.weak));
        text_column(ui, pass, RichText::new(&*line.pass));
        text_column(ui, kind, RichText::new(line.kind).color(palette.weak));
        column(ui, scope, |ui| {
            cut_middle(ui, &line.scope, |scope| RichText::new(scope).color(palette.weak));
        });
        let colour = if line.bad { palette.error } else { palette.text };
        if scope > 0.0 {
            cut(ui, RichText::new(&line.result).color(colour));
        }
    });
    if response.clicked()
        && let Some(step) = line.step
    {
        asks.push(Ask::ShowStep(step));
    }
}

fn problem_ui(ui: &mut Ui, problem: &ProblemRow, asks: &mut Vec<Ask>) {
    let palette = Palette::of(ui);
    let response = row(ui, &problem.text, false, |ui| {
        let (sign, colour) =
            if problem.severe { ("error", palette.error) } else { ("note", palette.warning) };
        super::widgets::pill(ui, sign, colour);
        cut(ui, problem.text.as_str());
    });
    if response.clicked()
        && let Some(node) = problem.node
    {
        asks.push(Ask::Reveal(node));
    }
}
