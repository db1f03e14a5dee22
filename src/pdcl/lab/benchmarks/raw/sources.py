"""Where the benchmarks' raw files come from, with what makes a file the right one."""

from __future__ import annotations

from dataclasses import dataclass

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
POLYAI = (
    "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/57ec275d8078af65b7731c2a98be812d844a6d6b/"
    "banking_data/"
)


@dataclass(frozen=True)
class File:
    """A raw file. `checksum` is "algorithm:digits"; `url` is empty where there is nothing to download."""

    name: str
    checksum: str
    size: int
    url: str = ""


@dataclass(frozen=True)
class Source:
    """The raw files of one stream, looked for in `folder`. `reduced` is a smaller substitute, if one exists."""

    name: str
    folder: str
    licence: str
    reference: str
    original: tuple[File, ...]
    reduced: tuple[File, ...] = ()

    @property
    def variants(self) -> dict[str, tuple[File, ...]]:
        """What may be found, the original first."""
        return {"original": self.original} | ({"reduced": self.reduced} if self.reduced else {})

    @property
    def size(self) -> int:
        """Bytes of the original files."""
        return sum(file.size for file in self.original)


def _file(place: str, name: str, sha256: str, size: int) -> File:
    return File(name, f"sha256:{sha256}", size, place + name)


MNIST = Source(
    "mnist", "mnist", "CC BY-SA 3.0",
    reference="LeCun, Cortes, Burges: The MNIST database of handwritten digits",
    original=(
        _file(MIRROR, "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
              9_912_422),
        _file(MIRROR, "train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
              28_881),
        _file(MIRROR, "t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
              1_648_877),
        _file(MIRROR, "t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
              4_542),
    ),
)  # fmt: skip

ORGANA = Source(
    "organa", "organamnist", "CC BY 4.0",
    reference="Yang et al.: MedMNIST v2, Scientific Data 2023; Bilic et al.: LiTS",
    original=(
        File("organamnist.npz", "sha256:7c8c8b0753e2c0d7f70928817eac02be7cbb09f6beff4346e9d0ea79ecb598bd", 38_247_708,
             "https://zenodo.org/records/10519652/files/organamnist.npz?download=1"),
    ),
)  # fmt: skip

SPEECH = Source(
    "speech", "speech_commands", "CC BY 4.0",
    reference="Warden: Speech Commands, a public dataset for single-word speech recognition, 2017 (v0.01)",
    original=(
        # The digits as published by torchaudio.
        _file("https://storage.googleapis.com/download.tensorflow.org/data/", "speech_commands_v0.01.tar.gz",
              "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d", 1_489_096_277),
    ),
    reduced=(
        File("speech_commands_v0.01_10words_8khz_ulaw.npz",
             "sha256:4541a15b530885fe4d3c95fa20ef95509f4c3bb388ca7c60ffa32d0039a9052f", 84_112_210),
    ),
)  # fmt: skip

TINY_IMAGENET = Source(
    "tiny_imagenet", "tiny-imagenet-200", "ImageNet terms: non-commercial research and education",
    reference="Le, Yang: Tiny ImageNet visual recognition challenge, Stanford CS231n 2015",
    original=(
        # The digits that Avalanche and other loaders check; the makers published none.
        File("tiny-imagenet-200.zip", "md5:90528d7ca1a48142e341f4ef8d21d0de", 248_100_043,
             "http://cs231n.stanford.edu/tiny-imagenet-200.zip"),
    ),
    reduced=(
        File("tiny-imagenet-200-first40.tar.gz",
             "sha256:d8f9daee9ff7568281c4cb123605607338c38242d7b01caec360cd43658d827a", 29_896_537),
    ),
)  # fmt: skip

BANKING77 = Source(
    "banking77", "banking77", "CC BY 4.0",
    reference="Casanueva et al.: Efficient intent detection with dual sentence encoders, 2020",
    original=(
        _file(POLYAI, "train.csv", "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b", 839_073),
        _file(POLYAI, "test.csv", "d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d", 239_961),
        _file(POLYAI, "categories.json", "53261da888122daf2d120d925458631d9619e15d82e56052e7a42e535ce32b63", 2_036),
    ),
)  # fmt: skip

SOURCES = {source.name: source for source in (MNIST, ORGANA, SPEECH, TINY_IMAGENET, BANKING77)}
