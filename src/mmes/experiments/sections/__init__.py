"""The paper, section by section."""

from mmes.experiments.sections.accuracy import ACCURACY
from mmes.experiments.sections.basic import BASIC_1000, SCALABILITY
from mmes.experiments.sections.cec import CEC2010, CEC2013
from mmes.experiments.sections.runtime import RUNTIME
from mmes.experiments.sections.section import Extent, Findings, Material, Section
from mmes.experiments.sections.sparse_spectral import CLUSTERING
from mmes.experiments.sections.steps import STEPS
from mmes.experiments.sections.variants import INVARIANCE, MIXING, NOISE

SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        ACCURACY,
        STEPS,
        INVARIANCE,
        BASIC_1000,
        SCALABILITY,
        RUNTIME,
        MIXING,
        NOISE,
        CEC2010,
        CEC2013,
        CLUSTERING,
    )
}
"""Every section by name, in the order of the paper."""

__all__ = ["SECTIONS", "Extent", "Findings", "Material", "Section"]
