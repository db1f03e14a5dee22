"""Whatever a user hands over as x or y, as a tree of tensors or a NumPy column, or an error that says what to give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from pdcl.errors import UsageError
from pdcl.ragged import Ragged, is_ragged
from pdcl.streams.checks import BadData
from pdcl.streams.gathering import READ_AS
from pdcl.trees import Tree, check_names

Column = npt.NDArray[Any]
Found = TypeVar("Found")
# Kinds of labels: one of another kind is another label.
KINDS: tuple[Any, ...] = (str, bool | np.bool_, int | float | np.number)
# These can be indexed where they lie in a file, and converted row by row.
IN_PLACE = (torch.float64, torch.float16, torch.bool)


def refuse_containers(x: Any, where: str) -> None:
    """Raise `BadData` for containers that hold x and y in a form that can't be read as samples by index."""
    kind = f"{where}: {type(x).__name__}"
    if isinstance(x, DataLoader):
        raise BadData(f"{kind} divides data into batches of its own; give the Dataset behind it: loader.dataset")
    if isinstance(x, Iterator):
        way = "give pdcl.Iterated(start), where start(first) returns one from sample number `first` on"
        raise BadData(f"{kind} can be read only once; {way}")
    if _package(x) == "datasets" and type(x).__name__ in ("DatasetDict", "IterableDatasetDict"):
        raise BadData(f"{kind} of Hugging Face holds several sets; give one of them: d['train']")
    if _package(x) == "datasets" and type(x).__name__ == "IterableDataset":
        way = "give a Dataset that can be read by index: load_dataset(…) without streaming=True"
        raise BadData(f"{kind} of Hugging Face can only be iterated; {way}")


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def is_tree(x: Any) -> bool:
    """Whether `x` isn't to be read as one tensor: a dict, a tuple of arrays, or sequences of unequal length."""
    return isinstance(x, Mapping | Ragged) or (isinstance(x, tuple) and bool(x) and _is_branch(x)) or is_ragged(x)


def tree_of(x: Any, where: str = "x") -> Tree:
    """`x` as a tree of tensors and sequences; anything else as one tensor."""
    if isinstance(x, Mapping):
        tree: Tree = {key: tree_of(part, where) for key, part in x.items()}
    elif isinstance(x, tuple) and is_tree(x):
        tree = tuple(tree_of(part, where) for part in x)
    else:
        return _sequences(x, where) if is_tree(x) else inputs_of(x, where)
    _checked(lambda: check_names(tree), where)
    return tree


def _is_branch(x: Any) -> bool:
    """Whether this is a column of its own, unlike a tuple of numbers, which is a row."""
    if isinstance(x, tuple):
        return all(map(_is_branch, x))
    return isinstance(x, Tensor | np.ndarray | Mapping | Ragged)


def _sequences(x: Any, where: str) -> Ragged:
    found = x if isinstance(x, Ragged) else _checked(lambda: Ragged.of([inputs_of(row, where) for row in x]), where)
    return Ragged(inputs_of(found.values, where), found.lengths)


def _checked(act: Callable[[], Found], where: str) -> Found:
    """What `act` gives; its errors say where."""
    try:
        return act()
    except BadData:
        raise
    except UsageError as error:
        raise BadData(f"{where}: {error}") from error


def batch_of(x: Any, where: str = "x") -> Tensor:
    """`x` as one tensor (samples, …) of at least two dimensions."""
    tensor = inputs_of(x, where)
    if tensor.dim() == 0:
        raise BadData(f"{where}: x is a single {type(x).__name__}; give one row per sample")
    if tensor.dim() == 1:
        raise BadData(f"{where}: x has shape {tuple(tensor.shape)}; for one number per sample give x.reshape(-1, 1)")
    return tensor


def inputs_of(x: Any, where: str = "x") -> Tensor:
    """`x` as one tensor in its own dtype, as far as networks can compute in it; float64 becomes float32."""
    if isinstance(x, Sequence) and len(x) and all(isinstance(row, Tensor) for row in x):
        x = _stacked(x, where)
    tensor = x.detach() if isinstance(x, Tensor) else _tensor_of(_table(x, where), where)
    _refuse_unreadable(tensor, f"{where}: x")
    if tensor.is_complex():
        raise BadData(f"{where}: x holds complex numbers; give real ones, such as np.abs(x)")
    if isinstance(x, np.memmap) and x.flags.c_contiguous and tensor.dtype in IN_PLACE:
        return tensor
    return tensor.to(READ_AS.get(tensor.dtype, tensor.dtype))


def _refuse_unreadable(tensor: Tensor, what: str) -> None:
    if tensor.layout != torch.strided:
        raise BadData(f"{what} is sparse; give it whole: .to_dense()")
    if tensor.is_meta:
        raise BadData(f"{what} is a meta tensor, which holds no numbers; give one on a real device")
    if tensor.is_quantized:
        raise BadData(f"{what} is quantized; give its numbers: .dequantize()")


def targets_column(values: Any, where: str = "y") -> Any:
    """`values` as a NumPy column; sequences of unequal length, which tokens have, are its objects."""
    if not isinstance(values, Ragged) and not is_ragged(values):
        # NumPy would write 1 as "1" beside a text, and True as 1 beside a number.
        found = objects(values) if _has_several_types(values) else column(values, where)
        if found is not None and found.ndim == 0:
            raise BadData(f"{where} is a single {type(values).__name__}; give one value per sample")
        return found
    found = np.empty(len(values), dtype=object)
    found[:] = [column(value, where) for value in values]
    return found


def _has_several_types(values: Any) -> bool:
    if not isinstance(values, list | tuple):
        return False
    kinds = {type(value) for value in values}
    return len(kinds) > 1 and sum(any(issubclass(kind, each) for kind in kinds) for each in KINDS) > 1


def objects(values: Sequence[Any]) -> Column:
    """A column of these very objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def refuse_sequences(targets: Column, where: str) -> None:
    """Raise `BadData` where a column of targets holds sequences of unequal length."""
    if targets.dtype == object and len(targets) and isinstance(targets[0], np.ndarray):
        way = 'pad or cut them to one; a class for every token belongs to kind="tokens"'
        raise BadData(f"{where} has rows of different lengths{_uneven(targets)}; {way}")


def column(values: Any, where: str = "y") -> Any:
    """`values` as a NumPy column (None stays None)."""
    if values is None:
        return None
    if isinstance(values, Tensor):
        _refuse_unreadable(values, where)
        values = values.detach().cpu().resolve_conj().resolve_neg()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return _array(values, where)


def _stacked(rows: Sequence[Tensor], where: str) -> Tensor:
    shapes = list(dict.fromkeys(tuple(row.shape) for row in rows))
    if len(shapes) > 1:
        raise BadData(f"{where}: x has rows of shapes {shapes[0]} and {shapes[1]}; pad or cut them to one shape")
    return torch.stack(list(rows))


def _tensor_of(array: Column, where: str) -> Tensor:
    if array.dtype.kind not in "biufc":
        raise BadData(f"{where}: x holds {_held(array)}; {_advice(array)}")
    if array.dtype == np.uint64:
        raise BadData(f"{where}: x is uint64, which torch can't compute with; give x.astype('int64')")
    # torch reads neither foreign byte orders, nor long doubles, nor negative strides.
    array = array.astype(np.float64) if array.dtype.itemsize > 8 and array.dtype.kind == "f" else array
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        # Nothing here writes into a user's array, so one that may not be written to will do.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.as_tensor(native.reshape(array.shape))


def _held(array: Column) -> str:
    if array.dtype.kind == "O" and array.size:
        return f"Python objects such as {str(array.flat[0])[:40]!r} ({type(array.flat[0]).__name__})"
    kinds = {"U": "texts", "S": "bytes", "M": "dates", "m": "durations", "V": "records"}
    return f"{kinds.get(array.dtype.kind, 'values')} ({array.dtype})"


def _advice(array: Column) -> str:
    if array.dtype.kind in "US" or (array.size and isinstance(array.flat[0], str)):
        return (
            "make numbers of them: of texts by tokenizer= of pdcl.split or by scikit-learn's HashingVectorizer, of "
            "categories by its ColumnTransformer"
        )
    return "give numbers: x.astype('float32') where they are some"


def _array(values: Any, where: str) -> Column:
    """`values` by NumPy; ragged rows, masks and sparse matrices are refused."""
    if _package(values) == "scipy" and hasattr(values, "toarray"):
        raise BadData(f"{where} is a sparse matrix; give it whole: .toarray()")
    if isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any()):
        raise BadData(f"{where} is a masked array with missing values; fill them first: .filled(...)")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise BadData(f"{where} has rows of different lengths{_uneven(values)}; pad or cut them to one") from error


def _uneven(values: Any) -> str:
    """Which rows differ, where rows have lengths at all."""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in values]
    other = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    return "" if other is None else f" (row 0 has {lengths[0]}, row {other} has {lengths[other]})"


def _table(x: Any, where: str) -> Column:
    """An array of `x`; of a pandas table, the numbers of its columns."""
    if _package(x) != "pandas" or not hasattr(x, "columns"):
        return _array(x, f"{where}: x")
    way = "encode and fill them with scikit-learn's ColumnTransformer first"
    words = [str(name) for name, kind in x.dtypes.items() if getattr(kind, "kind", "O") not in "biuf"]
    if words:
        raise BadData(f"{where}: columns {', '.join(words[:5])} of x aren't numbers; {way}")
    missing = [str(name) for name in x.columns if bool(x[name].isna().any())]
    if missing:
        raise BadData(f"{where}: columns {', '.join(missing[:5])} of x have missing values; {way}")
    return np.asarray(x.to_numpy(dtype=np.float32))
