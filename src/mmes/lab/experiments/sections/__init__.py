"""The paper, section by section."""

from mmes.lab.experiments.sections.accuracy import ACCURACY
from mmes.lab.experiments.sections.basic import BASIC_1000, SCALABILITY
from mmes.lab.experiments.sections.cec import CEC2010, CEC2013
from mmes.lab.experiments.sections.runtime import RUNTIME
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.sparse_spectral import CLUSTERING
from mmes.lab.experiments.sections.steps import STEPS
from mmes.lab.experiments.sections.variants import INVARIANCE, MIXING, NOISE

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
