//! Everything a person can ask of the window by name: one enum from which menus, palette, keys and the shortcut sheet
//! are made.

use egui::{Key, KeyboardShortcut, Modifiers};

/// Menu that a verb stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Menu {
    File,
    Pipeline,
    View,
    Go,
    Help,
}

impl Menu {
    /// All menus, left to right.
    pub const ALL: [Menu; 5] = [Menu::File, Menu::Pipeline, Menu::View, Menu::Go, Menu::Help];

    /// The word in the bar.
    pub fn name(self) -> &'static str {
        match self {
            Menu::File => "File",
            Menu::Pipeline => "Pipeline",
            Menu::View => "View",
            Menu::Go => "Go",
            Menu::Help => "Help",
        }
    }
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident: $menu:ident, $text:literal, $help:literal, [$($key:expr),*];)*) => {
        /// What a person can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verb {
            $($(#[$doc])* $name,)*
        }

        impl Verb {
            /// All verbs in the order of the menus.
            pub const ALL: &'static [Verb] = &[$(Verb::$name,)*];

            /// The menu it stands in.
            pub fn menu(self) -> Menu {
                match self {
                    $(Verb::$name => Menu::$menu,)*
                }
            }

            /// The words in menus and palette.
            pub fn text(self) -> &'static str {
                match self {
                    $(Verb::$name => $text,)*
                }
            }

            /// One line that says more.
            pub fn help(self) -> &'static str {
                match self {
                    $(Verb::$name => $help,)*
                }
            }

            /// Keys that ask for it; the first is the one that is shown.
            pub fn keys(self) -> Vec<KeyboardShortcut> {
                match self {
                    $(Verb::$name => vec![$($key),*],)*
                }
            }
        }
    };
}

const fn plain(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::NONE, key)
}

const fn ctrl(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::COMMAND, key)
}

const fn ctrl_shift(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::COMMAND.plus(Modifiers::SHIFT), key)
}

const fn ctrl_alt(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::COMMAND.plus(Modifiers::ALT), key)
}

const fn alt(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::ALT, key)
}

const fn shift(key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(Modifiers::SHIFT, key)
}

verbs! {
    Open: File, "Open…", "Open a model: ONNX, JSON or the text form", [ctrl(Key::O)];
    Save: File, "Save optimized model as…", "Write the model as the pipeline leaves it", [ctrl(Key::S)];
    Compare: File, "Compare with…", "Open a second file beside this model: before is this one as it was opened, after the second", [ctrl_shift(Key::O)];
    CloseComparison: File, "Close comparison", "Back to the open model alone", [ctrl_shift(Key::W)];
    Close: File, "Close model", "Back to the start page", [ctrl(Key::W)];

    Undo: Pipeline, "Undo", "Take back the last change of the pipeline", [ctrl(Key::Z)];
    Redo: Pipeline, "Redo", "Make the change again", [ctrl_shift(Key::Z), ctrl(Key::Y)];
    LoadPipeline: Pipeline, "Load pipeline…", "Read switches, order and options from a file", [];
    SavePipeline: Pipeline, "Save pipeline…", "Write switches, order and options to a file", [ctrl_shift(Key::S)];
    AllowRisky: Pipeline, "Allow risky passes", "Run passes that are right only under conditions that the graph does not show", [];
    ResetPipeline: Pipeline, "Reset pipeline", "All passes as they are when nothing is changed", [];
    Cancel: Pipeline, "Cancel", "Stop what is running; what is complete is kept", [plain(Key::Escape)];

    ViewBefore: View, "Before", "The model as it was opened", [plain(Key::Num1)];
    ViewAfter: View, "After", "The model as the pipeline leaves it", [plain(Key::Num2)];
    ViewBoth: View, "Side by side", "Before and after with one camera", [plain(Key::Num3)];
    ViewDifference: View, "Difference", "Both in one picture, what differs is marked", [plain(Key::Num4)];
    FitAll: View, "Fit all", "The whole picture", [plain(Key::Home)];
    FitChosen: View, "Fit chosen", "Zoom to what is chosen", [plain(Key::F), plain(Key::Space)];
    ZoomIn: View, "Zoom in", "Closer, about the middle", [plain(Key::Plus), plain(Key::Equals)];
    ZoomOut: View, "Zoom out", "Farther, about the middle", [plain(Key::Minus)];
    OpenAll: View, "Open all blocks inside", "Open the chosen block and everything in it", [shift(Key::Enter)];
    CloseAll: View, "Close all blocks inside", "Close everything in the chosen block, or in the model", [shift(Key::Backspace)];
    TogglePipeline: View, "Pipeline panel", "Show or hide the passes", [ctrl(Key::B)];
    ToggleInspector: View, "Inspector panel", "Show or hide what is known of the chosen thing", [ctrl_alt(Key::B)];
    ToggleBottom: View, "Bottom panel", "Show or hide changes, log and problems", [ctrl(Key::J)];
    SwitchTheme: View, "Light or dark", "Switch between the light and the dark theme", [ctrl_shift(Key::L)];
    LargerText: View, "Larger text", "Scale everything up", [];
    SmallerText: View, "Smaller text", "Scale everything down", [];
    ResetLayout: View, "Reset layout", "Panels and text size as at first", [];
    ReduceMotion: View, "Reduce motion", "Jump instead of flying", [];
    WheelZooms: View, "Wheel zooms", "The wheel zooms; otherwise it scrolls and Ctrl with the wheel zooms", [];

    Search: Go, "Search…", "Find nodes by operator, name, value, attribute or pass", [ctrl(Key::F)];
    NextHit: Go, "Next find", "Go to the next thing found", [plain(Key::F3)];
    PreviousHit: Go, "Previous find", "Go to the thing found before", [shift(Key::F3)];
    NextChange: Go, "Next change", "Go to the next difference", [plain(Key::N)];
    PreviousChange: Go, "Previous change", "Go to the difference before", [plain(Key::P)];
    NextStep: Go, "Next rewrite", "One step forward", [plain(Key::CloseBracket), plain(Key::Period)];
    PreviousStep: Go, "Previous rewrite", "One step back", [plain(Key::OpenBracket), plain(Key::Comma)];
    FirstStep: Go, "First rewrite", "Before any rewrite", [shift(Key::Home)];
    LastStep: Go, "Last rewrite", "After all rewrites", [shift(Key::End)];
    Back: Go, "Back", "Where you were before", [alt(Key::ArrowLeft)];
    Forward: Go, "Forward", "Where you came back from", [alt(Key::ArrowRight)];

    Palette: Help, "Command palette…", "Find a command by its name", [ctrl_shift(Key::P), plain(Key::F1)];
    Shortcuts: Help, "Keyboard shortcuts", "All keys on one sheet", [plain(Key::Questionmark)];
}

impl Verb {
    /// The first key as people read it; empty for none.
    pub fn key_text(self, ctx: &egui::Context) -> String {
        self.keys().first().map_or_else(String::new, |key| ctx.format_shortcut(key))
    }

    /// Verbs whose keys were pressed since the last frame, of those that are `enabled`; the keys of others are left to
    /// whoever wants them. Keys that a text field could want are left alone while one has the focus, and all keys while
    /// something modal is open.
    pub fn pressed(ctx: &egui::Context, enabled: impl Fn(Verb) -> bool) -> Vec<Verb> {
        if ctx.memory(|memory| memory.top_modal_layer().is_some()) {
            return Vec::new();
        }
        let typing = ctx.text_edit_focused();
        let mut bound: Vec<(KeyboardShortcut, Verb)> =
            Verb::ALL.iter().flat_map(|&verb| verb.keys().into_iter().map(move |key| (key, verb))).collect();
        // Ctrl+Shift+P also looks like Ctrl+P to egui, so what needs more keys is asked first.
        let count =
            |m: &Modifiers| usize::from(m.alt) + usize::from(m.shift) + usize::from(m.command || m.ctrl);
        bound.sort_by_key(|(key, _)| std::cmp::Reverse(count(&key.modifiers)));
        let needs_command = |key: &KeyboardShortcut| key.modifiers.command || key.modifiers.alt;
        bound.retain(|(key, _)| !typing || needs_command(key) || is_function_key(key.logical_key));
        ctx.input_mut(|input| {
            let pressed =
                bound.into_iter().filter(|(key, verb)| enabled(*verb) && input.consume_shortcut(key));
            pressed.map(|(_, verb)| verb).collect()
        })
    }
}

fn is_function_key(key: Key) -> bool {
    matches!(key, Key::F1 | Key::F3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_words_and_no_key_is_given_twice() {
        let mut keys = std::collections::BTreeMap::new();
        for &verb in Verb::ALL {
            assert!(!verb.text().is_empty() && !verb.help().is_empty());
            assert!(!verb.text().ends_with('.') && !verb.help().ends_with('.'), "{verb:?}");
            for key in verb.keys() {
                let before = keys.insert(format!("{key:?}"), verb);
                assert_eq!(before, None, "{key:?}");
            }
        }
        for menu in Menu::ALL {
            assert!(Verb::ALL.iter().any(|verb| verb.menu() == menu), "{menu:?} is empty");
        }
    }

    #[test]
    fn longer_shortcuts_win() {
        let ctx = egui::Context::default();
        let press = |modifiers| {
            let mut found = Vec::new();
            let key =
                egui::Event::Key { key: Key::Z, physical_key: None, pressed: true, repeat: false, modifiers };
            let input = egui::RawInput { events: vec![key], ..Default::default() };
            ctx.run_ui(input, |ui| found = Verb::pressed(ui.ctx(), |_| true)).drop_without_applying_deltas();
            found
        };
        let ctrl = Modifiers { ctrl: true, command: true, ..Modifiers::NONE };
        assert_eq!(press(ctrl), [Verb::Undo]);
        assert_eq!(press(ctrl | Modifiers::SHIFT), [Verb::Redo]);
    }
}
