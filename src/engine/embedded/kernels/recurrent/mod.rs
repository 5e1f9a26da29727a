//! Recurrent layers: LSTM, GRU, RNN.

mod activation;
mod cells;
mod layer;

kernels! {
    "GRU" => Kernel::plain(cells::gru),
    "LSTM" => Kernel::plain(cells::lstm),
    "RNN" => Kernel::plain(cells::rnn),
}
