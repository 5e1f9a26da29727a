//! Which nodes may be dropped when nobody reads them, and which may be computed once for several readers.

use super::{Context, known};
use crate::facts::Facts;
use crate::ir::{GraphId, Model, Node};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Standard operators that draw random numbers; Dropout and BatchNormalization in training mode are judged apart.
const RANDOM: &[&str] =
    &["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// Names of the default domain's operators up to opset 27, sorted. A name that is not here may mean anything.
const STANDARD: &str = "Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool \
    BatchNormalization Bernoulli BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast \
    CastLike CausalConvWithState Ceil Celu CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence Constant \
    ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumProd CumSum DFT DeformConv DepthToSpace \
    DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU \
    Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual \
    GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If ImageDecoder \
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual LinearAttention Log \
    LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean \
    MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss \
    NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow QLinearConv \
    QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform RandomUniformLike \
    Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd \
    ReduceSum ReduceSumSquare RegexFullMatch Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT \
    Scan Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase \
    SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax \
    SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze StringConcat \
    StringNormalizer StringSplit Sub Sum SwiGLU Swish Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile \
    TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor";

/// Operators of `ai.onnx.ml`.
const CLASSICAL: &str = "ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer \
    Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler \
    TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap";

/// True when the operator is one whose meaning the standard fixes.
pub fn is_known(node: &Node) -> bool {
    let named = |list: &str| list.split_ascii_whitespace().any(|n| n == &*node.op_type);
    match &*node.domain {
        "" | "ai.onnx" => named(STANDARD),
        "ai.onnx.ml" => named(CLASSICAL),
        _ => false,
    }
}

/// What may be done with a node, bodies and called functions included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// Every operator in it is known: when nobody reads its results, it can go.
    pub known: bool,
    /// Equal inputs give equal results, so that one of two alike is enough.
    pub repeatable: bool,
}

impl Nature {
    const PLAIN: Nature = Nature { known: true, repeatable: true };
    const OPAQUE: Nature = Nature { known: false, repeatable: false };

    fn and(self, other: Nature) -> Nature {
        Nature { known: self.known && other.known, repeatable: self.repeatable && other.repeatable }
    }
}

/// Calls and bodies deeper than this are not looked into: nothing is assumed of them.
const DEPTH: usize = 100;

/// Answers for the nodes of one model; each local function is looked at once.
pub struct Natures<'m> {
    model: &'m Model,
    facts: &'m Facts,
    functions: RefCell<BTreeMap<GraphId, Nature>>,
}

impl<'m> Natures<'m> {
    pub fn new(cx: &Context<'m>) -> Natures<'m> {
        Natures { model: cx.model, facts: cx.facts, functions: RefCell::default() }
    }

    /// Nature of one node.
    pub fn of(&self, node: &Node) -> Nature {
        self.node(node, DEPTH)
    }

    fn node(&self, node: &Node, depth: usize) -> Nature {
        if depth == 0 {
            return Nature::OPAQUE;
        }
        if let Some(function) = self.model.function_of(node) {
            return self.function(function.graph, depth - 1);
        }
        if !is_known(node) {
            return Nature::OPAQUE;
        }
        let own = Nature { known: true, repeatable: !draws_numbers(self.model, self.facts, node) };
        node.bodies().fold(own, |nature, (_, body)| nature.and(self.graph(body, depth - 1)))
    }

    fn function(&self, graph: GraphId, depth: usize) -> Nature {
        if let Some(known) = self.functions.borrow().get(&graph) {
            return *known;
        }
        let nature = self.graph(graph, depth);
        self.functions.borrow_mut().insert(graph, nature);
        nature
    }

    fn graph(&self, graph: GraphId, depth: usize) -> Nature {
        self.model.nodes_of(graph).fold(Nature::PLAIN, |all, (_, node)| all.and(self.node(node, depth)))
    }
}

/// True for operators that draw random numbers or take statistics of the batch while training.
fn draws_numbers(model: &Model, facts: &Facts, node: &Node) -> bool {
    match &*node.op_type {
        "Dropout" | "BatchNormalization" => !known::infers(model, facts, node),
        name => RANDOM.contains(&name),
    }
}
