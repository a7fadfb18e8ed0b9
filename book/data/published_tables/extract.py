r"""Make book/data/published_tables: tables of positions of trained models, from packages of PyPI.

    pip download --no-deps --only-binary :all: -d wheels \
        rxnfp==0.1.0 rxnmapper==0.4.3 antiberty==0.1.3 sapiens==1.0.2
    .venv/bin/python book/data/published_tables/extract.py wheels

Nothing is installed, and no code of a package is run: the weights are read out of the wheels. Each
package stands under the MIT License. The tables are kept in float16, and rows behind those that a
page reads are left out. Only RXNMapper's keeps all its digits: by them its first rows are found.
"""

import argparse
import hashlib
import io
import json
import sys
import zipfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent


class Source(NamedTuple):
    """Where a table lies, and what its model was trained on."""

    package: str
    version: str
    file: str  # within the wheel
    parameter: str
    licence_file: str
    model: str
    trained_on: str
    start: float = 0.02  # standard deviation of a new entry, by the configuration or fairseq's code
    first: int = 0  # rows before it belong to no place
    rows: int = 512
    dtype: type = np.float16


REACTIONS = "chemical reactions, written as SMILES; hidden tokens"
ANTIBODIES = "sequences of antibodies; hidden amino acids"
CHAINS = "sequences of antibodies; amino acids that were hidden, replaced or left"
SOURCES = {
    "rxnfp": Source(
        package="rxnfp",
        version="0.1.0",
        file="rxnfp/models/transformers/bert_pretrained/pytorch_model.bin",
        parameter="bert.embeddings.position_embeddings.weight",
        licence_file="rxnfp-0.1.0.dist-info/LICENSE",
        model="RXNFP, a BERT of 12 layers (bert_pretrained)",
        trained_on=REACTIONS,
    ),
    "rxnmapper": Source(
        package="rxnmapper",
        version="0.4.3",
        file="rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/pytorch_model.bin",
        parameter="albert.embeddings.position_embeddings.weight",
        licence_file="rxnmapper-0.4.3.dist-info/licenses/LICENSE",
        model="RXNMapper, an ALBERT of 12 layers",
        trained_on=REACTIONS,
        dtype=np.float32,
    ),
    "antiberty": Source(
        package="antiberty",
        version="0.1.3",
        file="antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin",
        parameter="bert.embeddings.position_embeddings.weight",
        licence_file="antiberty-0.1.3.dist-info/LICENSE.MD",
        model="AntiBERTy, a BERT of 8 layers",
        trained_on=ANTIBODIES,
        rows=256,
    ),
    "sapiens heavy": Source(
        package="sapiens",
        version="1.0.2",
        file="sapiens/models/v1/checkpoint_vh.pt",
        parameter="decoder.sentence_encoder.embed_positions.weight",
        licence_file="sapiens-1.0.2.dist-info/LICENSE",
        model="Sapiens, a RoBERTa of 4 layers, heavy chains",
        trained_on=CHAINS,
        first=2,  # fairseq counts places from 2
    ),
    "sapiens light": Source(
        package="sapiens",
        version="1.0.2",
        file="sapiens/models/v1/checkpoint_vl.pt",
        parameter="decoder.sentence_encoder.embed_positions.weight",
        licence_file="sapiens-1.0.2.dist-info/LICENSE",
        model="Sapiens, a RoBERTa of 4 layers, light chains",
        trained_on=CHAINS,
        first=2,
    ),
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Name the folder of the wheels. The head of this file says how to fill it.")
    wheels = Path(sys.argv[1])
    arrays: dict[str, NDArray[np.floating]] = {}
    entries: dict[str, dict[str, Any]] = {}
    licences: dict[str, str] = {}
    for name, source in SOURCES.items():
        pattern = f"{source.package}-{source.version}-*.whl"
        path = next(wheels.glob(pattern), None)
        if path is None:
            sys.exit(
                f"There is no {pattern} in {wheels}: the head of this file says how to get it."
            )
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(source.file)
            licences[source.package] = wheel.read(source.licence_file).decode("utf-8")
        table = parameters(content)[source.parameter].float().numpy()
        kept = table[source.first : source.first + source.rows]
        arrays[name] = kept.astype(source.dtype)
        entries[name] = {
            "model": source.model,
            "trained_on": source.trained_on,
            "licence": "MIT, see LICENSE",
            "package": source.package,
            "version": source.version,
            "source_file": source.file,
            "source_sha256": hashlib.sha256(content).hexdigest(),
            "parameter": source.parameter,
            "shape": list(table.shape),
            "rows": [source.first, source.first + len(kept)],
            "start": source.start,
        }
    extract = FOLDER / "extract.npz"
    np.savez_compressed(extract, allow_pickle=False, **arrays)
    texts = (f"# The package {package}\n\n{text.strip()}\n" for package, text in licences.items())
    (FOLDER / "LICENSE").write_text("\n".join(texts), encoding="utf-8")
    provenance = {
        "command": "python book/data/published_tables/extract.py wheels",
        "date": date.today().isoformat(),
        "changes": "rows selected, and rounded to float16, but for RXNMapper's",
        "extract_sha256": hashlib.sha256(extract.read_bytes()).hexdigest(),
        "tables": entries,
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False)
    (FOLDER / "provenance.json").write_text(text + "\n", encoding="utf-8")


def parameters(content: bytes) -> dict[str, torch.Tensor]:
    """The parameters of a file of weights, read without running any code that it may hold."""
    with torch.serialization.safe_globals([argparse.Namespace]):  # the settings in fairseq's files
        loaded: dict[str, Any] = torch.load(io.BytesIO(content), "cpu", weights_only=True)
    found: dict[str, torch.Tensor] = loaded.get("model", loaded)
    return found


if __name__ == "__main__":
    main()
