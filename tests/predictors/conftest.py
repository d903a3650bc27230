import pytest

from elmo_tasks.predictors.tagger import TaggerPredictor
from tests.predictors.stub_models import make_tagger


@pytest.fixture
def predictor() -> TaggerPredictor:
    """A tagger that needs no training."""
    return make_tagger()
