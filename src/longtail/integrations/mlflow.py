"""MLflow: a saved model as a ``pyfunc``, around the model file itself, without any pickle.

In: a model file. Out: a folder that ``mlflow.pyfunc.load_model`` opens and ``mlflow models serve``
serves; its `predict` takes texts and returns a table of labels and probabilities.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtail._optional import import_optional
from longtail.answers import text_columns
from longtail.datasets.columns import read_text

MODEL_FILE = "model.longtail"


def save_model(model: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write a model file as an MLflow model.

    Parameters
    ----------
    model : path-like
        A file that `save` wrote. What its journal holds is folded into the copy.
    path : path-like
        The folder to create; it must not exist.

    Raises
    ------
    ImportError
        If MLflow is not installed.
    FileExistsError
        If the folder exists.
    """
    models = import_optional("mlflow.models", "an MLflow model", "mlflow")
    import longtail

    folder = Path(path)
    folder.mkdir(parents=True)
    try:
        longtail.load(model).save(folder / MODEL_FILE)
        description = models.Model()
        description.add_flavor(
            "python_function",
            loader_module="longtail.integrations.mlflow",
            data=MODEL_FILE,
            env={"virtualenv": "python_env.yaml"},
        )
        needed = f"longtail=={longtail.__version__}\nmlflow\npandas\n"
        (folder / "requirements.txt").write_text(needed)
        (folder / "python_env.yaml").write_text("dependencies:\n- -r requirements.txt\n")
        description.save(folder / "MLmodel")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def load_model(path: str | os.PathLike[str], *, embedder: Any = None) -> LongtailModel:
    """Open what `save_model` wrote.

    Parameters
    ----------
    path : path-like
        The folder.
    embedder : callable, optional
        The encoder of a model that was fitted with one; ``mlflow.pyfunc.load_model`` has none.
    """
    return _load_pyfunc(Path(path) / MODEL_FILE, embedder)


class LongtailModel:
    """A model as MLflow calls it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the best class of each text with its probability, or the k best.

        Parameters
        ----------
        model_input : DataFrame or mapping of columns, list or array of str
            Texts, or the columns of the fit; other tables have a column ``text``.
        params : mapping, optional
            ``k``: how many classes of each text; 1 where it is left out.

        Returns
        -------
        DataFrame
            Columns ``document``, ``label`` and ``probability``, best first.
        """
        import pandas as pd

        texts = _read_texts(model_input, self.model)
        k = int((params or {}).get("k", 1))
        top = self.model.predict_proba_topk(texts, k)
        documents, ranks = top.valid.nonzero()
        return pd.DataFrame(
            {
                "document": documents,
                "label": top.classes[documents, ranks],
                "probability": top.scores[documents, ranks],
            }
        )


def _load_pyfunc(path: str | os.PathLike[str], embedder: Any = None) -> LongtailModel:
    """Open the model file; MLflow calls this by its name."""
    import longtail

    return LongtailModel(longtail.load(path, embedder=embedder))


def _read_texts(given: Any, model: Any) -> list[str]:
    """Return the texts of whatever MLflow hands over; columns of the fit are read as in it."""
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        return [str(text) for text in given]
    names, fields = list(getattr(given, "columns", given)), model.vocabulary_.options.fields
    rows = zip(*(given[name] for name in names), strict=True)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    return [read_text(record, text_columns(model), fields) for record in records]
