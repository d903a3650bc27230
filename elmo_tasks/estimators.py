"""Estimators of scikit-learn, by the name that they are imported from."""

from elmo_tasks.hooks import importing_extra

with importing_extra():
    from elmo_tasks.extras.sklearn.estimators import ElmoClassifier, ElmoTagger, ElmoVectorizer

__all__ = ["ElmoClassifier", "ElmoTagger", "ElmoVectorizer"]
