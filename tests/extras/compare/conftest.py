from tests.prediction_files import write_case as write_case
