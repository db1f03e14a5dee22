"""Other people's methods, by name: what each is, without importing any of them (or torch)."""

from __future__ import annotations

from pdcl.methods.catalog import Method

METHODS = [
    Method("er", "pdcl.lab.methods.er:ER", "replay from a reservoir", "replay", True, False,
           "Chaudhry et al., On Tiny Episodic Memories, 2019"),
    Method("er-ring", "pdcl.lab.methods.er:ERRing", "replay from one ring per class", "replay", True, True,
           "Chaudhry et al., On Tiny Episodic Memories, 2019"),
    Method("er-ace", "pdcl.lab.methods.er_ace:ERACE", "replay; new classes don't push old ones away", "replay", True,
           False, "Caccia et al., New Insights on Reducing Abrupt Representation Change, 2022"),
    Method("der", "pdcl.lab.methods.der:DER", "replay of stored outputs", "replay", True, False,
           "Buzzega et al., Dark Experience for General Continual Learning, 2020"),
    Method("derpp", "pdcl.lab.methods.derpp:DERpp", "replay of stored outputs and labels", "replay", True, False,
           "Buzzega et al., Dark Experience for General Continual Learning, 2020"),
    Method("xder", "pdcl.lab.methods.xder:XDER", "stored outputs revised, future heads prepared", "replay", True, True,
           "Boschini et al., Class-Incremental Continual Learning into the eXtended DER-verse, 2022"),
    Method("icarl", "pdcl.lab.methods.icarl:ICaRL", "exemplars by herding, nearest class mean", "replay", True, True,
           "Rebuffi et al., iCaRL, 2017"),
    Method("ncm", "pdcl.lab.methods.ncm:NCM", "nearest class mean of frozen features", "features", False, False,
           "Mensink et al., Distance-Based Image Classification, 2013"),
    Method("slda", "pdcl.lab.methods.slda:SLDA", "streaming discriminant analysis of frozen features", "features",
           False, False,
           "Hayes, Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020"),
    Method("gss", "pdcl.lab.methods.gss:GSS", "replay of samples with diverse gradients", "replay", True, False,
           "Aljundi et al., Gradient Based Sample Selection for Online Continual Learning, 2019"),
    Method("agem", "pdcl.lab.methods.agem:AGEM", "gradient projected against a replayed one", "projection", True, True,
           "Chaudhry et al., Efficient Lifelong Learning with A-GEM, 2019"),
    Method("gem", "pdcl.lab.methods.gem:GEM", "gradient projected against each past task's", "projection", True, True,
           "Lopez-Paz, Ranzato, Gradient Episodic Memory, 2017"),
    Method("ewc", "pdcl.lab.methods.ewc:EWC", "important weights are held, by Fisher information", "regularisation",
           False, True, "Kirkpatrick et al., Overcoming catastrophic forgetting, 2017; Schwarz et al., 2018"),
    Method("si", "pdcl.lab.methods.si:SI", "important weights are held, by path integral", "regularisation", False,
           True, "Zenke et al., Continual Learning Through Synaptic Intelligence, 2017"),
    Method("lwf", "pdcl.lab.methods.lwf:LwF", "distils its former self on new data", "regularisation", False, True,
           "Li, Hoiem, Learning without Forgetting, 2016"),
]  # fmt: skip
